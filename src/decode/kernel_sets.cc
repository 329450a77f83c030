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
    if (has_avx2() && has_avx512()) list.push_back({"avx512", kAvx512Resample, kAvx2Pixels});
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
  const auto names = kernel_names();
  return Status(
      Code::invalid,
      fmt::format("{}{}: there are no such kernels for this processor in this build; take one of {}",
                  by_environment ? "PACKTRAIN_KERNELS=" : "kernels ", printable(name),
                  names_in_words(names, names.size())));
}

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const KernelSet& set : kernel_sets()) names.emplace_back(set.name);
  return names;
}

}  // namespace packtrain
