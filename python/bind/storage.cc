// include/packtrain/storage.h: only what a user may ask about the machine's storage.
#include "packtrain/storage.h"

#include "bind.h"

namespace packtrain::bind {

void bind_storage(nb::module_& module) {
  module.def(
      "io_uring_trouble", [] { return to_text(io_uring_trouble()); },
      "Why io_uring is not used here; empty if it works.");
}

}  // namespace packtrain::bind
