// A container whose layout could be planned, written front to back all the same: for members whose sizes are
// known only when they come.
#pragma once

#include <memory>
#include <string_view>

#include "packtrain/format.h"

namespace packtrain {

// Gives the bytes that writing by position gives for the same members. `layout` must outlive it.
Result<std::unique_ptr<ContainerWriter>> create_laid_out(Storage& storage, std::string_view path,
                                                         const Layout& layout, const WriteSpec& spec);

}  // namespace packtrain
