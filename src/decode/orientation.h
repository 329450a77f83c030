// EXIF's eight orientations: how the stored image is turned to be seen upright.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/row_resizer.h"

namespace packtrain {

// A plain value.
class Orientation {
 public:
  explicit Orientation(uint8_t exif) : exif_(exif) {}
  bool is_upright() const { return exif_ == 1; }
  // Seen rows are stored columns.
  bool swaps_axes() const { return exif_ >= 5; }
  // The first stored column (row) is seen last along the axis it becomes.
  bool stored_x_reversed() const { return exif_ == 2 || exif_ == 3 || exif_ == 7 || exif_ == 8; }
  bool stored_y_reversed() const { return exif_ == 3 || exif_ == 4 || exif_ == 6 || exif_ == 7; }

 private:
  uint8_t exif_;
};

// Collects the rows of a small image as it is stored and gives them out as it is seen. Keeps its memory. One
// thread at a time.
class TurningSink final : public RowSink {
 public:
  // The size of the image as it is stored.
  void start(uint32_t width, uint32_t height);
  void take_row(const uint8_t* rgb) override;
  void give_out(Orientation turn, bool mirrored, RowSink& sink);

 private:
  uint32_t width_ = 0, height_ = 0, rows_ = 0;
  std::vector<uint8_t> stored_, seen_row_;
};

}  // namespace packtrain
