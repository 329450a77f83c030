// A tile of noise with the spectrum of photographs (equal contrast in every octave), made once per process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace packtrain {

// Periodic in both directions. Immutable, shared by all threads.
class NoiseTile {
 public:
  static constexpr uint32_t kSide = 512;
  static constexpr uint32_t kWidest = 1024;  // a row may be read this far from any start

  static const NoiseTile& get();

  // Values in [-127, 127] from column x on, kWidest of them. `coarse`: waves of 256 to 16 pixels; `fine`: 8
  // to 1.
  const int8_t* coarse(uint32_t x, uint32_t y) const { return row(coarse_, x, y); }
  const int8_t* fine(uint32_t x, uint32_t y) const { return row(fine_, x, y); }

 private:
  static constexpr uint32_t kStride = kSide + kWidest;  // rows go round, so that readers need not

  NoiseTile();
  static std::vector<int8_t> octaves(uint32_t longest, uint32_t shortest);
  static const int8_t* row(const std::vector<int8_t>& plane, uint32_t x, uint32_t y) {
    return plane.data() + size_t{y % kSide} * kStride + x % kSide;
  }

  std::vector<int8_t> coarse_, fine_;
};

}  // namespace packtrain
