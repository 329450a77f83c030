// Files mapped into memory.
#pragma once

#include <memory>

#include "packtrain/storage.h"

namespace packtrain {

class PosixFile;

// Null where a mapping is not to be had or not wise: over a network every page is a round trip, and one that
// does not come ends the process. The mapping outlives the file; a file that is cut later raises SIGBUS,
// which is why datasets are never changed in place.
std::unique_ptr<Mapping> map_if_local(const PosixFile& file);

}  // namespace packtrain
