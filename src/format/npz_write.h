// How NPZ files are written: array_writer.h over a zip of .npy files.
#pragma once

#include "packtrain/format.h"

namespace packtrain {

// `compress`: "none" or "auto", which is the same: single rows could not be read from compressed members.
Result<std::unique_ptr<ContainerWriter>> create_npz(Storage& storage, std::string_view path,
                                                    const WriteSpec& spec);

}  // namespace packtrain
