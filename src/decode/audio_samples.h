// Audio samples as files hold them, to what a batch holds: channel after channel, or their mean.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "packtrain/values.h"

namespace packtrain {

struct AudioFormat {
  uint32_t sample_rate = 0, channels = 0;
  uint64_t frames = 0;  // samples of each channel
};
// Refuses what no file can mean; `spec` says the type, and whether channels are kept.
Result<ValueFacts> audio_facts(const AudioFormat& format, const ValueSpec& spec);

// A signed integer of `bits` bits. Wider ones lose their lowest bits to become int16, as libsndfile has it.
template <class Out>
Out from_integer(int32_t value, uint32_t bits) {
  if constexpr (std::is_same_v<Out, float>) {
    return static_cast<float>(value) * (1.0f / static_cast<float>(uint64_t{1} << (bits - 1)));
  } else {
    return static_cast<int16_t>(bits > 16 ? value >> (bits - 16) : value * (1 << (16 - bits)));
  }
}

template <class Out>
Out from_real(double value) {
  if constexpr (std::is_same_v<Out, float>) {
    return static_cast<float>(value);
  } else {
    if (std::isnan(value)) return 0;
    return static_cast<int16_t>(std::lrint(std::clamp(value * 32768.0, -32768.0, 32767.0)));
  }
}

// Writes `count` frames, the first of which is frame `first` of the value, to their place in `out`. `load`
// gives the sample of a frame (counted from `first`) and channel as an Out.
template <class Out, class Load>
void write_frames(const AudioFormat& format, bool mono, uint64_t first, uint64_t count, Out* out, Load load) {
  if (mono && format.channels > 1) {
    for (uint64_t frame = 0; frame < count; ++frame) {
      double sum = 0;
      for (uint32_t channel = 0; channel < format.channels; ++channel) sum += load(frame, channel);
      const double mean = sum / format.channels;
      if constexpr (std::is_same_v<Out, float>)
        out[first + frame] = static_cast<float>(mean);
      else
        out[first + frame] = static_cast<int16_t>(std::lrint(mean));
    }
    return;
  }
  for (uint32_t channel = 0; channel < format.channels; ++channel) {
    Out* to = out + channel * format.frames + first;
    for (uint64_t frame = 0; frame < count; ++frame) to[frame] = load(frame, channel);
  }
}

}  // namespace packtrain
