#include "pack/synth_noise.h"

#include <algorithm>

#include "pack/synth_random.h"

namespace packtrain {

namespace {

// The random height of a lattice point, in [-256, 255].
int32_t lattice(uint32_t period, uint32_t x, uint32_t y) {
  return static_cast<int32_t>(mix_bits(uint64_t{period} << 40 | uint64_t{y} << 20 | x) >> 55) - 256;
}

// From one lattice point to the next without a kink: 3t² - 2t³ with t in 1/period, the result in 1/256.
int32_t ease(uint32_t step, uint32_t period) {
  const int64_t t = step, p = period;
  return static_cast<int32_t>(256 * (3 * t * t * p - 2 * t * t * t) / (p * p * p));
}

}  // namespace

const NoiseTile& NoiseTile::get() {
  static const NoiseTile tile;
  return tile;
}

NoiseTile::NoiseTile() : coarse_(octaves(256, 16)), fine_(octaves(8, 1)) {}

std::vector<int8_t> NoiseTile::octaves(uint32_t longest, uint32_t shortest) {
  std::vector<int32_t> sum(size_t{kSide} * kSide, 0);
  for (uint32_t period = longest; period >= shortest; period /= 2) {
    const uint32_t points = kSide / period;
    for (uint32_t y = 0; y < kSide; ++y) {
      const uint32_t row = y / period, next_row = (row + 1) % points;
      const int32_t down = ease(y % period, period);
      for (uint32_t x = 0; x < kSide; ++x) {
        const uint32_t column = x / period, next_column = (column + 1) % points;
        const int32_t right = ease(x % period, period);
        const int32_t above =
            lattice(period, column, row) * (256 - right) + lattice(period, next_column, row) * right;
        const int32_t below = lattice(period, column, next_row) * (256 - right) +
                              lattice(period, next_column, next_row) * right;
        sum[size_t{y} * kSide + x] += (above * (256 - down) + below * down) / 65536;
      }
    }
  }
  std::vector<int8_t> plane(size_t{kSide} * kStride);
  for (uint32_t y = 0; y < kSide; ++y)
    for (uint32_t x = 0; x < kStride; ++x)
      plane[size_t{y} * kStride + x] =
          static_cast<int8_t>(std::clamp(sum[size_t{y} * kSide + x % kSide] / 4, -127, 127));
  return plane;
}

}  // namespace packtrain
