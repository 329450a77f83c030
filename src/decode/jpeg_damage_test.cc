// Damage inside a JPEG's scans, with the library itself as the oracle: what it warns of is a bad sample,
// unless no pixel depends on it.
#include <gtest/gtest.h>

#include <csetjmp>
#include <cstdio>
#include <random>
#include <vector>

#include <jpeglib.h>

#include "base/test_counts.h"
#include "decode/jpeg_test_support.h"
#include "packtrain/transform.h"

namespace packtrain {
namespace {

// Decodes the whole image with the library's own handling of errors.
class Oracle {
 public:
  // Whether it neither fails nor warns.
  bool finds_clean(const std::vector<std::byte>& encoded) {
    jpeg_decompress_struct info{};
    info.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = [](j_common_ptr failed) {
      std::longjmp(reinterpret_cast<Errors*>(failed->err)->jump, 1);
    };
    errors_.base.output_message = [](j_common_ptr) {};
    bool whole = false;
    if (setjmp(errors_.jump) == 0) {
      decode(info, encoded);
      whole = true;
    }
    const bool clean = whole && errors_.base.num_warnings == 0;
    jpeg_destroy_decompress(&info);
    return clean;
  }

 private:
  struct Errors {
    jpeg_error_mgr base;
    jmp_buf jump;
  };
  void decode(jpeg_decompress_struct& info, const std::vector<std::byte>& encoded) {
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(encoded.data()), encoded.size());
    jpeg_read_header(&info, TRUE);
    jpeg_start_decompress(&info);
    row_.resize(size_t{info.output_width} * static_cast<size_t>(info.output_components));
    JSAMPROW row = row_.data();
    while (info.output_scanline < info.output_height) jpeg_read_scanlines(&info, &row, 1);
    jpeg_finish_decompress(&info);
  }
  Errors errors_{};
  std::vector<JSAMPLE> row_;
};

size_t first_scan(const std::vector<std::byte>& encoded) {
  for (size_t at = 0; at + 1 < encoded.size(); ++at)
    if (encoded[at] == std::byte{0xFF} && encoded[at + 1] == std::byte{0xDA}) return at;
  return 0;
}

ImageSpec whole_frame() {
  ImageSpec spec;
  spec.crop = CropKind::resize;
  spec.width = spec.height = 16;
  return spec;
}

TEST(JpegDamageTest, WhatTheLibraryWarnsOfIsABadSample) {
  const ImageSpec spec = whole_frame();
  const auto reader = ImageReader::make(spec).value();
  std::vector<std::byte> slot(spec.bytes());
  std::mt19937 random(4);
  Oracle oracle;
  for (const Encoding& encoding : {Encoding{.across = 2, .down = 2}, Encoding{.progressive = true},
                                   Encoding{.across = 2, .down = 1, .restart = 5}}) {
    const auto sound = encode(photo(160, 120), encoding);
    ASSERT_TRUE(oracle.finds_clean(sound));
    const size_t begin = first_scan(sound) + 20, end = sound.size() - 2;
    int refused = 0;
    for (int i = 0; i < count_of(30, 300, 3000); ++i) {
      auto damaged = sound;
      damaged[begin + random() % (end - begin)] ^= std::byte{1} << random() % 8;
      const bool clean = oracle.finds_clean(damaged);
      const Status status = reader->read(damaged, 0, slot);
      refused += !status.ok();
      if (clean) {
        EXPECT_TRUE(status.ok()) << status.message();
      } else if (status.ok()) {
        EXPECT_EQ(damaged[end - 1], std::byte{0}) << "what is left of the scan is no filling";
      } else {
        EXPECT_EQ(status.code(), Code::corrupt) << status.message();
      }
    }
    EXPECT_GT(refused, 0);
  }
}

TEST(JpegDamageTest, BytesBehindTheScanAreDamageUnlessTheyAreZero) {
  const ImageSpec spec = whole_frame();
  const auto reader = ImageReader::make(spec).value();
  std::vector<std::byte> expected(spec.bytes()), slot(spec.bytes());
  for (const bool progressive : {false, true}) {
    const auto sound = encode(photo(160, 120), {.progressive = progressive});
    ASSERT_TRUE(reader->read(sound, 0, expected).ok());
    const auto with_strays = [&](std::byte stray, int count) {
      auto odd = sound;
      odd.insert(odd.end() - 2, static_cast<size_t>(count), stray);
      return odd;
    };
    const uint64_t warnings = reader->warnings();
    for (const int count : {1, 7, 30, 500}) {
      const Status filled = reader->read(with_strays(std::byte{0}, count), 0, slot);
      EXPECT_TRUE(filled.ok()) << filled.message();
      EXPECT_EQ(slot, expected);
    }
    EXPECT_GT(reader->warnings(), warnings);
    // The library reads a few bytes ahead, and does not tell of those that are left of them.
    for (const int count : {30, 500})
      EXPECT_EQ(reader->read(with_strays(std::byte{0x5A}, count), 0, slot).code(), Code::corrupt);
  }
}

TEST(JpegDamageTest, RowsThatACropDoesNotNeedAreNotLookedAt) {
  auto damaged = encode(photo(160, 400), {});
  damaged.insert(damaged.end() - 2, 100, std::byte{0x5A});
  ImageSpec spec;
  spec.width = spec.height = 16;
  spec.scale_low = spec.scale_high = 0.1;
  const auto reader = ImageReader::make(spec).value();
  std::vector<std::byte> slot(spec.bytes());
  for (uint64_t key = 0; key < 50; ++key) {
    const CropBox box = draw_crop(spec, 160, 400, key);
    const bool at_the_end = box.top + box.height >= 400;
    EXPECT_EQ(reader->read(damaged, key, slot).ok(), !at_the_end);
  }
}

}  // namespace
}  // namespace packtrain
