// The kernels of each instruction set, and the choice among them. The build's floor is lower: those above it
// are compiled by attribute, and chosen at run time.
#pragma once

#include <string_view>
#include <vector>

#include "decode/pixel_writer.h"
#include "decode/resample.h"
#include "packtrain/status.h"

#if defined(__x86_64__)
#define PACKTRAIN_HAS_AVX2_KERNELS 1
#elif defined(__aarch64__) && !defined(__AARCH64EB__)
#define PACKTRAIN_HAS_NEON_KERNELS 1  // every such processor has NEON
#endif

namespace packtrain {

struct KernelSet {
  std::string_view name;
  const ResampleKernels& resample;
  const PixelKernels& pixels;
};

// Those that this processor can run, the best first; the scalar ones are always the last.
const std::vector<KernelSet>& kernel_sets();
// The set of that name; of an empty one: the one that PACKTRAIN_KERNELS names, else the best.
Result<const KernelSet*> find_kernels(std::string_view name);

extern const ResampleKernels kScalarResample;
extern const PixelKernels kScalarPixels;
#ifdef PACKTRAIN_HAS_AVX2_KERNELS
bool has_avx2();  // and F16C, which every processor with AVX2 has
extern const ResampleKernels kAvx2Resample;
extern const PixelKernels kAvx2Pixels;
bool has_avx512();  // with its byte and word instructions, and its multiplications that add up
extern const ResampleKernels kAvx512Resample;
#endif
#ifdef PACKTRAIN_HAS_NEON_KERNELS
extern const ResampleKernels kNeonResample;
extern const PixelKernels kNeonPixels;
#endif

}  // namespace packtrain
