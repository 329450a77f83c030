// Decoder: an encoded image to rows of RGB pixels, only those that are asked for. The seam between formats
// and the transform: each format is one file that knows its library, and a second decoder of a format may
// stand beside the first.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "decode/row_resizer.h"
#include "packtrain/decode.h"

namespace packtrain {

// What a header says. A plain value.
struct Frame {
  uint32_t width = 0, height = 0;  // as stored
  uint8_t orientation = 1;         // EXIF's: 1 upright; 5 to 8 swap width and height
  // What read() holds at once, where that grows with the image; else only rows are held.
  uint64_t memory = 0;
  std::string_view form = "an image", smaller_form;  // in words: what it is, and as what it would take less
};

// In pixels of the frame divided by `shrink`, rounded up. A plain value.
struct Region {
  uint32_t left = 0, top = 0, width = 0, height = 0;
  uint32_t shrink = 1;  // 1, 2, 4 or 8; more than 1 only where can_shrink()
};

// Reads one image after the other and keeps its memory. One thread at a time. `open` comes before `read`, and
// the bytes stay in place between them.
class PixelDecoder {
 public:
  virtual ~PixelDecoder() = default;
  virtual Result<Frame> open(Bytes encoded) = 0;  // holds no more than the header, whatever that claims
  // Gives the rows of `region` to `sink`, from its top, `region.width` pixels or more from its left edge on.
  virtual Status read(const Region& region, RowsSink& sink) = 0;
  virtual bool can_shrink() const { return false; }
  virtual uint64_t warnings() const = 0;
};

std::unique_ptr<PixelDecoder> make_jpeg_decoder();
std::unique_ptr<PixelDecoder> make_png_decoder();
std::unique_ptr<PixelDecoder> make_webp_decoder();
std::unique_ptr<PixelDecoder> make_pnm_decoder();

}  // namespace packtrain
