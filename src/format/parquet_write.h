// Parquet: the writer.
#pragma once

#include <memory>
#include <string_view>

#include "packtrain/format.h"

namespace packtrain {

Result<std::unique_ptr<ContainerWriter>> create_parquet(Storage& storage, std::string_view path,
                                                        const WriteSpec& spec);

}  // namespace packtrain
