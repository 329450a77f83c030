// What ImageReader, PixelReader, ValueReader and the recoding as baseline make of any bytes: no crash, no
// memory beyond its bound, a slot that is filled, and a recoded file with the same pixels. The first bytes
// choose the transform.
#include <cstdlib>
#include <vector>

#include "fuzz/read_value.h"
#include "packtrain/transform.h"

namespace {

using namespace packtrain;

constexpr size_t kChoiceBytes = 4;
constexpr uint64_t kMemory = 4 << 20;

ImageSpec spec_of(const uint8_t* choice) {
  ImageSpec spec;
  spec.crop = static_cast<CropKind>(choice[0] % 3);
  spec.width = 1 + choice[1] % 40;
  spec.height = 1 + choice[2] % 40;
  spec.resize = 40;
  spec.flip = 0.5;
  spec.type = static_cast<PixelType>(choice[3] % 4);
  spec.layout = static_cast<PixelLayout>(choice[3] / 4 % 2);
  spec.exif_orientation = choice[3] & 8;
  spec.dct_scaling = choice[3] & 16;
  return spec;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kChoiceBytes) return 0;
  const ImageSpec spec = spec_of(data);
  const Bytes encoded = std::as_bytes(std::span(data, size)).subspan(kChoiceBytes);
  // A short file may claim many pixels: legal, but it would leave no time for the rest.
  const auto shape = image_shape(encoded);
  if (shape && uint64_t{shape->width} * shape->height > 1 << 20) return 0;
  auto reader = ImageReader::make(spec, kMemory);
  if (!reader.ok()) std::abort();
  std::vector<std::byte> slot(spec.bytes());
  // Twice: a reader goes on after a damaged image, and settles every choice by the key.
  const Status first = (*reader)->read(encoded, data[0], slot);
  const std::vector<std::byte> before = slot;
  const Status second = (*reader)->read(encoded, data[0], slot);
  if (first.code() != second.code() || (first.ok() && slot != before)) std::abort();

  const ValueSpec as_value{.kind = ValueKind::image, .exif_orientation = spec.exif_orientation};
  fuzz::read_value(as_value, encoded);

  auto pixels = PixelReader::make(kMemory);
  Image whole, recoded;
  const bool reads = (*pixels)->read(encoded, 0, whole).ok();
  Image small;
  if ((*pixels)->read(encoded, 16, small).ok() && (small.shape.width > 16 || small.shape.height > 16))
    std::abort();
  std::vector<std::byte> baseline;
  if (!recode_as_baseline(encoded, kMemory, baseline).ok() || baseline.empty() || !reads) return 0;
  if (!(*pixels)->read(baseline, 0, recoded).ok() || recoded.shape != whole.shape ||
      recoded.pixels != whole.pixels)
    std::abort();
  return 0;
}
