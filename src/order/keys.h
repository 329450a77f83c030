// The keys of the choices that an order makes. Each purpose has its own, so that no two of them, nor the
// random transforms that are drawn from position_key(), are alike.
#pragma once

#include <cstdint>

#include "base/keyed_random.h"

namespace packtrain {

enum class KeyPurpose : uint64_t { shuffle = 1, draw, replace, shard_line, pieces, window, part };

inline uint64_t purpose_key(KeyPurpose purpose, uint64_t key) {
  return join_keys(key, 0x6f72646572000000U + static_cast<uint64_t>(purpose));
}

// For what is chosen once per epoch.
inline uint64_t epoch_key(KeyPurpose purpose, uint64_t seed, uint64_t epoch) {
  return join_keys(purpose_key(purpose, seed), epoch);
}

}  // namespace packtrain
