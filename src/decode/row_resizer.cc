#include "decode/row_resizer.h"

#include <algorithm>

namespace packtrain {

void RowResizer::start(const ResizeAxis& x, const ResizeAxis& y, uint32_t row_begin, RowSink& output) {
  x_ = &x;
  y_ = &y;
  output_ = &output;
  row_begin_ = row_begin;
  kernels_.prepare(x, row_begin, table_);
  row_bytes_ = size_t{3} * x.outputs() + kRowSlack;
  capacity_ = y.widest() + kRowsAtOnce;
  // Grown only, never cleared: every row is written before it is read.
  if (resized_.size() < row_bytes_ * capacity_) resized_.resize(row_bytes_ * capacity_);
  if (output_row_.size() < row_bytes_) output_row_.resize(row_bytes_);
  if (taps_.size() < y.widest()) taps_.resize(y.widest());
  next_source_ = y.begin();
  next_output_ = 0;
}

void RowResizer::take_rows(const uint8_t* const* rows, uint32_t count) {
  count = std::min(count, y_->end() - next_source_);
  while (count > 0) {
    const uint32_t some = std::min(count, kRowsAtOnce);
    resize_across(rows, some);
    give_out();
    rows += some;
    count -= some;
  }
}

void RowResizer::resize_across(const uint8_t* const* rows, uint32_t count) {
  const uint8_t* from[kRowsAtOnce];
  uint8_t* to[kRowsAtOnce];
  for (uint32_t i = 0; i < kRowsAtOnce; ++i) {
    from[i] = rows[std::min(i, count - 1)];
    // A row too few: the last one again, to where the next row will be written.
    to[i] = resized_row(next_source_ + i);
  }
  kernels_.across(*x_, row_begin_, table_, from, to);
  next_source_ += count;
}

void RowResizer::give_out() {
  const size_t bytes = size_t{3} * x_->outputs();
  for (; next_output_ < y_->outputs(); ++next_output_) {
    const auto [first, taps] = y_->span(next_output_);
    if (first + taps > next_source_) return;
    for (uint32_t tap = 0; tap < taps; ++tap) taps_[tap] = resized_row(first + tap);
    kernels_.down(taps_.data(), y_->weights(next_output_), taps, bytes, output_row_.data());
    output_->take_row(output_row_.data());
  }
}

}  // namespace packtrain
