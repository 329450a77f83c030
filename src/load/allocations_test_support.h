// Counts what all threads of a test allocate.
#pragma once

#include <cstdint>

namespace packtrain {

// Calls of operator new, the aligned one too, by any thread so far.
uint64_t allocations_of_all_threads();

}  // namespace packtrain
