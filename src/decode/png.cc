// PNG through libpng: any depth, palette, grey or alpha, to 8-bit RGB as Pillow's convert("RGB") has it. Rows
// stream; interlaced images are held whole. The only file that includes png.h.
#include <png.h>

#include <fmt/format.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <vector>

#include "base/hash.h"
#include "base/little_endian.h"
#include "decode/exif.h"
#include "decode/pixel_decoder.h"

namespace packtrain {

namespace {

constexpr uint32_t kLargestPngSide = 1 << 20;
constexpr png_alloc_size_t kLargestChunk = 8 << 20;  // of text and profiles, which nobody here reads

bool is_name(const char* name) {
  return std::all_of(name, name + 4, [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); });
}

// That the chain of chunks reaches its end, and that those which make the image are what their checks say.
// Rows behind the region are not decoded, and a file in which some of them are damaged is damaged all the
// same. The library does not check them again.
Status check_chunks(Bytes encoded) {
  constexpr size_t kSignatureBytes = 8, kLengthBytes = 4, kNameBytes = 4, kCheckBytes = 4;
  constexpr size_t kChunkFrameBytes = kLengthBytes + kNameBytes + kCheckBytes;
  const auto number_at = [&](size_t at) { return __builtin_bswap32(load_le<uint32_t>(encoded.data() + at)); };
  for (size_t at = kSignatureBytes; at + kChunkFrameBytes <= encoded.size();) {
    const size_t length = number_at(at);
    if (length > encoded.size() - at - kChunkFrameBytes) break;
    const Bytes checked = encoded.subspan(at + kLengthBytes, kNameBytes + length);
    const auto* name = reinterpret_cast<const char*>(checked.data());
    const bool makes_image = name[0] >= 'A' && name[0] <= 'Z';
    if (makes_image && crc32(checked) != number_at(at + kLengthBytes + checked.size()))
      return Status(Code::corrupt, fmt::format("the PNG is damaged: its chunk {}, {} bytes from the start, "
                                               "is not what its check says",
                                               is_name(name) ? std::string_view(name, kNameBytes) : "?", at));
    if (std::memcmp(name, "IEND", kNameBytes) == 0) return {};
    at += kChunkFrameBytes + length;
  }
  return Status(Code::corrupt, "the PNG is cut short: its end chunk is missing");
}

// Reads one image; libpng's objects cannot be used again, so that each image makes them anew.
class PngDecoder final : public PixelDecoder {
 public:
  PngDecoder() = default;
  ~PngDecoder() override { close(); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  Result<Frame> open(Bytes encoded) override;
  Status read(const Region& region, RowsSink& sink) override;
  uint64_t warnings() const override { return warnings_; }

 private:
  // The only place with setjmp. A step, and what it calls, must own nothing: the library leaves it by
  // longjmp.
  bool guarded(void (*step)(PngDecoder&)) {
    if (setjmp(jump_) != 0) return false;
    step(*this);
    return true;
  }
  void close() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Status failure() {
    close();
    return Status(Code::corrupt, std::string("cannot decode the PNG: ") + message_);
  }
  static void read_header(PngDecoder& self);
  static void read_rows(PngDecoder& self);

  [[noreturn]] static void on_error(png_structp png, png_const_charp message) {
    auto& self = *static_cast<PngDecoder*>(png_get_error_ptr(png));
    self.message_[0] = '\0';
    std::strncat(self.message_, message, sizeof(self.message_) - 1);
    std::longjmp(self.jump_, 1);
  }
  static void on_warning(png_structp png, png_const_charp) {
    ++static_cast<PngDecoder*>(png_get_error_ptr(png))->warnings_;
  }
  static void on_read(png_structp png, png_bytep to, size_t count) {
    auto& self = *static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (count > self.rest_.size()) png_error(png, "the file is cut short");
    std::memcpy(to, self.rest_.data(), count);
    self.rest_ = self.rest_.subspan(count);
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  jmp_buf jump_{};
  char message_[128] = "";
  uint64_t warnings_ = 0;
  Bytes rest_;  // of the file
  Frame frame_;
  bool interlaced_ = false;
  std::vector<uint8_t> rows_;  // one row, or all of them
  Region region_;
  RowsSink* sink_ = nullptr;
};

void PngDecoder::read_header(PngDecoder& self) {
  png_structp png = self.png_;
  png_set_user_limits(png, kLargestPngSide, kLargestPngSide);
  png_set_chunk_malloc_max(png, kLargestChunk);
  png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_NO_CHANGE);
  png_set_read_fn(png, &self, on_read);
  png_read_info(png, self.info_);
  png_uint_32 width = 0, height = 0;
  int depth = 0, colour = 0, interlace = 0;
  png_get_IHDR(png, self.info_, &width, &height, &depth, &colour, &interlace, nullptr, nullptr);
  self.frame_ = {width, height, 1};
  self.interlaced_ = interlace != PNG_INTERLACE_NONE;
  if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (colour == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
  if (depth == 16) png_set_strip_16(png);
  png_set_strip_alpha(png);
  if ((colour & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png);
  if (self.interlaced_) png_set_interlace_handling(png);
  png_bytep exif = nullptr;
  png_uint_32 exif_bytes = 0;
  if (png_get_eXIf_1(png, self.info_, &exif_bytes, &exif) != 0)
    self.frame_.orientation = exif_orientation(Bytes(reinterpret_cast<const std::byte*>(exif), exif_bytes));
  png_read_update_info(png, self.info_);
}

void PngDecoder::read_rows(PngDecoder& self) {
  const size_t row_bytes = size_t{3} * self.frame_.width + kRowSlack;
  const Region& region = self.region_;
  uint8_t* rows = self.rows_.data();
  if (self.interlaced_) {
    for (int pass = png_set_interlace_handling(self.png_); pass > 0; --pass)
      for (uint32_t y = 0; y < self.frame_.height; ++y)
        png_read_row(self.png_, rows + y * row_bytes, nullptr);
  }
  for (uint32_t y = 0; y < region.top + region.height; ++y) {
    uint8_t* row = rows + (self.interlaced_ ? y * row_bytes : 0);
    if (!self.interlaced_) png_read_row(self.png_, row, nullptr);
    if (y < region.top) continue;
    const uint8_t* pixels = row + size_t{3} * region.left;
    self.sink_->take_rows(&pixels, 1);
  }
}

Result<Frame> PngDecoder::open(Bytes encoded) {
  close();
  png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
  info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
  if (info_ == nullptr) return Status(Code::no_room, "no memory for a PNG decoder");
  if (Status status = check_chunks(encoded); !status.ok()) {
    close();
    return status;
  }
  rest_ = encoded;
  if (!guarded(read_header)) return failure();
  // Three bytes a pixel: every other form has been asked away.
  if (const size_t row = png_get_rowbytes(png_, info_); row != size_t{3} * frame_.width)
    return Status(Code::unsupported,
                  fmt::format("a PNG with rows of {} bytes for {} pixels", row, frame_.width));
  frame_.memory = (uint64_t{3} * frame_.width + kRowSlack) * (interlaced_ ? frame_.height : 1);
  frame_.form = interlaced_ ? "an interlaced PNG" : "a PNG";
  frame_.smaller_form = interlaced_ ? "without interlacing" : "as baseline JPEG";
  return frame_;
}

Status PngDecoder::read(const Region& region, RowsSink& sink) {
  const size_t bytes = (size_t{3} * frame_.width + kRowSlack) * (interlaced_ ? frame_.height : 1);
  if (rows_.size() < bytes) rows_.resize(bytes);
  region_ = region;
  sink_ = &sink;
  if (!guarded(read_rows)) return failure();
  close();
  return {};
}

}  // namespace

std::unique_ptr<PixelDecoder> make_png_decoder() { return std::make_unique<PngDecoder>(); }

}  // namespace packtrain
