// Pixels to numbers with AVX2: 24 values a step. Multiplied and added apart, not fused, so that every
// instruction set gives the same bits.
#include "decode/kernel_sets.h"

#ifdef PACKTRAIN_HAS_AVX2_KERNELS

#include <immintrin.h>

#define PACKTRAIN_AVX2 __attribute__((target("avx2,f16c")))

namespace packtrain {

namespace {

PACKTRAIN_AVX2 inline __m256 apply(const uint8_t* from, const float* scale, const float* offset) {
  const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(wide), _mm256_loadu_ps(scale));
  return _mm256_add_ps(product, _mm256_loadu_ps(offset));
}

struct StoreFloat32 {
  using Number = float;
  PACKTRAIN_AVX2 static void store(__m256 values, std::byte* to) {
    _mm256_storeu_ps(reinterpret_cast<float*>(to), values);
  }
};
struct StoreFloat16 {
  using Number = uint16_t;
  PACKTRAIN_AVX2 static void store(__m256 values, std::byte* to) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
  }
};
struct StoreBfloat16 {
  using Number = uint16_t;
  PACKTRAIN_AVX2 static void store(__m256 values, std::byte* to) {
    const __m256i bits = _mm256_castps_si256(values);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7FFF)), 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(rounded, rounded), 0b1000);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(packed));
  }
};

template <class Store>
PACKTRAIN_AVX2 void convert(const uint8_t* from, size_t values, const PixelFactors& factors, std::byte* to,
                            PixelKernels::Convert rest) {
  constexpr size_t kNumber = sizeof(typename Store::Number);
  if (values < kFactorVector) return rest(from, values, factors, to);
  const auto step = [&](size_t i, size_t place) PACKTRAIN_AVX2 {
    Store::store(apply(from + i, &factors.scale[place], &factors.offset[place]), to + i * kNumber);
  };
  size_t place = 0;
  for (size_t i = 0; i + kFactorVector <= values; i += kFactorVector) {
    step(i, place);
    place = place + kFactorVector < kFactorPeriod ? place + kFactorVector : 0;
  }
  // The last vector ends with the last value, and overlaps the one before it.
  if (values % kFactorVector != 0) step(values - kFactorVector, (values - kFactorVector) % kFactorPeriod);
}

void float32_avx2(const uint8_t* from, size_t values, const PixelFactors& factors, std::byte* to) {
  convert<StoreFloat32>(from, values, factors, to, kScalarPixels.to_float32);
}
void float16_avx2(const uint8_t* from, size_t values, const PixelFactors& factors, std::byte* to) {
  convert<StoreFloat16>(from, values, factors, to, kScalarPixels.to_float16);
}
void bfloat16_avx2(const uint8_t* from, size_t values, const PixelFactors& factors, std::byte* to) {
  convert<StoreBfloat16>(from, values, factors, to, kScalarPixels.to_bfloat16);
}

// 16 pixels a step: each third of their 48 bytes holds some bytes of every channel; a shuffle puts them in
// place and leaves the rest zero, so that three of them together make a channel.
struct SplitShuffles {
  alignas(16) int8_t places[3][3][16]{};  // [channel][third]
  constexpr SplitShuffles() {
    for (int channel = 0; channel < 3; ++channel)
      for (int third = 0; third < 3; ++third)
        for (int i = 0; i < 16; ++i) {
          const int at = 3 * i + channel - 16 * third;
          places[channel][third][i] = static_cast<int8_t>(at >= 0 && at < 16 ? at : -1);
        }
  }
};
constexpr SplitShuffles kSplit;

PACKTRAIN_AVX2 inline __m128i pick(const __m128i (&thirds)[3], int channel) {
  const auto picked = [&](int third) PACKTRAIN_AVX2 {
    return _mm_shuffle_epi8(thirds[third],
                            _mm_load_si128(reinterpret_cast<const __m128i*>(kSplit.places[channel][third])));
  };
  return _mm_or_si128(_mm_or_si128(picked(0), picked(1)), picked(2));
}

PACKTRAIN_AVX2 void split_avx2(const uint8_t* rgb, size_t pixels, uint8_t* red, uint8_t* green,
                               uint8_t* blue) {
  const auto load = [](const uint8_t* at)
                        PACKTRAIN_AVX2 { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); };
  const auto store = [](uint8_t* at, __m128i plane)
                         PACKTRAIN_AVX2 { _mm_storeu_si128(reinterpret_cast<__m128i*>(at), plane); };
  size_t i = 0;
  for (; i + 16 <= pixels; i += 16) {
    const uint8_t* at = rgb + 3 * i;
    const __m128i thirds[3] = {load(at), load(at + 16), load(at + 32)};
    store(red + i, pick(thirds, 0));
    store(green + i, pick(thirds, 1));
    store(blue + i, pick(thirds, 2));
  }
  if (i < pixels) kScalarPixels.split(rgb + 3 * i, pixels - i, red + i, green + i, blue + i);
}

}  // namespace

const PixelKernels kAvx2Pixels{split_avx2, float32_avx2, float16_avx2, bfloat16_avx2};

}  // namespace packtrain

#endif
