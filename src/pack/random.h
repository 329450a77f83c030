// A small generator whose numbers are the same on every machine and in every version: orders depend on it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace packtrain {

// SplitMix64: a counter through a mixing function. One thread at a time.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // Uniform in [0, bound), without bias: the product's low half is drawn again where it would favour some.
  uint64_t below(uint64_t bound) {
    while (true) {
      const auto product = static_cast<unsigned __int128>(next()) * bound;
      if (static_cast<uint64_t>(product) >= (-bound) % bound) return static_cast<uint64_t>(product >> 64);
    }
  }
  template <class Vector>
  void shuffle(Vector& items, size_t begin, size_t end) {
    for (size_t i = end; i > begin + 1; --i) std::swap(items[i - 1], items[begin + below(i - begin)]);
  }

 private:
  uint64_t state_;
};

}  // namespace packtrain
