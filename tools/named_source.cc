#include "tools/named_source.h"

#include <string_view>

#include "packtrain/storage.h"

namespace packtrain::tools {

// NAME=SOURCE, where NAME looks like a split's name; anything else is a path, even with '=' in it. So is the
// whole of it where that is there and SOURCE is not.
std::pair<std::string, std::string> parse_source(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0) return {"", text};
  const std::string_view name = std::string_view(text).substr(0, equals);
  for (char c : name) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!fits) return {"", text};
  }
  std::string path = text.substr(equals + 1);
  if (!posix_storage().stat(path).ok() && posix_storage().stat(text).ok()) return {"", text};
  return {std::string(name), std::move(path)};
}

}  // namespace packtrain::tools
