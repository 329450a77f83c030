// From rows of RGB bytes to the numbers a user asked for: type, layout, normalisation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "packtrain/transform.h"

namespace packtrain {

// Factors repeat every 24 values: whole vectors of eight, for pixels of three channels and for single
// channels. A vector may be loaded from any place in a period.
constexpr size_t kFactorPeriod = 24, kFactorVector = 8;
struct PixelFactors {
  std::array<float, kFactorPeriod + kFactorVector> scale,
      offset;  // value = byte * scale + offset, rounded twice
};

// One instruction set. Immutable. All give the same bits.
struct PixelKernels {
  // RGB pixels to a row of each channel.
  void (*split)(const uint8_t* rgb, size_t pixels, uint8_t* red, uint8_t* green, uint8_t* blue);
  // `to` need not be aligned.
  using Convert = void (*)(const uint8_t* from, size_t values, const PixelFactors& factors, std::byte* to);
  Convert to_float32, to_float16, to_bfloat16;
};

// Nearest, half to even; values of pixels are finite and far from the limits of both.
uint16_t to_float16(float value);
uint16_t to_bfloat16(float value);

// Writes rows into a slot. One thread at a time.
class PixelWriter {
 public:
  PixelWriter(const ImageSpec& spec, const PixelKernels& kernels);
  // `rgb`: row `y` of the output, spec.width pixels, and kRowSlack bytes that may be read.
  void write_row(const uint8_t* rgb, uint32_t y, std::byte* slot);

 private:
  ImageSpec spec_;
  const PixelKernels& kernels_;
  PixelKernels::Convert convert_ = nullptr;        // none for bytes
  std::array<PixelFactors, 3> channel_factors_{};  // CHW: for each channel
  PixelFactors pixel_factors_{};                   // HWC: channels in turn
  std::array<std::vector<uint8_t>, 3> planes_;     // a row of each channel
};

}  // namespace packtrain
