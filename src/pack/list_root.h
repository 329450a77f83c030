// What the paths in a list are relative to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pack/sources.h"

namespace packtrain {

// The folder that a path lies in: "." for a bare name.
std::string folder_around(std::string_view path);

// --root; else the list's own folder, if one of `probes`, a few of its relative paths, is there; else the one
// folder in it or beside it that holds all of them, or any if none holds all (flickr30k_images/ beside
// results.csv, val2017/ beside annotations/), which is told among the catalog's warnings. Code::invalid if
// there are several such folders. If there is none, the list's own.
Result<std::string> find_root(ScanContext& context, const Source& source,
                              const std::vector<std::string>& probes);

}  // namespace packtrain
