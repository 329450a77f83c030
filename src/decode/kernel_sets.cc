#include "decode/kernel_sets.h"

#include <cstdlib>

#include <fmt/format.h>

#include "base/words.h"
#include "packtrain/transform.h"

namespace packtrain {

const std::vector<KernelSet>& kernel_sets() {
  static const std::vector<KernelSet> sets = [] {
    std::vector<KernelSet> list;
#ifdef PACKTRAIN_HAS_AVX2_KERNELS
    if (has_avx2()) list.push_back({"avx2", kAvx2Resample, kAvx2Pixels});
#endif
#ifdef PACKTRAIN_HAS_NEON_KERNELS
    list.push_back({"neon", kNeonResample, kNeonPixels});
#endif
    list.push_back({"scalar", kScalarResample, kScalarPixels});
    return list;
  }();
  return sets;
}

Result<const KernelSet*> find_kernels(std::string_view name) {
  const char* asked = std::getenv("PACKTRAIN_KERNELS");
  const bool by_environment = name.empty() && asked != nullptr;
  if (by_environment) name = asked;
  if (name.empty()) return &kernel_sets().front();
  for (const KernelSet& set : kernel_sets())
    if (set.name == name) return &set;
  return Status(Code::invalid, fmt::format("{}{}: this processor and this build have no such kernels, but {}",
                                           by_environment ? "PACKTRAIN_KERNELS=" : "", printable(name),
                                           fmt::join(kernel_names(), ", ")));
}

std::vector<std::string_view> kernel_names() {
  std::vector<std::string_view> names;
  for (const KernelSet& set : kernel_sets()) names.push_back(set.name);
  return names;
}

}  // namespace packtrain
