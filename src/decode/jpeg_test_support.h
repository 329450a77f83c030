// JPEGs for tests that encode_jpeg does not make: progressive ones and odd samplings.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <jpeglib.h>

#include "packtrain/decode.h"

namespace packtrain {

inline Image photo(uint32_t width, uint32_t height, uint32_t channels = 3, uint32_t seed = 1) {
  Image image{{width, height, channels}, std::vector<uint8_t>(size_t{width} * height * channels)};
  uint32_t noise = seed;
  uint8_t* pixel = image.pixels.data();
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x)
      for (uint32_t c = 0; c < channels; ++c) {
        noise = noise * 1664525 + 1013904223;
        const uint32_t slope = (x * (c + 1) + y * (3 - c % 3)) % 448;  // up and down again
        *pixel++ = static_cast<uint8_t>((slope < 224 ? slope : 447 - slope) + noise / (1u << 27));
      }
  return image;
}

struct Encoding {
  int across = 1, down = 1;  // luma samples for each of chroma
  bool progressive = false;
  bool inks = false;  // four components, as Adobe's programs store them
  int restart = 0;
  const jpeg_scan_info* scans = nullptr;  // instead of the library's own
  int scan_count = 0;
  std::string_view comment = {}, exif = {};  // exif: with its tag
};

inline std::vector<std::byte> encode(const Image& image, const Encoding& encoding) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* data = nullptr;
  unsigned long bytes = 0;
  jpeg_mem_dest(&info, &data, &bytes);
  info.image_width = image.shape.width;
  info.image_height = image.shape.height;
  info.input_components = static_cast<int>(image.shape.channels);
  info.in_color_space = encoding.inks ? JCS_CMYK : image.shape.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 90, TRUE);
  if (encoding.inks) jpeg_set_colorspace(&info, JCS_YCCK);
  info.comp_info[0].h_samp_factor = encoding.across;
  info.comp_info[0].v_samp_factor = encoding.down;
  info.restart_interval = static_cast<unsigned>(encoding.restart);
  if (encoding.progressive) jpeg_simple_progression(&info);
  if (encoding.scans != nullptr) {
    info.scan_info = encoding.scans;
    info.num_scans = encoding.scan_count;
  }
  jpeg_start_compress(&info, TRUE);
  const auto add_marker = [&](int marker, std::string_view text) {
    if (!text.empty())
      jpeg_write_marker(&info, marker, reinterpret_cast<const JOCTET*>(text.data()),
                        static_cast<unsigned>(text.size()));
  };
  add_marker(JPEG_APP0 + 1, encoding.exif);
  add_marker(JPEG_COM, encoding.comment);
  const size_t stride = size_t{image.shape.width} * image.shape.channels;
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<uint8_t*>(&image.pixels[info.next_scanline * stride]);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> encoded(begin, begin + bytes);
  std::free(data);
  return encoded;
}

}  // namespace packtrain
