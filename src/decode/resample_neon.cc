// Resizing with NEON. Its 32-bit multiplication with addition takes whole weights, where AVX2 has to split
// them: no table is needed, and the sums are those of the scalar code.
#include "decode/kernel_sets.h"

#ifdef PACKTRAIN_HAS_NEON_KERNELS

#include <arm_neon.h>

#include <algorithm>

namespace packtrain {

namespace {

constexpr uint32_t kOutputsAtOnce = 4;
constexpr uint8_t kNone = 255;  // looks up zero

void prepare_nothing(const ResizeAxis&, uint32_t, AcrossTable&) {}

// Where in 16 bytes the pixels of four taps are: red, green, blue and nothing, each widened to 32 bits.
constexpr uint8_t kTapBytes[4][16] = {
    {0, kNone, kNone, kNone, 1, kNone, kNone, kNone, 2, kNone, kNone, kNone, kNone, kNone, kNone, kNone},
    {3, kNone, kNone, kNone, 4, kNone, kNone, kNone, 5, kNone, kNone, kNone, kNone, kNone, kNone, kNone},
    {6, kNone, kNone, kNone, 7, kNone, kNone, kNone, 8, kNone, kNone, kNone, kNone, kNone, kNone, kNone},
    {9, kNone, kNone, kNone, 10, kNone, kNone, kNone, 11, kNone, kNone, kNone, kNone, kNone, kNone, kNone}};

// The same for four columns of a row.
constexpr uint8_t kColumnBytes[4][16] = {
    {0, kNone, kNone, kNone, 1, kNone, kNone, kNone, 2, kNone, kNone, kNone, 3, kNone, kNone, kNone},
    {4, kNone, kNone, kNone, 5, kNone, kNone, kNone, 6, kNone, kNone, kNone, 7, kNone, kNone, kNone},
    {8, kNone, kNone, kNone, 9, kNone, kNone, kNone, 10, kNone, kNone, kNone, 11, kNone, kNone, kNone},
    {12, kNone, kNone, kNone, 13, kNone, kNone, kNone, 14, kNone, kNone, kNone, 15, kNone, kNone, kNone}};

inline uint8x16x4_t load_places(const uint8_t (&places)[4][16]) {
  return {{vld1q_u8(places[0]), vld1q_u8(places[1]), vld1q_u8(places[2]), vld1q_u8(places[3])}};
}

inline int32x4_t look_up(uint8x16_t bytes, uint8x16_t places) {
  return vreinterpretq_s32_u8(vqtbl1q_u8(bytes, places));
}

// Red, green, blue and nothing of one output. Taps behind the last weigh nothing, up to a multiple of four.
inline int32x4_t weigh(const uint8_t* pixels, const int32_t* weights, uint32_t count,
                       const uint8x16x4_t& places) {
  int32x4_t sum = vdupq_n_s32(0);
  for (uint32_t tap = 0; tap < count; tap += kTapMultiple) {
    const uint8x16_t bytes = vld1q_u8(pixels + size_t{3} * tap);
    const int32x4_t four = vld1q_s32(weights + tap);
    sum = vmlaq_laneq_s32(sum, look_up(bytes, places.val[0]), four, 0);
    sum = vmlaq_laneq_s32(sum, look_up(bytes, places.val[1]), four, 1);
    sum = vmlaq_laneq_s32(sum, look_up(bytes, places.val[2]), four, 2);
    sum = vmlaq_laneq_s32(sum, look_up(bytes, places.val[3]), four, 3);
  }
  return sum;
}

// Four sums of four, rounded, as bytes.
inline uint8x16_t pack(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d) {
  const auto narrow = [](int32x4_t sum) { return vqmovun_s32(vrshrq_n_s32(sum, kWeightBits)); };
  const uint16x8_t lower = vcombine_u16(narrow(a), narrow(b)), upper = vcombine_u16(narrow(c), narrow(d));
  return vcombine_u8(vqmovn_u16(lower), vqmovn_u16(upper));
}

void row_across_neon(const ResizeAxis& axis, uint32_t row_begin, const uint8_t* from, uint8_t* to) {
  const uint8x16x4_t places = load_places(kTapBytes);
  constexpr uint8_t kWithoutFourth[16] = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, kNone, kNone, kNone, kNone};
  const uint8x16_t without_fourth = vld1q_u8(kWithoutFourth);
  const uint32_t last = axis.outputs() - 1;
  for (uint32_t x = 0; x <= last; x += kOutputsAtOnce) {
    // Behind the last output, it is made again, into the slack.
    const auto output = [&](uint32_t i) {
      const uint32_t at = std::min(x + i, last);
      const auto [first, count] = axis.span(at);
      return weigh(from + size_t{3} * (first - row_begin), axis.weights(at), count, places);
    };
    const uint8x16_t pixels = pack(output(0), output(1), output(2), output(3));
    // Sixteen bytes for twelve: the rest is written over by the next pixels, or is slack.
    vst1q_u8(to, vqtbl1q_u8(pixels, without_fourth));
    to += kOutputsAtOnce * 3;
  }
}

void across_neon(const ResizeAxis& axis, uint32_t row_begin, const AcrossTable&, const uint8_t* const* from,
                 uint8_t* const* to, uint32_t rows) {
  for (uint32_t row = 0; row < rows; ++row) row_across_neon(axis, row_begin, from[row], to[row]);
}

// 16 columns a step.
void down_neon(const uint8_t* const* rows, const int32_t* weights, uint32_t count, size_t bytes,
               uint8_t* to) {
  const uint8x16x4_t places = load_places(kColumnBytes);
  for (size_t at = 0; at < bytes; at += 16) {
    int32x4_t sums[4] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
    for (uint32_t tap = 0; tap < count; ++tap) {
      const uint8x16_t row = vld1q_u8(rows[tap] + at);
      for (int i = 0; i < 4; ++i) sums[i] = vmlaq_n_s32(sums[i], look_up(row, places.val[i]), weights[tap]);
    }
    vst1q_u8(to + at, pack(sums[0], sums[1], sums[2], sums[3]));
  }
}

}  // namespace

const ResampleKernels kNeonResample{prepare_nothing, across_neon, down_neon};

}  // namespace packtrain

#endif
