// Random numbers that are a function of a key: the same on every machine, thread and resume. A counter run
// through a 64-bit mixer, so that any of them can be had without those before it.
#pragma once

#include <cstdint>

namespace packtrain {

// Mixes all bits of `value` into all bits of the result; a bijection.
inline uint64_t mix64(uint64_t value) {
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93U;
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93U;
  value ^= value >> 32;
  return value;
}

inline uint64_t join_keys(uint64_t a, uint64_t b) { return mix64(mix64(a + 0x9e3779b97f4a7c15U) ^ b); }

// A plain value. One thread at a time.
class KeyedRandom {
 public:
  explicit KeyedRandom(uint64_t key) : key_(mix64(key ^ 0x5851f42d4c957f2dU)) {}

  uint64_t next() { return mix64(key_ + 0x9e3779b97f4a7c15U * ++count_); }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // in [0, 1)
  double between(double low, double high) { return low + (high - low) * uniform(); }
  // In [0, bound), each as likely as any other; bound > 0.
  uint64_t below(uint64_t bound) {
    // The high half of a product is uniform but for the few low halves that are drawn again.
    for (;;) {
      const unsigned __int128 product = static_cast<unsigned __int128>(next()) * bound;
      const auto low = static_cast<uint64_t>(product);
      if (low >= bound || low >= (0 - bound) % bound) return static_cast<uint64_t>(product >> 64);
    }
  }

 private:
  uint64_t key_;
  uint64_t count_ = 0;
};

}  // namespace packtrain
