// Pieces of the page that `show` writes. Pure functions; whatever bytes go in, well-formed UTF-8 comes out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "packtrain/status.h"

namespace packtrain {

// For text and attribute values: markup escaped, control bytes and broken UTF-8 as U+FFFD. Longer than
// `longest` bytes is cut at a character, with an ellipsis.
std::string html_text(std::string_view text, size_t longest = 400);
std::string data_uri(std::string_view media_type, Bytes bytes);

}  // namespace packtrain
