#include "tools/named_source.h"

#include <string_view>

#include "packtrain/storage.h"

namespace packtrain::tools {

// NAME=SOURCE, where NAME looks like a split's name, or SOURCE is there; anything else is a path, even with
// '=' in it. So is the whole of it where that is there and SOURCE is not.
std::pair<std::string, std::string> parse_source(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0) return {"", text};
  const std::string_view name = std::string_view(text).substr(0, equals);
  std::string path = text.substr(equals + 1);
  const auto is_there = [](const std::string& file) { return posix_storage().stat(file).ok(); };
  for (char c : name) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (fits) continue;
    // Where only SOURCE is there, NAME was meant as one, and the check of names says what is wrong with it.
    if (name.find('/') != name.npos || path.empty() || is_there(text) || !is_there(path)) return {"", text};
    break;
  }
  if (!is_there(path) && is_there(text)) return {"", text};
  return {std::string(name), std::move(path)};
}

}  // namespace packtrain::tools
