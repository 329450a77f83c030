// Part of a JPEG, through the scanline interface of libjpeg-turbo: columns by whole blocks, rows skipped in
// front and left undone behind. Pixels are those of a full decode, to the bit.
#include "decode/jpeg_input.h"

#include <cstring>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/make_room.h"
#include "decode/exif.h"
#include "decode/jpeg_header.h"
#include "decode/pixel_decoder.h"

namespace packtrain {

namespace {

constexpr uint32_t kRowsAtATime = 16;
constexpr uint32_t kWidestBlock = 32;  // pixels in one unit of the widest sampling
constexpr JDIMENSION kNarrowest = 32;  // of fewer columns the library would not smooth the chroma
// The library writes aligned rows past the cache, where the resize would have to fetch them again from
// memory.
constexpr size_t kRowAlignment = 64, kOffAlignment = 8;
constexpr uint64_t kRowMemory = uint64_t{32} << 20;  // twice what the widest image takes without coefficients

// Pillow's arithmetic, to the bit. Four inks are stored inverted, as Adobe's programs do: Pillow takes that
// for granted.
void inks_to_rgb(const uint8_t* inks, size_t pixels, uint8_t* rgb) {
  for (size_t i = 0; i < pixels; ++i, inks += 4, rgb += 3) {
    const uint32_t white = inks[3];
    for (int channel = 0; channel < 3; ++channel) {
      const uint32_t product = (255u - inks[channel]) * white + 128;
      rgb[channel] = static_cast<uint8_t>(white - (((product >> 8) + product) >> 8));
    }
  }
}

class JpegDecoder final : public PixelDecoder {
 public:
  JpegDecoder() : working_memory_(kRowMemory) {
    info_.err = &errors_;
    made_ = guarded([](JpegDecoder& self) { jpeg_create_decompress(&self.info_); });
    if (made_) working_memory_.serve(info_);
  }
  ~JpegDecoder() override { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  Result<Frame> open(Bytes encoded) override;
  Status read(const Region& region, RowsSink& sink) override;
  bool can_shrink() const override { return true; }
  uint64_t warnings() const override { return errors_.harmless; }

 private:
  // The only place with setjmp. A step, and what it calls, must own nothing: the library leaves it by
  // longjmp.
  bool guarded(void (*step)(JpegDecoder&)) {
    if (setjmp(errors_.jump) != 0) return false;
    step(*this);
    return true;
  }
  Status failure() { return errors_.failure(reinterpret_cast<j_common_ptr>(&info_), "decode the JPEG"); }
  bool has_end_marker() const;
  static void read_region(JpegDecoder& self);

  JpegMemory working_memory_;
  bool made_ = false;
  jpeg_decompress_struct info_{};
  JpegErrors errors_;
  JpegInput input_;
  std::vector<uint8_t> rows_;  // kRowsAtATime of them, as the library gives them
  std::vector<uint8_t> rgb_;   // the same as RGB, for images of four inks
  Region region_;              // what read_region is to do
  RowsSink* sink_ = nullptr;
  size_t row_bytes_ = 0, rgb_row_bytes_ = 0;
};

// Behind the header: a thumbnail in front may hold one too. At the very end in nearly every file.
bool JpegDecoder::has_end_marker() const {
  const JOCTET* data = input_.source.next_input_byte;
  for (size_t at = input_.source.bytes_in_buffer; at >= 2; --at)
    if (data[at - 2] == 0xFF && data[at - 1] == JPEG_EOI) return true;
  return false;
}

Result<Frame> JpegDecoder::open(Bytes encoded) {
  if (!made_) return Status(Code::no_room, "no memory for a JPEG decoder");
  jpeg_abort_decompress(&info_);
  input_.feed(info_, encoded);
  if (!guarded([](JpegDecoder& self) { jpeg_read_header(&self.info_, TRUE); })) return failure();
  if (info_.num_components != 1 && info_.num_components != 3 && info_.num_components != 4)
    return Status(Code::unsupported,
                  fmt::format("a JPEG of {} components; 1, 3 or 4 are read", info_.num_components));
  // Versions of the library that read more would want other rows than the working memory gives.
  if (info_.data_precision != 8)
    return Status(Code::unsupported, fmt::format("a JPEG of {} bits; 8 are read", info_.data_precision));
  if (!has_end_marker()) return Status(Code::corrupt, "the JPEG is cut short: its end marker is missing");
  Frame frame{info_.image_width, info_.image_height, 1};
  // Held until the last scan has been read.
  if (jpeg_has_multiple_scans(&info_)) frame.memory = coefficient_bytes(info_);
  frame.form = "a progressive JPEG";
  frame.smaller_form = "as baseline JPEG";
  working_memory_.allow(frame.memory + kRowMemory);
  if (const auto header = read_jpeg_header(encoded); header && !header->exif.empty())
    frame.orientation = exif_orientation(header->exif);
  return frame;
}

Status JpegDecoder::read(const Region& region, RowsSink& sink) {
  region_ = region;
  sink_ = &sink;
  const bool inks = info_.num_components == 4;
  info_.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  info_.dct_method = JDCT_ISLOW;
  info_.do_fancy_upsampling = TRUE;
  info_.scale_num = 1;
  info_.scale_denom = region.shrink;
  // The library moves the left edge to a block's; one pixel more on either side is for smooth chroma.
  const size_t widest = std::max<size_t>(region.width + 2, kNarrowest) + kWidestBlock;
  row_bytes_ = (widest * (inks ? 4 : 3) + kRowSlack + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  rgb_row_bytes_ = widest * 3 + kRowSlack;
  const size_t all_rows = row_bytes_ * kRowsAtATime + 2 * kRowAlignment;
  grow(rows_, all_rows);
  if (inks) grow(rgb_, rgb_row_bytes_ * kRowsAtATime);
  if (!guarded(read_region)) return failure();
  jpeg_abort_decompress(&info_);
  return {};
}

void JpegDecoder::read_region(JpegDecoder& self) {
  jpeg_decompress_struct& info = self.info_;
  const Region& region = self.region_;
  jpeg_start_decompress(&info);
  JDIMENSION left = region.left > 0 ? region.left - 1 : 0;
  JDIMENSION right = std::min(info.output_width, region.left + region.width + 1);
  if (right - left < kNarrowest) {
    right = std::min(info.output_width, left + kNarrowest);
    left = std::min(left, right - std::min(right, kNarrowest));
  }
  JDIMENSION width = right - left;
  if (width < info.output_width) {
    jpeg_crop_scanline(&info, &left, &width);
  } else {
    left = 0;
  }
  if (region.top > 0) jpeg_skip_scanlines(&info, region.top);
  const bool inks = info.out_color_space == JCS_CMYK;
  const size_t in_front = region.left - left;
  const auto base = reinterpret_cast<uintptr_t>(self.rows_.data());
  uint8_t* first_row = self.rows_.data() + (kRowAlignment - base % kRowAlignment) + kOffAlignment;
  JSAMPROW rows[kRowsAtATime];
  const uint8_t* pixels[kRowsAtATime];
  for (uint32_t i = 0; i < kRowsAtATime; ++i) {
    rows[i] = first_row + i * self.row_bytes_;
    pixels[i] = inks ? &self.rgb_[i * self.rgb_row_bytes_] : rows[i] + 3 * in_front;
  }
  for (uint32_t remaining = region.height; remaining > 0;) {
    // The library gives one or two rows a call; several at once are resized in half the time.
    const JDIMENSION wanted = std::min(remaining, kRowsAtATime);
    JDIMENSION count = 0;
    while (count < wanted) {
      const JDIMENSION more = jpeg_read_scanlines(&info, rows + count, wanted - count);
      if (more == 0) refuse_to_refill(&info);
      count += more;
    }
    if (inks)
      for (uint32_t i = 0; i < count; ++i)
        inks_to_rgb(rows[i] + 4 * in_front, region.width, &self.rgb_[i * self.rgb_row_bytes_]);
    self.sink_->take_rows(pixels, count);
    remaining -= count;
  }
  // Codes that went wrong may show only in what they leave of the scan.
  if (info.output_scanline == info.output_height) jpeg_finish_decompress(&info);
}

}  // namespace

std::unique_ptr<PixelDecoder> make_jpeg_decoder() { return std::make_unique<JpegDecoder>(); }

}  // namespace packtrain
