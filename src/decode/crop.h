// Which part of an image becomes the output: torchvision's transforms as arithmetic.
#pragma once

#include <cstdint>

#include "packtrain/transform.h"

namespace packtrain {

// Along one axis: pixels [from, from + length) are resized to `resized` ones, of which [window, window +
// output) are kept. Weights never reach beyond [from, from + length). A plain value.
struct AxisCrop {
  uint32_t from = 0, length = 0;
  uint32_t resized = 0;
  uint32_t window = 0, output = 0;
};

// In pixels of the image as it is seen. A plain value.
struct CropPlan {
  AxisCrop x, y;
  bool mirrored = false;
};

// `spec` has passed check(); `width` and `height` are not 0.
CropPlan plan_crop(const ImageSpec& spec, uint32_t width, uint32_t height, uint64_t key);

}  // namespace packtrain
