#include "decode/jpeg_header.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace packtrain {

namespace {

constexpr uint8_t kStartOfImage = 0xD8, kEndOfImage = 0xD9, kStartOfScan = 0xDA, kApp1 = 0xE1, kApp14 = 0xEE;
constexpr uint8_t kProgressiveFrame = 0xC2;
constexpr std::string_view kExifTag("Exif\0\0", 6);
constexpr size_t kFrameHeaderBytes = 6;  // precision, height, width, number of components

uint8_t header_byte(Bytes data, size_t at) { return static_cast<uint8_t>(data[at]); }
uint32_t big_endian16(Bytes data, size_t at) {
  return uint32_t{header_byte(data, at)} << 8 | header_byte(data, at + 1);
}

// SOF0 to SOF15 without DHT (C4), JPG (C8) and DAC (CC), which share the range.
bool starts_frame(uint8_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

// From three bytes a component: its number, its sampling factors, its table.
Chroma chroma_of(Bytes components, uint32_t count) {
  if (count == 1) return Chroma::grey;
  uint32_t luma_across = 0, luma_down = 0, across = 1, down = 1;
  for (uint32_t i = 0; i < count && i * 3 + 1 < components.size(); ++i) {
    const uint8_t factors = header_byte(components, i * 3 + 1);
    if (i == 0) {
      luma_across = factors >> 4;
      luma_down = factors & 15;
    } else {
      across = std::max<uint32_t>(across, factors >> 4);
      down = std::max<uint32_t>(down, factors & 15);
    }
  }
  if (luma_across < 2 * across) return Chroma::s444;
  return luma_down < 2 * down ? Chroma::s422 : Chroma::s420;
}
bool stands_alone(uint8_t marker) { return marker == 0x01 || (marker >= 0xD0 && marker <= kStartOfImage); }

}  // namespace

std::optional<JpegHeader> read_jpeg_header(Bytes data) {
  if (data.size() < 4 || header_byte(data, 0) != 0xFF || header_byte(data, 1) != kStartOfImage)
    return std::nullopt;
  JpegHeader header;
  size_t at = 2;
  while (at + 1 < data.size()) {
    // Some cameras leave stray bytes between segments; decoders step over them, and so does this.
    if (header_byte(data, at) != 0xFF) {
      ++at;
      continue;
    }
    const uint8_t marker = header_byte(data, at + 1);
    if (marker == 0xFF) {  // fill byte
      ++at;
      continue;
    }
    at += 2;
    if (marker == 0x00 || stands_alone(marker)) continue;
    if (marker == kEndOfImage || marker == kStartOfScan || at + 2 > data.size()) return std::nullopt;
    const size_t length = big_endian16(data, at);
    if (length < 2) return std::nullopt;
    const Bytes body = data.subspan(at + 2, std::min(length - 2, data.size() - at - 2));
    if (starts_frame(marker)) {
      if (body.size() < kFrameHeaderBytes) return std::nullopt;
      header.bits = header_byte(body, 0);
      header.progressive = marker == kProgressiveFrame;
      header.shape = {big_endian16(body, 3), big_endian16(body, 1), header_byte(body, 5)};
      // Height 0 means that it follows behind the first scan: not known from the header.
      const ImageShape& shape = header.shape;
      if (shape.width == 0 || shape.height == 0 || shape.channels == 0) return std::nullopt;
      header.chroma = chroma_of(body.subspan(kFrameHeaderBytes), shape.channels);
      return header;
    }
    if (marker == kApp14 && body.size() >= 5 && std::memcmp(body.data(), "Adobe", 5) == 0)
      header.has_adobe = true;
    if (marker == kApp1 && header.exif.empty() && body.size() > kExifTag.size() &&
        std::memcmp(body.data(), kExifTag.data(), kExifTag.size()) == 0)
      header.exif = body.subspan(kExifTag.size());
    at += length;
  }
  return std::nullopt;
}

}  // namespace packtrain
