// The kernels for each instruction set, and whether this processor has it. The build's floor is lower: each
// is compiled by attribute, and chosen at run time.
#pragma once

#include "decode/pixel_writer.h"
#include "decode/resample.h"

#if defined(__x86_64__)
#define PACKTRAIN_HAS_AVX2_KERNELS 1
#endif

namespace packtrain {

#ifdef PACKTRAIN_HAS_AVX2_KERNELS
bool has_avx2();  // and F16C, which every processor with AVX2 has
extern const ResampleKernels kAvx2Resample;
extern const PixelKernels kAvx2Pixels;
#endif

}  // namespace packtrain
