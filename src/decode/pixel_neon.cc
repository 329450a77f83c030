// Pixels to numbers with NEON: eight values a step. Multiplied and added apart, not fused, so that every
// instruction set gives the same bits; the build's -ffp-contract=off keeps the compiler from joining them.
#include "decode/kernel_sets.h"

#ifdef PACKTRAIN_HAS_NEON_KERNELS

#include <arm_neon.h>

namespace packtrain {

namespace {

inline float32x4_t apply(uint16x4_t bytes, const float* scale, const float* offset) {
  const float32x4_t values = vcvtq_f32_u32(vmovl_u16(bytes));
  return vaddq_f32(vmulq_f32(values, vld1q_f32(scale)), vld1q_f32(offset));
}

struct StoreFloat32 {
  using Number = float;
  static void store(float32x4_t a, float32x4_t b, std::byte* to) {
    vst1q_u8(reinterpret_cast<uint8_t*>(to), vreinterpretq_u8_f32(a));
    vst1q_u8(reinterpret_cast<uint8_t*>(to) + 16, vreinterpretq_u8_f32(b));
  }
};
struct StoreFloat16 {
  using Number = uint16_t;
  static void store(float32x4_t a, float32x4_t b, std::byte* to) {
    const float16x8_t halves = vcombine_f16(vcvt_f16_f32(a), vcvt_f16_f32(b));
    vst1q_u8(reinterpret_cast<uint8_t*>(to), vreinterpretq_u8_f16(halves));
  }
};
struct StoreBfloat16 {
  using Number = uint16_t;
  static uint16x4_t round(float32x4_t values) {
    const uint32x4_t bits = vreinterpretq_u32_f32(values);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    return vshrn_n_u32(vaddq_u32(vaddq_u32(bits, odd), vdupq_n_u32(0x7FFF)), 16);
  }
  static void store(float32x4_t a, float32x4_t b, std::byte* to) {
    vst1q_u8(reinterpret_cast<uint8_t*>(to), vreinterpretq_u8_u16(vcombine_u16(round(a), round(b))));
  }
};

template <class Store>
void convert(const uint8_t* from, size_t values, const PixelFactors& factors, std::byte* to,
             PixelKernels::Convert rest) {
  constexpr size_t kNumber = sizeof(typename Store::Number);
  if (values < kFactorVector) return rest(from, values, factors, to);
  const auto step = [&](size_t i, size_t place) {
    const uint16x8_t bytes = vmovl_u8(vld1_u8(from + i));
    const float *scale = &factors.scale[place], *offset = &factors.offset[place];
    Store::store(apply(vget_low_u16(bytes), scale, offset),
                 apply(vget_high_u16(bytes), scale + 4, offset + 4), to + i * kNumber);
  };
  size_t place = 0;
  for (size_t i = 0; i + kFactorVector <= values; i += kFactorVector) {
    step(i, place);
    place = place + kFactorVector < kFactorPeriod ? place + kFactorVector : 0;
  }
  // The last vector ends with the last value, and overlaps the one before it.
  if (values % kFactorVector != 0) step(values - kFactorVector, (values - kFactorVector) % kFactorPeriod);
}

void float32_neon(const uint8_t* from, size_t values, const PixelFactors& factors, std::byte* to) {
  convert<StoreFloat32>(from, values, factors, to, kScalarPixels.to_float32);
}
void float16_neon(const uint8_t* from, size_t values, const PixelFactors& factors, std::byte* to) {
  convert<StoreFloat16>(from, values, factors, to, kScalarPixels.to_float16);
}
void bfloat16_neon(const uint8_t* from, size_t values, const PixelFactors& factors, std::byte* to) {
  convert<StoreBfloat16>(from, values, factors, to, kScalarPixels.to_bfloat16);
}

void split_neon(const uint8_t* rgb, size_t pixels, uint8_t* red, uint8_t* green, uint8_t* blue) {
  size_t i = 0;
  for (; i + 16 <= pixels; i += 16) {
    const uint8x16x3_t channels = vld3q_u8(rgb + 3 * i);
    vst1q_u8(red + i, channels.val[0]);
    vst1q_u8(green + i, channels.val[1]);
    vst1q_u8(blue + i, channels.val[2]);
  }
  if (i < pixels) kScalarPixels.split(rgb + 3 * i, pixels - i, red + i, green + i, blue + i);
}

}  // namespace

const PixelKernels kNeonPixels{split_neon, float32_neon, float16_neon, bfloat16_neon};

}  // namespace packtrain

#endif
