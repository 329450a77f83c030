// The makers of synthetic samples: each is a pure function of its keys, thread-safe, the same on every
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "packtrain/pack.h"
#include "packtrain/status.h"

namespace packtrain {

struct SynthKeys {
  uint64_t seed = 0, index = 0;
  uint32_t label = 0, classes = 1;
};

// A JPEG with the sizes, sampling and bytes per pixel of web photographs (ImageNet): an object of its class's
// colour, texture and shape before sky and ground. About 5 ms.
Result<std::vector<std::byte>> synth_photo(const SynthKeys& keys);
// A WAV of 8 kHz, 16 bits, one channel, some 0.4 s: a word's worth of harmonics that glide as its class does.
std::vector<std::byte> synth_recording(const SynthKeys& keys);
// A few kB of sentences in which words of its class are frequent.
std::vector<std::byte> synth_document(const SynthKeys& keys);
// A .npy of float32, 3 x 64 x 64: smooth waves whose direction and length are its class's.
std::vector<std::byte> synth_field(const SynthKeys& keys);

// "otter", "maple", …, "otter_2", …: a class's name, fit for a folder.
std::string synth_class_name(SynthKind kind, uint32_t label);

}  // namespace packtrain
