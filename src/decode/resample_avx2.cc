// Resizing with AVX2, exact: the sums of the high and of the low parts of the weights are put together at the
// end. Both fit 32 bits for any pixels.
#include "decode/resample_x86.h"

#ifdef PACKTRAIN_HAS_AVX2_KERNELS

#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>

#include "base/make_room.h"

#define PACKTRAIN_RESAMPLE_AVX2 __attribute__((target("avx2")))

namespace packtrain {

namespace {}  // namespace

void prepare_groups(const ResizeAxis& axis, uint32_t row_begin, AcrossTable& table) {
  const uint32_t groups = (axis.widest() + kTapsInGroup - 1) / kTapsInGroup;
  // Every output has as many taps. Those near the end start earlier, with weights of nothing, and stay in the
  // row.
  const uint32_t taps = groups * kTapsInGroup;
  const uint32_t last_start = axis.end() - row_begin > taps ? axis.end() - taps : row_begin;
  const uint32_t outputs = axis.outputs();
  const uint32_t padded = (outputs + kOutputsAtOnce - 1) / kOutputsAtOnce * kOutputsAtOnce;
  table.groups = groups;
  make_room(table.first, padded);
  table.first.assign(padded, 0);
  make_room(table.weights, size_t{padded} * groups * kGroupWords);
  table.weights.assign(size_t{padded} * groups * kGroupWords, 0);
  int16_t* words = table.weights.data();
  for (uint32_t x = 0; x < outputs; ++x) {
    const auto [first, count] = axis.span(x);
    const int32_t* weights = axis.weights(x);
    const uint32_t start = std::min(first, last_start), ahead = first - start;
    table.first[x] = 3 * (start - row_begin);
    for (uint32_t tap = 0; tap < count; ++tap) {
      const uint32_t place = tap + ahead, in_group = place % kTapsInGroup;
      int16_t* at = words + place / kTapsInGroup * kGroupWords + in_group / 2 * 8 + in_group % 2;
      const auto high = static_cast<int16_t>(weights[tap] >> kLowBits);
      const auto low = static_cast<int16_t>(weights[tap] & ((1 << kLowBits) - 1));
      at[0] = at[2] = at[4] = high;
      at[16] = at[18] = at[20] = low;
    }
    words += size_t{groups} * kGroupWords;
  }
}

namespace {

PACKTRAIN_RESAMPLE_AVX2 inline __m256i join(__m256i high, __m256i low) {
  return _mm256_add_epi32(_mm256_slli_epi32(high, kLowBits), low);
}

PACKTRAIN_RESAMPLE_AVX2 inline __m128i load_bytes(const void* bytes) {
  return _mm_loadu_si128(static_cast<const __m128i*>(bytes));
}

// Twelve bytes, four pixels, to words in the order of a group: taps 0 and 1 in the lower 128 bits.
PACKTRAIN_RESAMPLE_AVX2 inline __m256i spread(const uint8_t* pixels) {
  const __m256i shuffle = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,  //
                                           6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
  const __m256i both = _mm256_broadcastsi128_si256(load_bytes(pixels));
  return _mm256_shuffle_epi8(both, shuffle);
}

PACKTRAIN_RESAMPLE_AVX2 inline __m256i load_words(const int16_t* words) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words));
}

// Red, green, blue and nothing of one output; the sum of the upper and the lower half is still to be taken.
template <uint32_t kGroups>
PACKTRAIN_RESAMPLE_AVX2 inline __m256i weigh(const uint8_t* pixels, const int16_t* words, uint32_t groups) {
  const __m256i first = spread(pixels);
  __m256i high = _mm256_madd_epi16(first, load_words(words));
  __m256i low = _mm256_madd_epi16(first, load_words(words + 16));
  for (uint32_t group = 1; group < (kGroups != 0 ? kGroups : groups); ++group) {
    const __m256i more = spread(pixels + size_t{group} * kTapsInGroup * 3);
    const int16_t* at = words + size_t{group} * kGroupWords;
    high = _mm256_add_epi32(high, _mm256_madd_epi16(more, load_words(at)));
    low = _mm256_add_epi32(low, _mm256_madd_epi16(more, load_words(at + 16)));
  }
  return join(high, low);
}

// Two outputs side by side, rounded.
PACKTRAIN_RESAMPLE_AVX2 inline __m256i fold(__m256i a, __m256i b) {
  const __m256i sum =
      _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
  return _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(1 << (kWeightBits - 1))), kWeightBits);
}

// `kGroups` 0: any number of them, known at run time only.
template <uint32_t kGroups>
PACKTRAIN_RESAMPLE_AVX2 void across_groups(const AcrossTable& table, const uint8_t* from, uint8_t* to) {
  const uint32_t groups = kGroups != 0 ? kGroups : table.groups;
  const size_t stride = size_t{groups} * kGroupWords;
  const int16_t* words = table.weights.data();
  const __m128i without_fourth = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  const uint32_t* first = table.first.data();
  const uint32_t* end = first + table.first.size();
  for (; first != end; first += kOutputsAtOnce) {
    const __m256i a = weigh<kGroups>(from + first[0], words, groups);
    const __m256i b = weigh<kGroups>(from + first[1], words + stride, groups);
    const __m256i c = weigh<kGroups>(from + first[2], words + 2 * stride, groups);
    const __m256i d = weigh<kGroups>(from + first[3], words + 3 * stride, groups);
    words += kOutputsAtOnce * stride;
    // Packing goes by halves of 128 bits: a and b come to lie in the lower, c and d in the upper one.
    const __m256i shorts = _mm256_packs_epi32(fold(a, c), fold(b, d));
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(shorts, shorts), 0b1000);
    const __m128i pixels = _mm_shuffle_epi8(_mm256_castsi256_si128(bytes), without_fourth);
    // Sixteen bytes for twelve: the rest is written over by the next pixels, or is slack.
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), pixels);
    to += kOutputsAtOnce * 3;
  }
}

PACKTRAIN_RESAMPLE_AVX2 inline __m256i twice(const int16_t* words) {
  return _mm256_broadcastsi128_si256(load_bytes(words));
}

// Red, green, blue and nothing of one output, rounded, of two rows: one in either 128 bits.
template <uint32_t kGroups>
PACKTRAIN_RESAMPLE_AVX2 inline __m256i weigh_both(const uint8_t* one, const uint8_t* other,
                                                  const int16_t* words, uint32_t groups) {
  const __m256i front =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
  const __m256i back =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1));
  __m256i high = _mm256_setzero_si256(), low = _mm256_set1_epi32(1 << (kWeightBits - 1));
  for (uint32_t group = 0; group < (kGroups != 0 ? kGroups : groups); ++group) {
    const size_t at = size_t{group} * kTapsInGroup * 3;
    const __m256i pixels =
        _mm256_inserti128_si256(_mm256_castsi128_si256(load_bytes(one + at)), load_bytes(other + at), 1);
    const __m256i first = _mm256_shuffle_epi8(pixels, front), second = _mm256_shuffle_epi8(pixels, back);
    const int16_t* of_group = words + size_t{group} * kGroupWords;
    high = _mm256_add_epi32(high, _mm256_madd_epi16(first, twice(of_group)));
    low = _mm256_add_epi32(low, _mm256_madd_epi16(first, twice(of_group + 16)));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(second, twice(of_group + 8)));
    low = _mm256_add_epi32(low, _mm256_madd_epi16(second, twice(of_group + 24)));
  }
  return _mm256_srai_epi32(join(high, low), kWeightBits);
}

// Two rows at once: no sum has to be folded, and weights are fetched once for both.
template <uint32_t kGroups>
PACKTRAIN_RESAMPLE_AVX2 void rows_across(const AcrossTable& table, const uint8_t* const* from,
                                         uint8_t* const* to) {
  const uint32_t groups = kGroups != 0 ? kGroups : table.groups;
  const size_t stride = size_t{groups} * kGroupWords;
  const int16_t* words = table.weights.data();
  const __m256i without_fourth =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
  const uint8_t *const one = from[0], *const other = from[1];
  uint8_t *to_one = to[0], *to_other = to[1];
  const uint32_t* first = table.first.data();
  const uint32_t* end = first + table.first.size();
  for (; first != end; first += kOutputsAtOnce) {
    const auto output = [&](uint32_t i) PACKTRAIN_RESAMPLE_AVX2 {
      return weigh_both<kGroups>(one + first[i], other + first[i], words + i * stride, groups);
    };
    const __m256i lower = _mm256_packs_epi32(output(0), output(1));
    const __m256i upper = _mm256_packs_epi32(output(2), output(3));
    words += kOutputsAtOnce * stride;
    const __m256i pixels = _mm256_shuffle_epi8(_mm256_packus_epi16(lower, upper), without_fourth);
    // Sixteen bytes for twelve, as above.
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to_one), _mm256_castsi256_si128(pixels));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to_other), _mm256_extracti128_si256(pixels, 1));
    to_one += kOutputsAtOnce * 3;
    to_other += kOutputsAtOnce * 3;
  }
}

void across_avx2(const ResizeAxis&, uint32_t, const AcrossTable& table, const uint8_t* const* from,
                 uint8_t* const* to, uint32_t rows) {
  const auto of_two = table.groups == 1   ? rows_across<1>
                      : table.groups == 2 ? rows_across<2>
                                          : rows_across<0>;
  uint32_t row = 0;
  for (; row + 2 <= rows; row += 2) of_two(table, from + row, to + row);
  if (row < rows) row_across_avx2(table, from[row], to[row]);
}

// The weights of two taps, side by side in every lane.
struct TapPair {
  __m256i high, low;
};
PACKTRAIN_RESAMPLE_AVX2 inline TapPair pair_of(const int32_t* weights, uint32_t tap) {
  constexpr int32_t kLowMask = (1 << kLowBits) - 1;
  const int32_t one = weights[tap], other = weights[tap + 1];  // behind the last stands a zero
  return {_mm256_set1_epi32(one >> kLowBits | (other >> kLowBits) << 16),
          _mm256_set1_epi32((one & kLowMask) | (other & kLowMask) << 16)};
}

PACKTRAIN_RESAMPLE_AVX2 inline __m256i widen(const uint8_t* bytes) {
  return _mm256_cvtepu8_epi16(load_bytes(bytes));
}

// Most images need few taps, whose weights are made once for a row; of many, they are made again for each
// step.
constexpr uint32_t kFewTaps = 16;

// Two rows, widened and interleaved word by word, against a pair of weights: 16 columns a step.
template <bool kFew>
PACKTRAIN_RESAMPLE_AVX2 void down_taps(const uint8_t* const* rows, const int32_t* weights, uint32_t count,
                                       size_t bytes, uint8_t* to) {
  const __m256i half = _mm256_set1_epi32(1 << (kWeightBits - 1));
  constexpr size_t kColumns = 16;
  TapPair pairs[kFew ? kFewTaps / 2 : 1];
  if constexpr (kFew)
    for (uint32_t tap = 0; tap < count; tap += 2) pairs[tap / 2] = pair_of(weights, tap);
  for (size_t at = 0; at < bytes; at += kColumns) {
    __m256i high[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    __m256i low[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (uint32_t tap = 0; tap < count; tap += 2) {
      const TapPair pair = kFew ? pairs[tap / 2] : pair_of(weights, tap);
      // The last of an odd number stands beside itself, with a weight of nothing.
      const uint8_t* other = rows[std::min(tap + 1, count - 1)];
      const __m256i a = widen(rows[tap] + at), b = widen(other + at);
      const __m256i left = _mm256_unpacklo_epi16(a, b), right = _mm256_unpackhi_epi16(a, b);
      high[0] = _mm256_add_epi32(high[0], _mm256_madd_epi16(left, pair.high));
      low[0] = _mm256_add_epi32(low[0], _mm256_madd_epi16(left, pair.low));
      high[1] = _mm256_add_epi32(high[1], _mm256_madd_epi16(right, pair.high));
      low[1] = _mm256_add_epi32(low[1], _mm256_madd_epi16(right, pair.low));
    }
    const __m256i left = _mm256_srai_epi32(_mm256_add_epi32(join(high[0], low[0]), half), kWeightBits);
    const __m256i right = _mm256_srai_epi32(_mm256_add_epi32(join(high[1], low[1]), half), kWeightBits);
    // Packing goes by halves of 128 bits, as interleaving did: the columns are in order again.
    const __m256i shorts = _mm256_packs_epi32(left, right);
    const __m128i packed =
        _mm_packus_epi16(_mm256_castsi256_si128(shorts), _mm256_extracti128_si256(shorts, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + at), packed);
  }
}

void down_avx2(const uint8_t* const* rows, const int32_t* weights, uint32_t count, size_t bytes,
               uint8_t* to) {
  if (count <= kFewTaps) return down_taps<true>(rows, weights, count, bytes, to);
  down_taps<false>(rows, weights, count, bytes, to);
}

}  // namespace

void row_across_avx2(const AcrossTable& table, const uint8_t* from, uint8_t* to) {
  switch (table.groups) {
    case 1:
      return across_groups<1>(table, from, to);
    case 2:
      return across_groups<2>(table, from, to);
    default:
      return across_groups<0>(table, from, to);
  }
}

bool has_avx2() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  return has_f16c && __builtin_cpu_supports("avx2");
}

const ResampleKernels kAvx2Resample{prepare_groups, across_avx2, down_avx2};

}  // namespace packtrain

#endif
