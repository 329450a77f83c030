// Decoder: bytes to numbers, and the encoders that make photographs for synth. Formats are told by content.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "packtrain/media.h"
#include "packtrain/status.h"

namespace packtrain {

struct ImageShape {
  uint32_t width = 0, height = 0;
  uint32_t channels = 0;
  bool operator==(const ImageShape&) const = default;
};
// From the header alone; nothing if it is no image or the header is cut short. Never decodes.
std::optional<ImageShape> image_shape(Bytes head);

// 8-bit pixels, rows from the top, channels interleaved (RGB or grey).
struct Image {
  ImageShape shape;
  std::vector<uint8_t> pixels;
};

enum class Chroma : uint8_t { s420, s422, s444, grey };
Result<std::vector<std::byte>> encode_jpeg(const Image& image, int quality, Chroma chroma);
// `largest_side` > 0: scaled down while decoding, to the smallest of libjpeg's scales that is not below it.
Result<Image> decode_jpeg(Bytes encoded, uint32_t largest_side = 0);

}  // namespace packtrain
