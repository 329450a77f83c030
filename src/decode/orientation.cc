#include "decode/orientation.h"

#include <cstring>

namespace packtrain {

void TurningSink::start(uint32_t width, uint32_t height) {
  width_ = width;
  height_ = height;
  rows_ = 0;
  stored_.resize(size_t{3} * width * height);
}

void TurningSink::take_row(const uint8_t* rgb) {
  const size_t bytes = size_t{3} * width_;
  std::memcpy(&stored_[bytes * rows_++], rgb, bytes);
}

void TurningSink::give_out(Orientation turn, bool mirrored, RowSink& sink) {
  const uint32_t seen_width = turn.swaps_axes() ? height_ : width_;
  const uint32_t seen_height = turn.swaps_axes() ? width_ : height_;
  seen_row_.resize(size_t{3} * seen_width + kRowSlack);
  for (uint32_t y = 0; y < seen_height; ++y) {
    for (uint32_t x = 0; x < seen_width; ++x) {
      const uint32_t seen_x = mirrored ? seen_width - 1 - x : x;
      uint32_t column = turn.swaps_axes() ? y : seen_x, row = turn.swaps_axes() ? seen_x : y;
      if (turn.stored_x_reversed()) column = width_ - 1 - column;
      if (turn.stored_y_reversed()) row = height_ - 1 - row;
      std::memcpy(&seen_row_[size_t{3} * x], &stored_[(size_t{row} * width_ + column) * 3], 3);
    }
    sink.take_row(seen_row_.data());
  }
}

}  // namespace packtrain
