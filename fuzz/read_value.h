// Reads a value as the loader does: a look, room of just that size, and what fills it.
#pragma once

#include <cstdlib>
#include <cstring>
#include <vector>

#include "packtrain/values.h"

namespace packtrain::fuzz {

constexpr uint64_t kMemory = 4 << 20;

inline int read_value(const ValueSpec& spec, Bytes encoded) {
  const auto reader = ValueReader::make(spec, kMemory);
  if (!reader.ok()) std::abort();
  // Twice, over different memory: a reader goes on after damage, and leaves no byte as it was.
  std::vector<std::byte> values[2];
  bool read[2] = {};
  for (int i = 0; i < 2; ++i) {
    const auto facts = (*reader)->look(encoded);
    if (!facts.ok() || !facts->is_array) continue;
    if (facts->shape.bytes() > kMemory) std::abort();
    values[i].assign(facts->shape.bytes(), std::byte{static_cast<uint8_t>(i == 0 ? 0x55 : 0xAA)});
    read[i] = (*reader)->read(values[i]).ok();
  }
  if (read[0] != read[1] || (read[0] && values[0] != values[1])) std::abort();
  return 0;
}

}  // namespace packtrain::fuzz
