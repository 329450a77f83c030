// The module packtrain._core: one line per binding file.
#include "base/version.h"
#include "bind.h"

NB_MODULE(_core, module) {
  using namespace packtrain::bind;
  // Arrays that tensors or globals still hold when the interpreter ends are no leak that a user should read
  // of.
  nanobind::set_leak_warnings(false);
  module.doc() = "The C++ core of packtrain.";
  module.def(
      "version", [] { return to_text(packtrain::version()); },
      "The version of packtrain, as the command prints it.");
  bind_progress(module);
  bind_storage(module);
  bind_place(module);
  bind_codec(module);
  bind_index(module);
  bind_format(module);
  bind_pack(module);
  bind_image_spec(module);
  bind_transform(module);
  bind_values(module);
  bind_load(module);
}
