// Names of splits become names of shards, so they must be plain.
#pragma once

#include <string_view>

#include "packtrain/status.h"

namespace packtrain {

// Code::invalid unless it is letters, digits, '.', '_', '-' and '+', up to 64 of them, with a letter, a digit
// or '_' in front: no name of a shard leads out of its folder, hides, or looks like an option.
Status check_split_name(std::string_view name);

}  // namespace packtrain
