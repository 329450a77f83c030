#include "index/split_name.h"

#include <algorithm>

#include "base/words.h"

namespace packtrain {

Status check_split_name(std::string_view name) {
  constexpr size_t kLongest = 64, kShown = 80;
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  const auto is_plain = [&](char c) { return is_word(c) || c == '.' || c == '-' || c == '+'; };
  if (!name.empty() && name.size() <= kLongest && is_word(name.front()) &&
      std::all_of(name.begin(), name.end(), is_plain))
    return {};
  return Status(Code::invalid, "\"" + printable(name.substr(0, kShown)) +
                                   "\" cannot be the name of a split, since shards are called by it; use up "
                                   "to 64 letters, digits and . _ - +, with a letter or digit in front");
}

}  // namespace packtrain
