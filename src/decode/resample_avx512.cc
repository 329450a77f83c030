// Resizing with AVX-512, exact. Across, four rows at once: each has 128 bits of a vector, and all share the
// weights. Down, weights are split into three signed bytes, as one instruction multiplies four bytes of
// pixels by four of those and adds them up.
#include "decode/resample_x86.h"

#ifdef PACKTRAIN_HAS_AVX2_KERNELS

#include <immintrin.h>

#include <algorithm>

#define PACKTRAIN_RESAMPLE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vnni")))

namespace packtrain {

namespace {

constexpr uint32_t kRows = 4;
constexpr int32_t kHalf = 1 << (kWeightBits - 1);

PACKTRAIN_RESAMPLE_AVX512 inline __m512i everywhere(const void* bytes) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(static_cast<const __m128i*>(bytes)));
}

PACKTRAIN_RESAMPLE_AVX512 inline __m512i load_rows(const uint8_t* const (&rows)[kRows], size_t at) {
  const auto row = [&](uint32_t i) PACKTRAIN_RESAMPLE_AVX512 {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[i] + at));
  };
  const __m512i front = _mm512_inserti32x4(_mm512_castsi128_si512(row(0)), row(1), 1);
  return _mm512_inserti32x4(_mm512_inserti32x4(front, row(2), 2), row(3), 3);
}

// Red, green, blue and nothing of one output, rounded, of each row.
template <uint32_t kGroups>
PACKTRAIN_RESAMPLE_AVX512 inline __m512i weigh(const uint8_t* const (&rows)[kRows], size_t at,
                                               const int16_t* words, uint32_t groups) {
  alignas(16) static constexpr int8_t kFront[16] = {0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1};
  alignas(16) static constexpr int8_t kBack[16] = {6, -1, 9,  -1, 7,  -1, 10, -1,
                                                   8, -1, 11, -1, -1, -1, -1, -1};
  const __m512i front = everywhere(kFront), back = everywhere(kBack);
  __m512i high = _mm512_setzero_si512(), low = _mm512_set1_epi32(kHalf);
  for (uint32_t group = 0; group < (kGroups != 0 ? kGroups : groups); ++group) {
    const __m512i pixels = load_rows(rows, at + size_t{group} * kTapsInGroup * 3);
    const __m512i first = _mm512_shuffle_epi8(pixels, front), second = _mm512_shuffle_epi8(pixels, back);
    const int16_t* of_group = words + size_t{group} * kGroupWords;
    high = _mm512_dpwssd_epi32(high, first, everywhere(of_group));
    low = _mm512_dpwssd_epi32(low, first, everywhere(of_group + 16));
    high = _mm512_dpwssd_epi32(high, second, everywhere(of_group + 8));
    low = _mm512_dpwssd_epi32(low, second, everywhere(of_group + 24));
  }
  return _mm512_srai_epi32(_mm512_add_epi32(_mm512_slli_epi32(high, kLowBits), low), kWeightBits);
}

template <uint32_t kGroups>
PACKTRAIN_RESAMPLE_AVX512 void rows_across(const AcrossTable& table, const uint8_t* const (&from)[kRows],
                                           uint8_t* const (&to)[kRows]) {
  const uint32_t groups = kGroups != 0 ? kGroups : table.groups;
  const size_t stride = size_t{groups} * kGroupWords;
  const int16_t* words = table.weights.data();
  alignas(16) static constexpr int8_t kWithoutFourth[16] = {0,  1,  2,  4,  5,  6,  8,  9,
                                                            10, 12, 13, 14, -1, -1, -1, -1};
  const __m512i without_fourth = everywhere(kWithoutFourth);
  const uint32_t* first = table.first.data();
  const uint32_t* end = first + table.first.size();
  for (size_t at = 0; first != end; first += kOutputsAtOnce, at += size_t{kOutputsAtOnce} * 3) {
    const auto output = [&](uint32_t i) PACKTRAIN_RESAMPLE_AVX512 {
      return weigh<kGroups>(from, first[i], words + i * stride, groups);
    };
    const __m512i lower = _mm512_packs_epi32(output(0), output(1));
    const __m512i upper = _mm512_packs_epi32(output(2), output(3));
    words += kOutputsAtOnce * stride;
    const __m512i pixels = _mm512_shuffle_epi8(_mm512_packus_epi16(lower, upper), without_fourth);
    const auto store = [&](uint32_t row, __m128i four) PACKTRAIN_RESAMPLE_AVX512 {
      // Sixteen bytes for twelve: the rest is written over by the next pixels, or is slack.
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to[row] + at), four);
    };
    store(0, _mm512_castsi512_si128(pixels));
    store(1, _mm512_extracti32x4_epi32(pixels, 1));
    store(2, _mm512_extracti32x4_epi32(pixels, 2));
    store(3, _mm512_extracti32x4_epi32(pixels, 3));
  }
}

void across_avx512(const ResizeAxis&, uint32_t, const AcrossTable& table, const uint8_t* const* from,
                   uint8_t* const* to, uint32_t rows) {
  const auto of_four = table.groups == 1   ? rows_across<1>
                       : table.groups == 2 ? rows_across<2>
                                           : rows_across<0>;
  for (uint32_t row = 0; row < rows; row += kRows) {
    if (row + 1 == rows) return row_across_avx2(table, from[row], to[row]);
    // Where there are fewer, the last is made several times.
    const auto place = [&](uint32_t i) { return std::min(row + i, rows - 1); };
    const uint8_t* const these[kRows] = {from[row], from[place(1)], from[place(2)], from[place(3)]};
    uint8_t* const there[kRows] = {to[row], to[place(1)], to[place(2)], to[place(3)]};
    of_four(table, these, there);
  }
}

// The lowest byte of each value, signed.
PACKTRAIN_RESAMPLE_AVX512 inline __m128i lowest_of(__m128i values) {
  return _mm_srai_epi32(_mm_slli_epi32(values, 24), 24);
}
// The lowest bytes of four values, in every lane.
PACKTRAIN_RESAMPLE_AVX512 inline __m512i in_lanes(__m128i values) {
  const __m128i lowest = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  return _mm512_broadcastd_epi32(_mm_shuffle_epi8(values, lowest));
}

// The weights of four taps, byte by byte, side by side in every lane; the middle and the low bytes are
// signed.
struct TapFour {
  __m512i high, middle, low;
};
PACKTRAIN_RESAMPLE_AVX512 inline TapFour four_of(const int32_t* weights) {
  // Behind the last weight stand zeros.
  const __m128i whole = _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights));
  const __m128i low = lowest_of(whole);
  const __m128i upper = _mm_srai_epi32(_mm_sub_epi32(whole, low), 8);
  const __m128i middle = lowest_of(upper);
  const __m128i high = _mm_srai_epi32(_mm_sub_epi32(upper, middle), 8);
  return {in_lanes(high), in_lanes(middle), in_lanes(low)};
}

// Most images need few taps, whose weights are made once for a row; of many, they are made again for each
// step.
constexpr uint32_t kTapsInFour = 4, kFewFours = 4;

// Four rows, interleaved byte by byte: 64 columns a step. `kFours` 0: any number of taps.
template <uint32_t kFours>
PACKTRAIN_RESAMPLE_AVX512 void down_fours(const uint8_t* const* rows, const int32_t* weights, uint32_t count,
                                          size_t bytes, uint8_t* to) {
  constexpr size_t kColumns = 64;
  const uint32_t fours = kFours != 0 ? kFours : (count + kTapsInFour - 1) / kTapsInFour;
  const bool few = kFours != 0 || fours <= kFewFours;
  TapFour known[kFours != 0 ? kFours : kFewFours];
  if (few)
    for (uint32_t four = 0; four < fours; ++four) known[four] = four_of(weights + four * kTapsInFour);
  for (size_t at = 0; at < bytes; at += kColumns) {
    __m512i high[4], middle[4], low[4];
    for (int i = 0; i < 4; ++i) {
      high[i] = middle[i] = _mm512_setzero_si512();
      low[i] = _mm512_set1_epi32(kHalf);
    }
    for (uint32_t four = 0; four < fours; ++four) {
      const TapFour taps = few ? known[four] : four_of(weights + four * kTapsInFour);
      // Behind the last it stands again, with a weight of nothing.
      const auto row = [&](uint32_t tap) PACKTRAIN_RESAMPLE_AVX512 {
        return _mm512_loadu_si512(rows[std::min(four * kTapsInFour + tap, count - 1)] + at);
      };
      const __m512i a = row(0), b = row(1), c = row(2), d = row(3);
      const __m512i ab[2] = {_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)};
      const __m512i cd[2] = {_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d)};
      const __m512i pixels[4] = {_mm512_unpacklo_epi16(ab[0], cd[0]), _mm512_unpackhi_epi16(ab[0], cd[0]),
                                 _mm512_unpacklo_epi16(ab[1], cd[1]), _mm512_unpackhi_epi16(ab[1], cd[1])};
      for (int i = 0; i < 4; ++i) {
        high[i] = _mm512_dpbusd_epi32(high[i], pixels[i], taps.high);
        middle[i] = _mm512_dpbusd_epi32(middle[i], pixels[i], taps.middle);
        low[i] = _mm512_dpbusd_epi32(low[i], pixels[i], taps.low);
      }
    }
    const auto sum = [&](int i) PACKTRAIN_RESAMPLE_AVX512 {
      const __m512i upper = _mm512_add_epi32(_mm512_slli_epi32(high[i], 8), middle[i]);
      return _mm512_srai_epi32(_mm512_add_epi32(_mm512_slli_epi32(upper, 8), low[i]), kWeightBits);
    };
    // Packing goes by quarters of 128 bits, as interleaving did: the columns are in order again.
    const __m512i packed =
        _mm512_packus_epi16(_mm512_packs_epi32(sum(0), sum(1)), _mm512_packs_epi32(sum(2), sum(3)));
    _mm512_storeu_si512(to + at, packed);
  }
}

void down_avx512(const uint8_t* const* rows, const int32_t* weights, uint32_t count, size_t bytes,
                 uint8_t* to) {
  if (count <= kTapsInFour) return down_fours<1>(rows, weights, count, bytes, to);
  if (count <= 2 * kTapsInFour) return down_fours<2>(rows, weights, count, bytes, to);
  down_fours<0>(rows, weights, count, bytes, to);
}

}  // namespace

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vnni");
}

const ResampleKernels kAvx512Resample{prepare_groups, across_avx512, down_avx512};

}  // namespace packtrain

#endif
