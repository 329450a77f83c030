#include "decode/pixel_writer.h"

#include <bit>
#include <cstring>

#include "decode/kernel_sets.h"

namespace packtrain {

namespace {

// Rounded twice on every processor: the build's -ffp-contract=off keeps compilers from making one fused
// operation of the two, which would round once.
float apply(const PixelFactors& factors, size_t i, uint8_t byte) {
  const float product = static_cast<float>(byte) * factors.scale[i % kFactorPeriod];
  return product + factors.offset[i % kFactorPeriod];
}

template <class Number, class Round>
void convert(const uint8_t* from, size_t values, const PixelFactors& factors, std::byte* to, Round round) {
  for (size_t i = 0; i < values; ++i) {
    const Number number = round(apply(factors, i, from[i]));
    std::memcpy(to + i * sizeof(Number), &number, sizeof(Number));
  }
}

void split_scalar(const uint8_t* rgb, size_t pixels, uint8_t* red, uint8_t* green, uint8_t* blue) {
  for (size_t i = 0; i < pixels; ++i) {
    red[i] = rgb[3 * i];
    green[i] = rgb[3 * i + 1];
    blue[i] = rgb[3 * i + 2];
  }
}
void float32_scalar(const uint8_t* from, size_t values, const PixelFactors& factors, std::byte* to) {
  convert<float>(from, values, factors, to, [](float value) { return value; });
}
void float16_scalar(const uint8_t* from, size_t values, const PixelFactors& factors, std::byte* to) {
  convert<uint16_t>(from, values, factors, to, to_float16);
}
void bfloat16_scalar(const uint8_t* from, size_t values, const PixelFactors& factors, std::byte* to) {
  convert<uint16_t>(from, values, factors, to, to_bfloat16);
}

}  // namespace

uint16_t to_float16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  constexpr uint32_t kInfinity = 0x7C00, kSmallestNormal = 113u << 23, kTooLarge = 143u << 23;
  if (magnitude >= kTooLarge) return static_cast<uint16_t>(sign | kInfinity);
  if (magnitude < kSmallestNormal) {
    // Adding 0.5 moves the last bit of a subnormal half to the last bit of a float, which rounds it.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5F)));
  }
  const uint32_t odd = magnitude >> 13 & 1;
  return static_cast<uint16_t>(sign | ((magnitude - (112u << 23) + 0xFFF + odd) >> 13));
}

uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

const PixelKernels kScalarPixels{split_scalar, float32_scalar, float16_scalar, bfloat16_scalar};

PixelWriter::PixelWriter(const ImageSpec& spec, const PixelKernels& kernels)
    : spec_(spec), kernels_(kernels) {
  switch (spec.type) {
    case PixelType::uint8:
      break;
    case PixelType::float16:
      convert_ = kernels.to_float16;
      break;
    case PixelType::bfloat16:
      convert_ = kernels.to_bfloat16;
      break;
    case PixelType::float32:
      convert_ = kernels.to_float32;
      break;
  }
  const double unit = spec.scale_to_one ? 255.0 : 1.0;
  for (size_t channel = 0; channel < 3; ++channel) {
    const double mean = spec.normalise ? spec.mean[channel] : 0;
    const double deviation = spec.normalise ? spec.deviation[channel] : 1;
    const auto scale = static_cast<float>(1 / (unit * deviation));
    const auto offset = static_cast<float>(-mean / deviation);
    channel_factors_[channel].scale.fill(scale);
    channel_factors_[channel].offset.fill(offset);
    for (size_t i = channel; i < pixel_factors_.scale.size(); i += 3) {
      pixel_factors_.scale[i] = scale;
      pixel_factors_.offset[i] = offset;
    }
    if (spec.layout == PixelLayout::chw) planes_[channel].resize(spec.width);
  }
}

void PixelWriter::write_row(const uint8_t* rgb, uint32_t y, std::byte* slot) {
  const size_t width = spec_.width, number = pixel_bytes(spec_.type);
  if (spec_.layout == PixelLayout::hwc) {
    std::byte* to = slot + size_t{y} * width * 3 * number;
    if (convert_ != nullptr) {
      convert_(rgb, width * 3, pixel_factors_, to);
    } else {
      std::memcpy(to, rgb, width * 3);
    }
    return;
  }
  const auto row_of = [&](size_t channel) { return slot + (channel * spec_.height + y) * width * number; };
  if (convert_ == nullptr) {
    const auto bytes_of = [&](size_t channel) { return reinterpret_cast<uint8_t*>(row_of(channel)); };
    kernels_.split(rgb, width, bytes_of(0), bytes_of(1), bytes_of(2));
    return;
  }
  kernels_.split(rgb, width, planes_[0].data(), planes_[1].data(), planes_[2].data());
  for (size_t channel = 0; channel < 3; ++channel)
    convert_(planes_[channel].data(), width, channel_factors_[channel], row_of(channel));
}

}  // namespace packtrain
