// Resizes an image while it is decoded: source rows go in from the top, output rows come out as soon as they
// can be made. Holds as many rows as one output row needs, never the image.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/resample.h"

namespace packtrain {

// Takes rows of RGB pixels.
class RowSink {
 public:
  virtual ~RowSink() = default;
  // The row has kRowSlack bytes behind its pixels that may be read.
  virtual void take_row(const uint8_t* rgb) = 0;
};

// Takes the rows of a source, from its top, several at a time.
class RowsSink {
 public:
  virtual ~RowsSink() = default;
  // `count` rows that stay where they are during the call. Those beyond the last needed one are passed over.
  virtual void take_rows(const uint8_t* const* rows, uint32_t count) = 0;
};

// Which axis is resized first. The 8-bit pixels in between make a difference of at most one grey level.
enum class ResizeOrder : uint8_t { across_first, down_first };
// As Pillow 13 chooses: down first where that makes the image smaller by more than twice what across would.
// (Earlier versions always go across first.)
bool goes_down_first(uint32_t width, uint32_t new_width, uint32_t height, uint32_t new_height);

// Memory is kept from image to image. One thread at a time.
class RowResizer final : public RowsSink {
 public:
  explicit RowResizer(const ResampleKernels& kernels) : kernels_(kernels) {}

  // Rows to come: source rows y.begin() to y.end(), each from source column `row_begin` to x.end() at least.
  // Both axes and `output` must outlive the last row. Rows so long that holding them would take more than a
  // few MiB are resized across first in any case.
  void start(const ResizeAxis& x, const ResizeAxis& y, uint32_t row_begin, ResizeOrder order,
             RowSink& output);
  void take_rows(const uint8_t* const* rows, uint32_t count) override;
  // Whether every output row has been given out.
  bool done() const { return next_output_ == y_->outputs(); }

 private:
  uint8_t* held_row(uint32_t row) { return &held_[(row % capacity_) * held_bytes_]; }
  void give_out();

  const ResampleKernels& kernels_;
  const ResizeAxis *x_ = nullptr, *y_ = nullptr;
  RowSink* output_ = nullptr;
  ResizeOrder order_ = ResizeOrder::across_first;
  uint32_t row_begin_ = 0;
  AcrossTable table_;
  size_t held_bytes_ = 0;  // of a row, with its slack
  uint32_t capacity_ = 1;  // of the ring
  uint32_t next_source_ = 0, next_output_ = 0;
  std::vector<uint8_t> held_;          // a ring of rows: resized across, or as they came
  std::vector<uint8_t> half_resized_;  // down first: one row that is still to be resized across
  std::vector<uint8_t> output_row_;
  std::vector<const uint8_t*> taps_;  // rows of one output
};

}  // namespace packtrain
