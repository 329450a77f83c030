// How Zarr is written: version 3 in a zip without compression (ZipStore), so that a shard is one file.
#pragma once

#include "packtrain/format.h"

namespace packtrain {

// The attribute of the root group by which packtrain knows what it wrote.
inline constexpr std::string_view kZarrMark = "packtrain";

// `compress`: "blosc" (LZ4, shuffled) or "zstd" for stacked arrays, row by row; "none" (also "auto"). Bytes
// with offsets are stored as they are.
Result<std::unique_ptr<ContainerWriter>> create_zarr(Storage& storage, std::string_view path,
                                                     const WriteSpec& spec);

}  // namespace packtrain
