// LMDB files, written whole: see lmdb_records.h for their pages and docs/formats.md for what we put into
// them.
#pragma once

#include "packtrain/format.h"

namespace packtrain {

Result<std::unique_ptr<ContainerWriter>> create_lmdb(Storage& storage, std::string_view path,
                                                     const WriteSpec& spec);

}  // namespace packtrain
