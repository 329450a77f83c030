// Running out of memory as a status: a thread that others wait for must say so, and cannot just end.
#pragma once

#include <new>
#include <stdexcept>

#include "packtrain/status.h"

namespace packtrain {

inline Status out_of_memory() {
  return Status(Code::no_room, "out of memory; give the job more, or use fewer --jobs or threads");
}

// What `work` returns, a Status or a Result; Code::no_room where there was no memory for it.
template <class Work>
auto within_memory(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::length_error&) {  // more than any memory holds
    return out_of_memory();
  }
}

}  // namespace packtrain
