// Antialiased bilinear resizing, to the bit as Pillow does it: each axis on its own, across before down,
// weights of 22 bits, and 8-bit pixels in between. The kernels exist once in plain C++, which is the
// reference, and once for each instruction set that pays; all give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace packtrain {

constexpr uint32_t kWeightBits = 22;  // of the fraction; a weight of 1 is 1 << 22
constexpr uint32_t kTapMultiple = 4;  // kernels may take as many weights at once

// For every output pixel of one axis: the source pixels that it is made of, and their weights. Kept and set
// again for each image, so that its memory is reused. One thread at a time.
class ResizeAxis {
 public:
  struct Span {
    uint32_t first, count;  // of source pixels; count >= 1
  };

  // What to resize, in source pixels: outputs [window, window + outputs) of those that `length` pixels from
  // `start` on would be resized to. Weights reach no further than [clamp_begin, clamp_end). Reversed: the
  // last output comes first.
  struct Request {
    double start = 0, length = 0;  // start counts from clamp_begin
    uint32_t clamp_begin = 0, clamp_end = 0;
    uint32_t resized = 0;
    uint32_t window = 0, outputs = 0;
    bool reversed = false;
  };
  void set(const Request& request);

  uint32_t outputs() const { return static_cast<uint32_t>(spans_.size()); }
  const Span& span(uint32_t output) const { return spans_[output]; }
  // As many as the span counts, and zeros up to a multiple of kTapMultiple.
  const int32_t* weights(uint32_t output) const { return &weights_[size_t{output} * stride_]; }
  // Source pixels that any output needs, and the largest number that one needs.
  uint32_t begin() const { return begin_; }
  uint32_t end() const { return end_; }
  uint32_t widest() const { return widest_; }

 private:
  std::vector<Span> spans_;
  std::vector<int32_t> weights_;
  std::vector<double> shares_;  // of one output, before rounding
  size_t stride_ = 0;           // weights per output
  uint32_t begin_ = 0, end_ = 0, widest_ = 0;
};

// Rows of RGB pixels may be read up to kRowSlack bytes past their last pixel and are written up to as many
// past it.
constexpr size_t kRowSlack = 64;

// The weights of the axis across, in the form that a kernel likes best. Kept and set again for each image.
struct AcrossTable {
  std::vector<uint32_t> first;   // of each output: its first source byte, counted from the row's first
  std::vector<int16_t> weights;  // of each output: groups of taps, as the kernel that made it lays them out
  uint32_t groups = 0;           // for each output
};

// One instruction set. Immutable.
struct ResampleKernels {
  // Makes the table for rows whose first pixel is source pixel `row_begin`.
  void (*prepare)(const ResizeAxis& axis, uint32_t row_begin, AcrossTable& table);
  // Resizes `rows` rows of RGB pixels, each to a place of its own; `axis` and `row_begin` are those of
  // `table`. Several at once share what is known of an output.
  void (*across)(const ResizeAxis& axis, uint32_t row_begin, const AcrossTable& table,
                 const uint8_t* const* from, uint8_t* const* to, uint32_t rows);
  // One output row of `bytes` bytes as the weighted sum of `count` rows; the weights are those of an axis.
  void (*down)(const uint8_t* const* rows, const int32_t* weights, uint32_t count, size_t bytes, uint8_t* to);
};

}  // namespace packtrain
