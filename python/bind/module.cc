// The module packtrain._core: one line per binding file. Conversion only; no logic lives here.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>

#include "base/version.h"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of packtrain.";
  m.def("version", &packtrain::version, "The version of packtrain, as the command prints it.");
}
