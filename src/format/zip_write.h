// How zip archives are written: planned where entries are stored as they are, front to back where compressed.
#pragma once

#include "packtrain/format.h"

namespace packtrain {

extern const Layout kZipLayout;
inline constexpr std::string_view kZipCodecs[] = {"deflate"};

// With deflate, entries that compress_value.h would leave as they are are stored.
// Memory: 4 MiB, one entry, and the directory.
Result<std::unique_ptr<ContainerWriter>> create_zip(Storage& storage, std::string_view path,
                                                    const WriteSpec& spec);

}  // namespace packtrain
