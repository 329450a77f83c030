#include "decode/crop.h"

#include <algorithm>
#include <cmath>

#include "base/keyed_random.h"

namespace packtrain {

namespace {

// Half to even, as Python's round() has it.
double round_as_python(double value) { return std::nearbyint(value); }

AxisCrop whole(uint32_t length, uint32_t output) { return {0, length, output, 0, output}; }

struct Box {
  uint32_t left, top, width, height;
};

// torchvision's RandomResizedCrop.get_params: ten draws, then the largest middle of an allowed shape.
Box random_box(const ImageSpec& spec, uint32_t width, uint32_t height, KeyedRandom& random) {
  constexpr int kAttempts = 10;
  const double area = double(width) * height;
  const double log_low = std::log(spec.ratio_low), log_high = std::log(spec.ratio_high);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double target = area * random.between(spec.scale_low, spec.scale_high);
    const double ratio = std::exp(random.between(log_low, log_high));
    const double w = round_as_python(std::sqrt(target * ratio));
    const double h = round_as_python(std::sqrt(target / ratio));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    Box box{0, 0, static_cast<uint32_t>(w), static_cast<uint32_t>(h)};
    box.top = static_cast<uint32_t>(random.below(height - box.height + 1));
    box.left = static_cast<uint32_t>(random.below(width - box.width + 1));
    return box;
  }
  Box box{0, 0, width, height};
  const double ratio = double(width) / height;
  if (ratio < spec.ratio_low) {
    box.height = static_cast<uint32_t>(round_as_python(width / spec.ratio_low));
  } else if (ratio > spec.ratio_high) {
    box.width = static_cast<uint32_t>(round_as_python(height * spec.ratio_high));
  }
  // A strip one pixel wide can round to nothing; an image always has a pixel to show.
  box.width = std::clamp<uint32_t>(box.width, 1, width);
  box.height = std::clamp<uint32_t>(box.height, 1, height);
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

// torchvision's Resize(shorter side) and CenterCrop, along one axis.
AxisCrop middle(uint32_t length, uint32_t shorter, uint32_t resize, uint32_t output) {
  const auto resized = static_cast<uint32_t>(double(resize) * length / shorter);
  const auto window = static_cast<uint32_t>(round_as_python((resized - output) / 2.0));
  return {0, length, resized, window, output};
}

}  // namespace

CropPlan plan_crop(const ImageSpec& spec, uint32_t width, uint32_t height, uint64_t key) {
  KeyedRandom random(key);
  CropPlan plan;
  switch (spec.crop) {
    case CropKind::random_resized: {
      const Box box = random_box(spec, width, height, random);
      plan.x = {box.left, box.width, spec.width, 0, spec.width};
      plan.y = {box.top, box.height, spec.height, 0, spec.height};
      break;
    }
    case CropKind::centre: {
      const uint32_t shorter = std::min(width, height);
      plan.x = middle(width, shorter, spec.resize, spec.width);
      plan.y = middle(height, shorter, spec.resize, spec.height);
      break;
    }
    case CropKind::resize:
      plan.x = whole(width, spec.width);
      plan.y = whole(height, spec.height);
      break;
  }
  plan.mirrored = random.uniform() < spec.flip;
  return plan;
}

CropBox draw_crop(const ImageSpec& spec, uint32_t width, uint32_t height, uint64_t key) {
  const CropPlan plan = plan_crop(spec, width, height, key);
  const auto place = [](const AxisCrop& axis, double& start, double& extent) {
    // Multiplied first: a box that is not cut after resizing keeps its whole numbers.
    start = axis.from + double(axis.window) * axis.length / axis.resized;
    extent = double(axis.output) * axis.length / axis.resized;
  };
  CropBox box;
  place(plan.x, box.left, box.width);
  place(plan.y, box.top, box.height);
  box.mirrored = plan.mirrored;
  return box;
}

}  // namespace packtrain
