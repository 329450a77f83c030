#include "decode/row_resizer.h"

#include <algorithm>
#include <cstring>

#include "base/make_room.h"

namespace packtrain {

namespace {

constexpr size_t kMostHeldBytes = 8 << 20;
constexpr uint32_t kRowsAtOnce = 4;  // across: as many as the widest vectors take

}  // namespace

bool goes_down_first(uint32_t width, uint32_t new_width, uint32_t height, uint32_t new_height) {
  return int64_t{height} - new_height > 2 * std::max<int64_t>(int64_t{width} - new_width, 0);
}

void RowResizer::start(const ResizeAxis& x, const ResizeAxis& y, uint32_t row_begin, ResizeOrder order,
                       RowSink& output) {
  x_ = &x;
  y_ = &y;
  output_ = &output;
  row_begin_ = row_begin;
  kernels_.prepare(x, row_begin, table_);
  const size_t source_bytes = size_t{3} * (x.end() - row_begin) + kRowSlack;
  const size_t output_bytes = size_t{3} * x.outputs() + kRowSlack;
  order_ = source_bytes * y.widest() > kMostHeldBytes ? ResizeOrder::across_first : order;
  const bool across_first = order_ == ResizeOrder::across_first;
  held_bytes_ = across_first ? output_bytes : source_bytes;
  // Rows that come at once must not overwrite those that the next output still needs.
  capacity_ = y.widest() + (across_first ? kRowsAtOnce - 1 : 0);
  grow(held_, held_bytes_ * capacity_);
  if (!across_first) grow(half_resized_, source_bytes);
  grow(output_row_, output_bytes);
  grow(taps_, y.widest());
  next_source_ = y.begin();
  next_output_ = 0;
}

void RowResizer::take_rows(const uint8_t* const* rows, uint32_t count) {
  count = std::min(count, y_->end() - next_source_);
  if (order_ == ResizeOrder::down_first) {
    for (uint32_t i = 0; i < count; ++i) {
      std::memcpy(held_row(next_source_++), rows[i], held_bytes_ - kRowSlack);
      give_out();
    }
    return;
  }
  for (uint32_t i = 0; i < count; i += kRowsAtOnce) {
    const uint32_t at_once = std::min(count - i, kRowsAtOnce);
    uint8_t* held[kRowsAtOnce];
    for (uint32_t row = 0; row < at_once; ++row) held[row] = held_row(next_source_ + row);
    kernels_.across(*x_, row_begin_, table_, rows + i, held, at_once);
    next_source_ += at_once;
    give_out();
  }
}

void RowResizer::give_out() {
  for (; next_output_ < y_->outputs(); ++next_output_) {
    const auto [first, taps] = y_->span(next_output_);
    if (first + taps > next_source_) return;
    for (uint32_t tap = 0; tap < taps; ++tap) taps_[tap] = held_row(first + tap);
    const bool finished = order_ == ResizeOrder::across_first;
    uint8_t* const output = output_row_.data();
    uint8_t* const to = finished ? output : half_resized_.data();
    kernels_.down(taps_.data(), y_->weights(next_output_), taps, held_bytes_ - kRowSlack, to);
    if (!finished) kernels_.across(*x_, row_begin_, table_, &to, &output, 1);
    output_->take_row(output);
  }
}

}  // namespace packtrain
