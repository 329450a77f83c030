// How many files this process may have open.
#pragma once

#include <cerrno>
#include <cstdint>

namespace packtrain {

// Raises the soft limit of open files to the hard one. Thread-safe; errno is left as it was.
void raise_open_files();

// How many that can be at most: the hard limit.
uint64_t most_open_files();

// Opens a file: `open` gives a descriptor, or less than 0 and errno. Only where too many are open is the
// limit raised, and the open tried once more, also if another thread was the first to raise it: a host whose
// files fit into the limit that it was given keeps it.
template <class Open>
int open_descriptor(const Open& open) {
  for (bool raised = false;;) {
    const int descriptor = open();
    if (descriptor >= 0) return descriptor;
    if (errno == EINTR) continue;
    if (errno != EMFILE || raised) return descriptor;
    raise_open_files();
    raised = true;
  }
}

}  // namespace packtrain
