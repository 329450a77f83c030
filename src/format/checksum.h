// Checks for containers that came without: their bytes read once.
#pragma once

#include <string_view>

#include "packtrain/index.h"
#include "packtrain/progress.h"

namespace packtrain {

// The same index with a crc32c for every field that lies uncompressed and for every 4 MiB block of every
// shard. Checks that the container brought along are compared on the way; a difference is Code::corrupt.
// Compressed fields keep their own checks. Reads each shard once, front to back, several reads in flight.
Result<IndexBuilder::Finished> with_checksums(Storage& storage, std::string_view folder,
                                              IndexBuilder::Finished index, const Progress& progress);

}  // namespace packtrain
