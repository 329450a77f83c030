// Reading what the kernel has in memory already.
#pragma once

#include "packtrain/storage.h"

namespace packtrain {

// Fills `into` only if all of it is in the page cache, so that nothing is waited for. False where it is not,
// where the filesystem cannot tell, and for files that are not of the POSIX storage: then what `into` holds
// is undefined, and Storage reads it. No lock, no allocation. Thread-safe.
bool read_if_cached(const File& file, uint64_t offset, MutableBytes into);

// Whether the file lies on a disk of this machine, or in its memory. A call. False for files that are not of
// the POSIX storage.
bool is_near(const File& file);

}  // namespace packtrain
