// SquashFS images, written without mksquashfs: see squashfs_records.h for their parts and docs/formats.md for
// what we put into them.
#pragma once

#include "packtrain/format.h"

namespace packtrain {

inline constexpr std::string_view kSquashfsCodecs[] = {"zstd", "deflate"};

// Files and blocks that compress_value.h would leave as they are are stored raw.
Result<std::unique_ptr<ContainerWriter>> create_squashfs(Storage& storage, std::string_view path,
                                                         const WriteSpec& spec);

}  // namespace packtrain
