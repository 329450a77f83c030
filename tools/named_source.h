// NAME=SOURCE: a source or a container with the split that it is.
#pragma once

#include <string>
#include <utility>

namespace packtrain::tools {

// The split, empty if none is named, and the path.
std::pair<std::string, std::string> parse_source(const std::string& text);

}  // namespace packtrain::tools
