// How zip archives are written: planned where entries are stored as they are, front to back where compressed.
#pragma once

#include "packtrain/format.h"

namespace packtrain {

extern const Layout kZipLayout;

// `compress`: "deflate" (also "auto"), where an entry that would not become smaller is stored; or "none".
// Memory: 4 MiB, one entry, and the directory.
Result<std::unique_ptr<ContainerWriter>> create_zip(Storage& storage, std::string_view path,
                                                    const WriteSpec& spec);

}  // namespace packtrain
