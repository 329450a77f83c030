// What the media readers make of any bytes: no crash, and pixels that fit the shape.
#include <cstdlib>

#include "packtrain/decode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace packtrain;
  const Bytes bytes = std::as_bytes(std::span(data, size));
  const MediaKind kind = media_kind(bytes);
  const auto shape = image_shape(bytes);
  if (kind != MediaKind::jpeg || !shape) return 0;
  // A short file may claim many pixels: legal, but it would leave no time for the rest.
  if (uint64_t{shape->width} * shape->height > 1 << 20) return 0;
  for (const uint32_t largest_side : {0u, 16u}) {
    const auto image = decode_jpeg(bytes, largest_side);
    if (!image.ok()) continue;
    const ImageShape& decoded = image->shape;
    if (image->pixels.size() != size_t{decoded.width} * decoded.height * decoded.channels) std::abort();
  }
  return 0;
}
