// Resizing with AVX2, exact: a 22-bit weight does not fit the 16-bit multiplier, so that each is split into
// 14 high and 8 low bits, and the two sums are put together at the end. Both fit 32 bits for any pixels.
#include "decode/vector_kernels.h"

#ifdef PACKTRAIN_HAS_AVX2_KERNELS

#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>

#define PACKTRAIN_AVX2 __attribute__((target("avx2")))

namespace packtrain {

namespace {

constexpr uint32_t kTapsInGroup = 4;
constexpr uint32_t kLowBits = 8;
constexpr size_t kGroupWords = 32;  // 16 high and 16 low halves

// A group is four taps of one output: the lower 128 bits are for taps 0 and 1, the upper for 2 and 3, in the
// order in which `spread` below puts the pixels: red, red, green, green, blue, blue, nothing.
void prepare_avx2(const ResizeAxis& axis, uint32_t row_begin, AcrossTable& table) {
  const uint32_t groups = (axis.widest() + kTapsInGroup - 1) / kTapsInGroup;
  // Every output has as many taps. Those near the end start earlier, with weights of nothing, and stay in the
  // row.
  const uint32_t taps = groups * kTapsInGroup;
  const uint32_t last_start = axis.end() - row_begin > taps ? axis.end() - taps : row_begin;
  table.groups = groups;
  table.first.resize(axis.outputs());
  table.weights.resize(size_t{axis.outputs()} * groups * kGroupWords);
  int16_t* words = table.weights.data();
  for (uint32_t x = 0; x < axis.outputs(); ++x) {
    const auto [first, count] = axis.span(x);
    const int32_t* weights = axis.weights(x);
    const uint32_t start = std::min(first, last_start), ahead = first - start;
    table.first[x] = 3 * (start - row_begin);
    for (uint32_t group = 0; group < groups; ++group, words += kGroupWords) {
      for (uint32_t tap = 0; tap < kTapsInGroup; ++tap) {
        const uint32_t index =
            group * kTapsInGroup + tap - ahead;  // wraps to a large number in front of the first
        const int32_t weight = index < count ? weights[index] : 0;
        int16_t* at = words + (tap / 2) * 8 + tap % 2;
        for (int channel = 0; channel < 3; ++channel) {
          at[2 * channel] = static_cast<int16_t>(weight >> kLowBits);
          at[2 * channel + 16] = static_cast<int16_t>(weight & ((1 << kLowBits) - 1));
        }
        at[6] = at[22] = 0;
      }
    }
  }
}

PACKTRAIN_AVX2 inline __m256i join(__m256i high, __m256i low) {
  return _mm256_add_epi32(_mm256_slli_epi32(high, kLowBits), low);
}

// Twelve bytes, four pixels, to words in the order of a group.
PACKTRAIN_AVX2 inline __m256i spread(const uint8_t* pixels) {
  const __m256i shuffle = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 6, -1, 9,
                                           -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
  const __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(pixels)));
  return _mm256_shuffle_epi8(both, shuffle);
}

PACKTRAIN_AVX2 inline __m256i load_words(const int16_t* words) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words));
}

// `kGroups` 0: any number of them, known at run time only.
template <uint32_t kGroups>
PACKTRAIN_AVX2 void across_groups(uint32_t outputs, const AcrossTable& table, const uint8_t* const* from,
                                  uint8_t* const* to) {
  const uint32_t groups = kGroups != 0 ? kGroups : table.groups;
  const int16_t* words = table.weights.data();
  const __m256i half = _mm256_set1_epi32(1 << (kWeightBits - 1));
  for (uint32_t x = 0; x < outputs; ++x) {
    const uint32_t first = table.first[x];
    __m256i sums[kRowsAtOnce];
    const __m256i high = load_words(words), low = load_words(words + 16);
    words += kGroupWords;
    if constexpr (kGroups == 1) {
      for (uint32_t row = 0; row < kRowsAtOnce; ++row) {
        const __m256i pixels = spread(from[row] + first);
        sums[row] = join(_mm256_madd_epi16(pixels, high), _mm256_madd_epi16(pixels, low));
      }
    } else {
      __m256i highs[kRowsAtOnce], lows[kRowsAtOnce];
      for (uint32_t row = 0; row < kRowsAtOnce; ++row) {
        const __m256i pixels = spread(from[row] + first);
        highs[row] = _mm256_madd_epi16(pixels, high);
        lows[row] = _mm256_madd_epi16(pixels, low);
      }
      for (uint32_t group = 1; group < groups; ++group, words += kGroupWords) {
        const __m256i more_high = load_words(words), more_low = load_words(words + 16);
        for (uint32_t row = 0; row < kRowsAtOnce; ++row) {
          const __m256i pixels = spread(from[row] + first + size_t{group} * kTapsInGroup * 3);
          highs[row] = _mm256_add_epi32(highs[row], _mm256_madd_epi16(pixels, more_high));
          lows[row] = _mm256_add_epi32(lows[row], _mm256_madd_epi16(pixels, more_low));
        }
      }
      for (uint32_t row = 0; row < kRowsAtOnce; ++row) sums[row] = join(highs[row], lows[row]);
    }
    // The halves of each row belong together: rows 0 and 2 (1 and 3) side by side make one vector.
    const auto fold = [&](__m256i a, __m256i b) PACKTRAIN_AVX2 {
      const __m256i sum =
          _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
      return _mm256_srai_epi32(_mm256_add_epi32(sum, half), kWeightBits);
    };
    const __m256i even = fold(sums[0], sums[2]), odd = fold(sums[1], sums[3]);
    const __m256i shorts = _mm256_packs_epi32(even, odd);
    const __m256i bytes = _mm256_packus_epi16(shorts, shorts);
    const __m128i lower = _mm256_castsi256_si128(bytes), upper = _mm256_extracti128_si256(bytes, 1);
    // Four bytes for three: the fourth is written over by the next pixel, or is slack.
    const size_t at = size_t{3} * x;
    _mm_storeu_si32(to[0] + at, lower);
    _mm_storeu_si32(to[1] + at, _mm_srli_si128(lower, 4));
    _mm_storeu_si32(to[2] + at, upper);
    _mm_storeu_si32(to[3] + at, _mm_srli_si128(upper, 4));
  }
}

void across_avx2(const ResizeAxis& axis, uint32_t, const AcrossTable& table, const uint8_t* const* from,
                 uint8_t* const* to) {
  switch (table.groups) {
    case 1:
      return across_groups<1>(axis.outputs(), table, from, to);
    case 2:
      return across_groups<2>(axis.outputs(), table, from, to);
    default:
      return across_groups<0>(axis.outputs(), table, from, to);
  }
}

// Two rows, interleaved byte by byte and widened, against a pair of weights: 16 columns a step.
PACKTRAIN_AVX2 void down_avx2(const uint8_t* const* rows, const int32_t* weights, uint32_t count,
                              size_t bytes, uint8_t* to) {
  const __m256i half = _mm256_set1_epi32(1 << (kWeightBits - 1));
  const __m128i zero = _mm_setzero_si128();
  constexpr size_t kColumns = 16;
  for (size_t at = 0; at < bytes; at += kColumns) {
    __m256i high[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    __m256i low[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (uint32_t tap = 0; tap < count; tap += 2) {
      const bool pair = tap + 1 < count;
      const int32_t one = weights[tap], other = pair ? weights[tap + 1] : 0;
      const __m256i both_high = _mm256_set1_epi32(one >> kLowBits | (other >> kLowBits) << 16);
      constexpr int32_t kLowMask = (1 << kLowBits) - 1;
      const __m256i both_low = _mm256_set1_epi32((one & kLowMask) | (other & kLowMask) << 16);
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[tap] + at));
      const __m128i b = pair ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[tap + 1] + at)) : zero;
      const __m256i pixels[2] = {_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)),
                                 _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b))};
      for (int i = 0; i < 2; ++i) {
        high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(pixels[i], both_high));
        low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(pixels[i], both_low));
      }
    }
    __m256i sums[2];
    for (int i = 0; i < 2; ++i)
      sums[i] = _mm256_srai_epi32(_mm256_add_epi32(join(high[i], low[i]), half), kWeightBits);
    // Packing goes by halves of 128 bits; the permutation puts the columns back into order.
    const __m256i shorts = _mm256_permute4x64_epi64(_mm256_packs_epi32(sums[0], sums[1]), 0b11011000);
    const __m128i packed =
        _mm_packus_epi16(_mm256_castsi256_si128(shorts), _mm256_extracti128_si256(shorts, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + at), packed);
  }
}

}  // namespace

bool has_avx2() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  return has_f16c && __builtin_cpu_supports("avx2");
}

const ResampleKernels kAvx2Resample{"avx2", prepare_avx2, across_avx2, down_avx2};

}  // namespace packtrain

#endif
