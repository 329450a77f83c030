// NumPy arrays on memory that a Python object owns.
#pragma once

#include <nanobind/ndarray.h>

#include <span>

#include "bind.h"

namespace packtrain::bind {

// In C order; it keeps `owner` alive. By NumPy's own table of functions, a tenth of what the way through the
// buffer protocol costs, which is taken where the table is not one that is known here.
nb::object array_on(nb::handle owner, void* data, std::span<const size_t> shape, nb::dlpack::dtype type);

}  // namespace packtrain::bind
