// Small pictures of what is no picture: sounds and arrays of numbers. Safe on any bytes; pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "packtrain/status.h"

namespace packtrain {

// An SVG of a WAV's first channel (PCM of 8, 16, 24 or 32 bits, or 32-bit floats), with its length in
// seconds.
std::optional<std::string> waveform(Bytes wav);
// The last two axes of a .npy of plain numbers as a JPEG, first plane, darkest to brightest.
std::optional<std::vector<std::byte>> number_plane(Bytes npy);

}  // namespace packtrain
