// One sample of the contact sheet.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "packtrain/decode.h"
#include "packtrain/index.h"

namespace packtrain {

struct Tile {
  std::string html;  // a figure's body: picture, waveform, text, or a box that says what there is
  std::optional<ImageShape> shape;  // of its image, if it has one
};

// The best that can be shown of a sample: an image before a sound before numbers before text before a list of
// its fields. Bytes that cannot be understood make a box that says so. Never fails.
Tile sample_tile(const Manifest& manifest, const SampleBytes& sample);
Tile damaged_tile(std::string_view why);

}  // namespace packtrain
