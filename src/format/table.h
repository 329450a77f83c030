// The formats that formats.cc lists, one constant per file of this folder.
#pragma once

#include "packtrain/format.h"

namespace packtrain {

extern const Format kTar;
extern const Format kZip;

// A container as a shard of an index: its name there, its size and time.
ShardSpec shard_spec(const Format& format, std::string_view path, const File& file,
                     const IndexOptions& options);

}  // namespace packtrain
