// Knows whether this process is a forked child: threads and rings of the parent are not in it.
#pragma once

#include <cstdint>

namespace packtrain {

// How many forks lie between the process that loaded packtrain and this one. State that holds threads or
// a ring remembers the number at its birth and is rebuilt when it differs. One load: no system call.
uint64_t fork_generation();

}  // namespace packtrain
