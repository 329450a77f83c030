// Width, height and channels of an image from its header. Every reader is safe on any bytes.
#include <algorithm>
#include <cstring>

#include "base/little_endian.h"
#include "base/pnm_header.h"
#include "decode/jpeg_header.h"
#include "packtrain/decode.h"

namespace packtrain {

namespace {

uint8_t byte_at(Bytes data, size_t at) { return static_cast<uint8_t>(data[at]); }
uint32_t little16(Bytes data, size_t at) { return load_le<uint16_t>(data.data() + at); }
uint32_t little24(Bytes data, size_t at) {
  return little16(data, at) | uint32_t{byte_at(data, at + 2)} << 16;
}
uint32_t little32(Bytes data, size_t at) { return load_le<uint32_t>(data.data() + at); }
uint32_t big32(Bytes data, size_t at) { return __builtin_bswap32(little32(data, at)); }
bool has_tag(Bytes data, size_t at, const char* tag) {
  return data.size() >= at + 4 && std::memcmp(data.data() + at, tag, 4) == 0;
}

// Header sizes of a known image have no zero and fit into 31 bits.
std::optional<ImageShape> plausible(ImageShape shape) {
  if (shape.width == 0 || shape.height == 0 || shape.width >> 31 || shape.height >> 31) return std::nullopt;
  return shape;
}

std::optional<ImageShape> png_shape(Bytes data) {
  if (data.size() < 26 || !has_tag(data, 12, "IHDR")) return std::nullopt;
  uint32_t channels = 0;
  switch (byte_at(data, 25)) {  // colour type
    case 0:
      channels = 1;
      break;
    case 2:
    case 3:
      channels = 3;
      break;  // a palette has RGB entries
    case 4:
      channels = 2;
      break;
    case 6:
      channels = 4;
      break;
    default:
      return std::nullopt;
  }
  return plausible({big32(data, 16), big32(data, 20), channels});
}

std::optional<ImageShape> gif_shape(Bytes data) {
  if (data.size() < 10) return std::nullopt;
  return plausible({little16(data, 6), little16(data, 8), 3});
}

std::optional<ImageShape> bmp_shape(Bytes data) {
  constexpr uint32_t kCoreHeaderBytes = 12;  // the oldest header: 16-bit sizes
  if (data.size() < 26) return std::nullopt;
  if (little32(data, 14) == kCoreHeaderBytes) return plausible({little16(data, 18), little16(data, 20), 3});
  if (data.size() < 30) return std::nullopt;
  const uint32_t height = little32(data, 22);
  const uint32_t rows = height >> 31 ? 0 - height : height;  // negative: rows from the top
  return plausible({little32(data, 18), rows, little16(data, 28) == 32 ? 4u : 3u});
}

std::optional<ImageShape> webp_shape(Bytes data) {
  if (has_tag(data, 12, "VP8X") && data.size() >= 30) {
    const bool alpha = byte_at(data, 20) & 0x10;
    return plausible({little24(data, 24) + 1, little24(data, 27) + 1, alpha ? 4u : 3u});
  }
  if (has_tag(data, 12, "VP8L") && data.size() >= 25 && byte_at(data, 20) == 0x2F) {
    const uint32_t bits = little32(data, 21);
    return plausible({(bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, bits >> 28 & 1 ? 4u : 3u});
  }
  // A key frame starts with a 3-byte frame tag and a start code; the upper two bits of each size are a scale.
  if (has_tag(data, 12, "VP8 ") && data.size() >= 30 && little24(data, 23) == 0x2A019D)
    return plausible({little16(data, 26) & 0x3FFF, little16(data, 28) & 0x3FFF, 3});
  return std::nullopt;
}

}  // namespace

std::optional<ImageShape> image_shape(Bytes head) {
  switch (media_kind(head.first(std::min(head.size(), kPnmHeadBytes)))) {
    case MediaKind::jpeg: {
      const auto header = read_jpeg_header(head);
      return header ? std::optional(header->shape) : std::nullopt;
    }
    case MediaKind::png:
      return png_shape(head);
    case MediaKind::gif:
      return gif_shape(head);
    case MediaKind::webp:
      return webp_shape(head);
    case MediaKind::bmp:
      return bmp_shape(head);
    case MediaKind::pnm: {
      const auto header = read_pnm_header(head);
      return header ? std::optional(ImageShape{header->width, header->height, header->channels})
                    : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace packtrain
