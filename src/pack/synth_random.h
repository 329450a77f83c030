// Random numbers and waves for synthetic samples, in integers alone: the same bits on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace packtrain {

// A well-mixed function of 64 bits.
constexpr uint64_t mix_bits(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

// A stream of random numbers that is fixed by its keys. A plain value; one thread at a time.
class KeyedRandom {
 public:
  template <class... Keys>
  explicit KeyedRandom(Keys... keys) {
    ((state_ = mix_bits(state_ + kStep + static_cast<uint64_t>(keys))), ...);
  }

  uint64_t bits() { return mix_bits(state_ += kStep); }
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>((bits() >> 32) * bound >> 32); }
  int32_t between(int32_t least, int32_t most) {  // both included
    return least + static_cast<int32_t>(below(static_cast<uint32_t>(most - least) + 1));
  }
  // About normal: the sum of four uniform numbers, in [-4 * half_width, 4 * half_width].
  int32_t bell(int32_t half_width) {
    int32_t sum = 0;
    for (int i = 0; i < 4; ++i) sum += between(-half_width, half_width);
    return sum;
  }

 private:
  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15u;
  uint64_t state_ = 0;
};

inline constexpr int kWaveSteps = 1024;  // one turn
inline constexpr int kWaveOne = 1 << 14;

// A sine to 0.2 % (Bhaskara's rational approximation), as std::sin may differ between machines.
constexpr std::array<int16_t, kWaveSteps> make_wave() {
  std::array<int16_t, kWaveSteps> wave{};
  constexpr int64_t kHalf = kWaveSteps / 2;
  for (int64_t i = 0; i < kHalf; ++i) {
    const int64_t hump = i * (kHalf - i);
    const auto value = static_cast<int16_t>(16 * hump * kWaveOne / (5 * kHalf * kHalf - 4 * hump));
    wave[static_cast<size_t>(i)] = value;
    wave[static_cast<size_t>(i + kHalf)] = static_cast<int16_t>(-value);
  }
  return wave;
}
inline constexpr std::array<int16_t, kWaveSteps> kWave = make_wave();

inline int32_t sine(uint32_t step) { return kWave[step % kWaveSteps]; }
inline int32_t cosine(uint32_t step) { return sine(step + kWaveSteps / 4); }

}  // namespace packtrain
