#include "pack/extract_path.h"

#include <algorithm>

#include "base/words.h"

namespace packtrain {

Result<std::string> path_below_target(std::string_view recorded) {
  const auto refused = [&](std::string_view why) {
    return Status(Code::corrupt, "its recorded name '" + printable(recorded) + "' " + std::string(why) +
                                     "; nothing is extracted from a dataset that could write elsewhere");
  };
  if (recorded.empty()) return refused("is empty");
  if (recorded.find('\0') != std::string_view::npos) return refused("has a byte 0 in it");
  if (recorded.front() == '/') return refused("is an absolute path");
  std::string path;
  for (size_t at = 0; at <= recorded.size();) {
    const size_t slash = std::min(recorded.find('/', at), recorded.size());
    const std::string_view part = recorded.substr(at, slash - at);
    at = slash + 1;
    if (part == "..") return refused("leads out of the target folder");
    if (part.empty()) return refused("has an empty component");
    if (part == ".") continue;
    if (!path.empty()) path += '/';
    path += part;
  }
  if (path.empty()) return refused("names a folder");
  return path;
}

}  // namespace packtrain
