#include "decode/jpeg_memory.h"

#include <gtest/gtest.h>

#include <csetjmp>
#include <cstdlib>
#include <optional>
#include <vector>

namespace packtrain {
namespace {

using Encoded = std::vector<unsigned char>;

Encoded encode_white(JDIMENSION width, JDIMENSION height, bool progressive) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* data = nullptr;
  unsigned long bytes = 0;
  jpeg_mem_dest(&info, &data, &bytes);
  info.image_width = width;
  info.image_height = height;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<JSAMPLE> row(size_t{width} * 3);
  for (JDIMENSION y = 0; y < height; ++y) {
    for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<JSAMPLE>(i * 7 + y * y / 3);
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Encoded encoded(data, data + bytes);
  std::free(data);
  return encoded;
}

// Decodes image after image with one object of the library, in `memory` if there is any.
class Decompressor {
 public:
  explicit Decompressor(JpegMemory* memory) {
    info_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = [](j_common_ptr info) {
      std::longjmp(reinterpret_cast<Errors*>(info->err)->jump, 1);
    };
    jpeg_create_decompress(&info_);
    if (memory != nullptr) memory->serve(info_);
  }
  ~Decompressor() { jpeg_destroy_decompress(&info_); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  bool decode(const Encoded& encoded) {
    if (setjmp(errors_.jump) != 0) {
      jpeg_abort_decompress(&info_);
      return false;
    }
    jpeg_mem_src(&info_, encoded.data(), encoded.size());
    jpeg_read_header(&info_, TRUE);
    jpeg_start_decompress(&info_);
    const size_t stride = size_t{info_.output_width} * 3;
    pixels_.resize(stride * info_.output_height);
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = &pixels_[info_.output_scanline * stride];
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }
  const std::vector<JSAMPLE>& pixels() const { return pixels_; }
  int error() const { return errors_.manager.msg_code; }

 private:
  struct Errors {
    jpeg_error_mgr manager;
    jmp_buf jump;
  };
  jpeg_decompress_struct info_{};
  Errors errors_{};
  std::vector<JSAMPLE> pixels_;
};

TEST(JpegMemoryTest, GivesTheSamePixelsAndSettles) {
  std::vector<Encoded> images;
  for (const bool progressive : {false, true})
    for (const JDIMENSION side : {1u, 17u, 300u, 1025u})
      images.push_back(encode_white(side, side / 2 + 1, progressive));
  JpegMemory memory(64 << 20);
  Decompressor ours(&memory), library(nullptr);
  std::optional<size_t> settled;
  for (int round = 0; round < 3; ++round) {
    for (const Encoded& image : images) {
      ASSERT_TRUE(library.decode(image));
      ASSERT_TRUE(ours.decode(image));
      EXPECT_EQ(ours.pixels(), library.pixels());
    }
    if (round == 1) settled = memory.held();
  }
  EXPECT_GT(memory.held(), size_t{1025} * 513 * 3);  // the coefficients of the largest, at least
  EXPECT_EQ(memory.held(), settled);
}

TEST(JpegMemoryTest, TheLimitIsAnErrorOfTheLibraryAndTheNextImageIsFine) {
  const Encoded large = encode_white(2000, 2000, true), small = encode_white(64, 64, true);
  JpegMemory memory(1 << 20);
  Decompressor decompressor(&memory);
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(decompressor.decode(large));
    EXPECT_EQ(decompressor.error(), JERR_OUT_OF_MEMORY);
    EXPECT_TRUE(decompressor.decode(small));
    EXPECT_LE(memory.held(), size_t{1} << 20);
  }
}

TEST(JpegMemoryTest, AnImageCutShortLeavesNothingBehind) {
  const Encoded whole = encode_white(500, 400, true);
  JpegMemory memory(64 << 20);
  Decompressor ours(&memory), library(nullptr);
  ASSERT_TRUE(library.decode(whole));
  for (size_t bytes : {size_t{2}, whole.size() / 8, whole.size() / 2}) {
    Encoded cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(bytes));
    static_cast<void>(ours.decode(cut));  // the library fills up what is missing, or gives up
    ASSERT_TRUE(ours.decode(whole));
    EXPECT_EQ(ours.pixels(), library.pixels());
  }
}

}  // namespace
}  // namespace packtrain
