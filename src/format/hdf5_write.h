// HDF5: the writers, without libhdf5. See docs/formats.md for the two layouts.
#pragma once

#include <memory>

#include "packtrain/format.h"

namespace packtrain {

Result<std::unique_ptr<ContainerWriter>> create_hdf5(Storage& storage, std::string_view path,
                                                     const WriteSpec& spec);
Result<std::unique_ptr<ContainerWriter>> create_hdf5_vlen(Storage& storage, std::string_view path,
                                                          const WriteSpec& spec);

}  // namespace packtrain
