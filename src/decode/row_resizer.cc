#include "decode/row_resizer.h"

#include <algorithm>
#include <cstring>

namespace packtrain {

namespace {

constexpr size_t kMostHeldBytes = 8 << 20;

// Grown only, never cleared: every row is written before it is read.
template <class T>
void grow(std::vector<T>& vector, size_t size) {
  if (vector.size() < size) vector.resize(size);
}

}  // namespace

void RowResizer::start(const ResizeAxis& x, const ResizeAxis& y, uint32_t row_begin, ResizeOrder order,
                       RowSink& output) {
  x_ = &x;
  y_ = &y;
  output_ = &output;
  row_begin_ = row_begin;
  kernels_.prepare(x, row_begin, table_);
  capacity_ = y.widest() + kRowsAtOnce;
  const size_t source_bytes = size_t{3} * (x.end() - row_begin) + kRowSlack;
  const size_t output_bytes = size_t{3} * x.outputs() + kRowSlack;
  order_ = source_bytes * capacity_ > kMostHeldBytes ? ResizeOrder::across_first : order;
  held_bytes_ = order_ == ResizeOrder::down_first ? source_bytes : output_bytes;
  grow(held_, held_bytes_ * capacity_);
  if (order_ == ResizeOrder::down_first) grow(half_resized_, source_bytes * kRowsAtOnce);
  grow(output_rows_, output_bytes * kRowsAtOnce);
  grow(taps_, y.widest());
  next_source_ = y.begin();
  next_output_ = 0;
}

void RowResizer::take_rows(const uint8_t* const* rows, uint32_t count) {
  count = std::min(count, y_->end() - next_source_);
  while (count > 0) {
    const uint32_t some = std::min(count, kRowsAtOnce);
    if (order_ == ResizeOrder::across_first) {
      resize_across(rows, some);
      give_out();
    } else {
      hold(rows, some);
      give_out_down_first();
    }
    rows += some;
    count -= some;
  }
}

void RowResizer::resize_across(const uint8_t* const* rows, uint32_t count) {
  const uint8_t* from[kRowsAtOnce];
  uint8_t* to[kRowsAtOnce];
  for (uint32_t i = 0; i < kRowsAtOnce; ++i) {
    from[i] = rows[std::min(i, count - 1)];
    // Rows too few: the last one again, to where the next row will be written.
    to[i] = held_row(next_source_ + i);
  }
  kernels_.across(*x_, row_begin_, table_, from, to);
  next_source_ += count;
}

void RowResizer::hold(const uint8_t* const* rows, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    std::memcpy(held_row(next_source_++), rows[i], held_bytes_ - kRowSlack);
}

bool RowResizer::resize_down(uint8_t* to) {
  const auto [first, taps] = y_->span(next_output_);
  if (first + taps > next_source_) return false;
  for (uint32_t tap = 0; tap < taps; ++tap) taps_[tap] = held_row(first + tap);
  kernels_.down(taps_.data(), y_->weights(next_output_), taps, held_bytes_ - kRowSlack, to);
  return true;
}

void RowResizer::give_out() {
  for (; next_output_ < y_->outputs(); ++next_output_) {
    if (!resize_down(output_rows_.data())) return;
    output_->take_row(output_rows_.data());
  }
}

void RowResizer::give_out_down_first() {
  const size_t output_bytes = size_t{3} * x_->outputs() + kRowSlack;
  const uint8_t* from[kRowsAtOnce];
  uint8_t* to[kRowsAtOnce];
  while (next_output_ < y_->outputs()) {
    // What waits is counted by the output's number: kRowsAtOnce of them go on together, and the last ones in
    // any case.
    const uint32_t waiting = next_output_ % kRowsAtOnce;
    if (!resize_down(&half_resized_[waiting * held_bytes_])) return;
    ++next_output_;
    if (waiting + 1 < kRowsAtOnce && next_output_ < y_->outputs()) continue;
    for (uint32_t i = 0; i < kRowsAtOnce; ++i) {
      from[i] = &half_resized_[std::min(i, waiting) * held_bytes_];
      to[i] = &output_rows_[i * output_bytes];
    }
    kernels_.across(*x_, row_begin_, table_, from, to);
    for (uint32_t i = 0; i <= waiting; ++i) output_->take_row(to[i]);
  }
}

}  // namespace packtrain
