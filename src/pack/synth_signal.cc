// Recordings and fields: waves, sampled in integers so that every machine writes the same bytes.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "base/little_endian.h"
#include "pack/synth_random.h"
#include "pack/synth_sample.h"

namespace packtrain {

namespace {

constexpr uint32_t kSampleRate = 8000;

template <class T>
void append(std::string& out, T value) {
  char bytes[sizeof value];
  store_le(bytes, value);
  out.append(bytes, sizeof bytes);
}

// The bytes of a file: a header, and room for `payload` bytes behind it.
std::vector<std::byte> with_room(const std::string& header, size_t payload) {
  std::vector<std::byte> file(header.size() + payload);
  std::memcpy(file.data(), header.data(), header.size());
  return file;
}

std::string wav_header(uint32_t samples) {
  std::string out = "RIFF";
  append(out, uint32_t{36 + samples * 2});
  out += "WAVEfmt ";
  append(out, uint32_t{16});
  append(out, uint16_t{1});  // PCM
  append(out, uint16_t{1});  // channels
  append(out, kSampleRate);
  append(out, uint32_t{kSampleRate * 2});  // bytes per second
  append(out, uint16_t{2});                // bytes per frame
  append(out, uint16_t{16});               // bits
  out += "data";
  append(out, uint32_t{samples * 2});
  return out;
}

std::string npy_header(std::string_view shape) {
  std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': " + std::string(shape) + ", }";
  // Magic, version and length take 10 bytes; the data start at a multiple of 64.
  while ((10 + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  append(out, static_cast<uint16_t>(dictionary.size()));
  return out + dictionary;
}

}  // namespace

std::vector<std::byte> synth_recording(const SynthKeys& keys) {
  KeyedRandom random(keys.seed, SynthKind::audio, keys.index, keys.classes);
  const auto samples = static_cast<uint32_t>(std::max(3440 + random.bell(400), 1600));
  // Each class glides between pitches of its own and has a timbre of its own; the voice varies around them.
  const uint32_t of_class = static_cast<uint32_t>(uint64_t{320} * keys.label / keys.classes);
  const uint32_t pitch = 110 + of_class + random.below(24);
  const auto glide = static_cast<int32_t>(mix_bits(keys.label) % 401) - 200;  // Hz, from start to end
  std::array<int32_t, 4> timbre{};
  for (size_t i = 0; i < timbre.size(); ++i)
    timbre[i] = static_cast<int32_t>(mix_bits(keys.label * 8 + i) % 256) / (static_cast<int32_t>(i) + 1) + 16;
  const int32_t loudness = random.between(4000, 9000), hiss = random.between(50, 400);

  std::vector<std::byte> out = with_room(wav_header(samples), samples * sizeof(int16_t));
  std::byte* to = out.data() + out.size() - samples * sizeof(int16_t);
  uint64_t phase = 0;  // one turn is 2^32
  for (uint32_t i = 0; i < samples; ++i, to += sizeof(int16_t)) {
    const int64_t hertz = std::max<int64_t>(int64_t{pitch} + int64_t{glide} * i / samples, 60);
    phase += (static_cast<uint64_t>(hertz) << 32) / kSampleRate;
    int32_t sum = 0, weights = 0;
    for (size_t harmonic = 0; harmonic < timbre.size(); ++harmonic) {
      sum += sine(static_cast<uint32_t>((phase * (harmonic + 1)) >> 22)) * timbre[harmonic];
      weights += timbre[harmonic];
    }
    // Rises in 40 ms and dies away towards the end.
    const int64_t attack = std::min<int64_t>(i, 320) * 256 / 320;
    const int64_t envelope = attack * (samples - i) / samples;
    const int64_t tone = int64_t{sum} / weights * loudness / kWaveOne * envelope / 256;
    store_le(to,
             static_cast<int16_t>(std::clamp<int64_t>(tone + random.between(-hiss, hiss), -32768, 32767)));
  }
  return out;
}

std::vector<std::byte> synth_field(const SynthKeys& keys) {
  KeyedRandom random(keys.seed, SynthKind::fields, keys.index, keys.classes);
  constexpr uint32_t kSide = 64;
  constexpr size_t kPayload = 3 * kSide * kSide * sizeof(float);
  std::vector<std::byte> out = with_room(npy_header("(3, 64, 64)"), kPayload);
  std::byte* to = out.data() + out.size() - kPayload;
  for (uint32_t channel = 0; channel < 3; ++channel) {
    struct Wave {
      int32_t across, down, strength;
      uint32_t start;
    };
    std::array<Wave, 5> waves{};
    for (Wave& wave : waves)  // weather: long waves of any direction
      wave = {random.between(-24, 24), random.between(-24, 24), random.between(20, 100),
              random.below(kWaveSteps)};
    const auto turn = static_cast<uint32_t>(uint64_t{kWaveSteps / 2} * keys.label / keys.classes);
    const int32_t length = 48 + static_cast<int32_t>(mix_bits(keys.label + channel) % 48);
    waves[0] = {cosine(turn) * length / kWaveOne, sine(turn) * length / kWaveOne, 300,
                random.below(kWaveSteps)};
    for (uint32_t y = 0; y < kSide; ++y)
      for (uint32_t x = 0; x < kSide; ++x, to += sizeof(float)) {
        int32_t sum = 0;
        for (const Wave& wave : waves)
          sum += sine(wave.start + x * static_cast<uint32_t>(wave.across) +
                      y * static_cast<uint32_t>(wave.down)) *
                 wave.strength;
        store_le(to, static_cast<float>(sum >> 6) / 65536.0f);  // exact: 24 bits, then a power of two
      }
  }
  return out;
}

}  // namespace packtrain
