// What an ImageSpec may ask for.
#include <cmath>

#include <fmt/format.h>

#include "packtrain/transform.h"

namespace packtrain {

namespace {

constexpr uint32_t kLargestOutput = 16384;  // a side; more is a mistake, and 800 MB a sample

}  // namespace

size_t pixel_bytes(PixelType type) {
  switch (type) {
    case PixelType::uint8:
      return 1;
    case PixelType::float16:
    case PixelType::bfloat16:
      return 2;
    case PixelType::float32:
      break;
  }
  return 4;
}

Status ImageSpec::check() const {
  const auto invalid = [](std::string message) { return Status(Code::invalid, std::move(message)); };
  if (width == 0 || height == 0 || width > kLargestOutput || height > kLargestOutput)
    return invalid(fmt::format("an image of {} x {} pixels is asked for; a side is between 1 and {}", width,
                               height, kLargestOutput));
  if (crop == CropKind::centre) {
    if (resize > kLargestOutput)
      return invalid(fmt::format("resize={} is too large; {} is the limit", resize, kLargestOutput));
    if (resize < width || resize < height)
      return invalid(
          fmt::format("resize={} is smaller than the crop of {} x {}: the shorter side is resized first, and "
                      "the crop must fit into it",
                      resize, width, height));
  }
  if (crop == CropKind::random_resized) {
    // Written so that a NaN fails too.
    if (!(scale_low > 0 && scale_low <= scale_high && std::isfinite(scale_high)))
      return invalid(
          fmt::format("scale=({}, {}): shares of the image's area, 0 < low <= high", scale_low, scale_high));
    if (!(ratio_low > 0 && ratio_low <= ratio_high && std::isfinite(ratio_high)))
      return invalid(
          fmt::format("ratio=({}, {}): width over height, 0 < low <= high", ratio_low, ratio_high));
  }
  if (!(flip >= 0 && flip <= 1)) return invalid(fmt::format("flip={}: a likelihood between 0 and 1", flip));
  if (normalise) {
    if (type == PixelType::uint8)
      return invalid("normalised pixels are no uint8: ask for float32, float16 or bfloat16");
    for (size_t channel = 0; channel < 3; ++channel)
      if (!std::isfinite(mean[channel]) || !std::isfinite(deviation[channel]) || deviation[channel] <= 0)
        return invalid(fmt::format("mean={} and std={} of channel {}: finite, and std above 0", mean[channel],
                                   deviation[channel], channel));
  }
  return {};
}

}  // namespace packtrain
