// What the vector kernels of x86 share: how the weights across are laid out.
#pragma once

#include "decode/kernel_sets.h"

#ifdef PACKTRAIN_HAS_AVX2_KERNELS

namespace packtrain {

// A 22-bit weight does not fit the 16-bit multiplier, so that each is split into 14 high and 8 low bits. A
// group is four taps of one output: their high halves, then the low ones. In either, eight words are for taps
// 0 and 1, and eight for 2 and 3: red, red, green, green, blue, blue, nothing.
constexpr uint32_t kTapsInGroup = 4;
constexpr uint32_t kOutputsAtOnce = 4;
constexpr uint32_t kLowBits = 8;
constexpr size_t kGroupWords = 32;

void prepare_groups(const ResizeAxis& axis, uint32_t row_begin, AcrossTable& table);
// One row, with AVX2.
void row_across_avx2(const AcrossTable& table, const uint8_t* from, uint8_t* to);

}  // namespace packtrain

#endif
