// One array of all samples, and one of their labels: two .npy files in a folder.
#pragma once

#include <memory>
#include <string_view>

#include "packtrain/format.h"

namespace packtrain {

inline constexpr std::string_view kNpyRows = "x.npy", kNpyLabels = "y.npy";

// `path` is that of x.npy; y.npy, if there are labels, comes beside it first.
Result<std::unique_ptr<ContainerWriter>> create_npy(Storage& storage, std::string_view path,
                                                    const WriteSpec& spec);

}  // namespace packtrain
