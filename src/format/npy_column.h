// A .npy file as a column of a table, wherever it lies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/array_table.h"
#include "format/npy_header.h"
#include "packtrain/status.h"

namespace packtrain {

inline constexpr std::string_view kNpySuffix = ".npy";
inline constexpr uint64_t kNpyHeadBytes = 256;  // where a header is, but for records with many fields

// A column with one part: the .npy file `part`, of which `header` was read.
Result<ArrayColumn> npy_column(std::string name, const NpyHeader& header, ArrayPart part, Pipeline pipeline);

}  // namespace packtrain
