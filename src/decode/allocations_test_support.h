// Counts what a test allocates.
#pragma once

#include <cstdint>

namespace packtrain {

// Calls of operator new by this thread so far.
uint64_t allocation_count();

}  // namespace packtrain
