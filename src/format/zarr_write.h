// How Zarr is written: version 3 in a zip without compression (ZipStore), so that a shard is one file.
#pragma once

#include "packtrain/format.h"

namespace packtrain {

// The attribute of the root group by which packtrain knows what it wrote.
inline constexpr std::string_view kZarrMark = "packtrain";

// Blosc is LZ4, shuffled. Stacked arrays are compressed row by row, and whole: a chunk cannot stay as it is
// where its neighbours do not. Bytes with offsets are stored as they are, so that each value is one plain
// read.
inline constexpr std::string_view kZarrCodecs[] = {"blosc", "zstd"};
std::optional<ValueCoding> zarr_coding(std::string_view codec, Bytes head, uint64_t bytes);

Result<std::unique_ptr<ContainerWriter>> create_zarr(Storage& storage, std::string_view path,
                                                     const WriteSpec& spec);

}  // namespace packtrain
