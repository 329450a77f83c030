// From a pattern to paths: braces as webdataset and the shell write them, then globs, "::" between patterns.
#include <algorithm>
#include <charconv>
#include <optional>

#include "base/words.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

constexpr size_t kMostPaths = 1'000'000;

Status too_many(std::string_view pattern) {
  return Status(Code::invalid, "stands for more than 1,000,000 paths").at(printable(pattern));
}

// The place of the brace that closes the one at `open`; npos if none does.
size_t closing_brace(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// The parts between commas that no inner brace encloses.
std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t from = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}') --depth;
    if (text[i] == ',' && depth == 0) {
      parts.push_back(text.substr(from, i - from));
      from = i + 1;
    }
  }
  parts.push_back(text.substr(from));
  return parts;
}

struct Range {
  int64_t first, last;
  size_t width;  // digits, zeros in front; 0: none
};

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// "LOW..HIGH" in whole numbers; a zero in front of either asks for the width of the longer.
std::optional<Range> parse_range(std::string_view text) {
  size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  std::string_view low = text.substr(0, dots), high = text.substr(dots + 2);
  auto first = whole_number(low), last = whole_number(high);
  if (!first || !last) return std::nullopt;
  auto padded = [](std::string_view digits) { return digits.size() > 1 && digits[0] == '0'; };
  bool pad = padded(low) || padded(high);
  return Range{*first, *last, pad ? std::max(low.size(), high.size()) : 0};
}

std::string with_width(int64_t value, size_t width) {
  std::string digits = std::to_string(value);
  if (digits.size() < width && value >= 0) digits.insert(0, width - digits.size(), '0');
  return digits;
}

// Appends to `out` every text that `pattern` stands for, each with `before` in front.
Status expand_braces(const std::string& before, std::string_view pattern, std::vector<std::string>& out) {
  for (size_t open = pattern.find('{'); open != std::string_view::npos; open = pattern.find('{', open + 1)) {
    size_t close = closing_brace(pattern, open);
    if (close == std::string_view::npos) continue;
    std::string_view inside = pattern.substr(open + 1, close - open - 1), after = pattern.substr(close + 1);
    std::vector<std::string> choices;
    if (auto range = parse_range(inside)) {
      auto steps = static_cast<uint64_t>(range->last) - static_cast<uint64_t>(range->first);
      if (range->last < range->first) steps = 0 - steps;
      if (steps >= kMostPaths) return too_many(pattern);
      int64_t direction = range->last < range->first ? -1 : 1;
      for (uint64_t i = 0; i <= steps; ++i) {
        choices.push_back(with_width(range->first + direction * static_cast<int64_t>(i), range->width));
      }
    } else if (auto parts = split_list(inside); parts.size() > 1) {
      for (std::string_view part : parts) PACKTRAIN_TRY(expand_braces("", part, choices));
    } else {
      continue;  // plain text in braces
    }
    std::string front = before + std::string(pattern.substr(0, open));
    for (const std::string& choice : choices) PACKTRAIN_TRY(expand_braces(front + choice, after, out));
    return {};
  }
  if (out.size() >= kMostPaths) return too_many(pattern);
  out.push_back(before + std::string(pattern));
  return {};
}

bool has_glob(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

// Whether `letter` is in the set that `pattern` begins with, "[a-z]" or "[!a-z]"; moves `pattern` behind it.
// Without a closing bracket '[' stands for itself.
bool in_set(std::string_view& pattern, char letter) {
  size_t at = 1;
  bool negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (negated) ++at;
  size_t close = pattern.find(']', at + 1);
  if (close == std::string_view::npos) {
    pattern.remove_prefix(1);
    return letter == '[';
  }
  bool found = false;
  while (at < close) {
    auto low = static_cast<unsigned char>(pattern[at]), high = low;
    if (at + 2 < close && pattern[at + 1] == '-') {
      high = static_cast<unsigned char>(pattern[at + 2]);
      at += 3;
    } else {
      ++at;
    }
    auto value = static_cast<unsigned char>(letter);
    if (value >= low && value <= high) found = true;
  }
  pattern.remove_prefix(close + 1);
  return found != negated;
}

// One component against one pattern of *, ? and []; linear but for the last star.
bool matches(std::string_view pattern, std::string_view name) {
  if (name.starts_with('.') && !pattern.starts_with('.')) return false;
  std::string_view star_pattern, star_name;
  bool starred = false;
  while (true) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      star_pattern = pattern;
      star_name = name;
      starred = true;
      continue;
    }
    if (pattern.empty() && name.empty()) return true;
    bool same = false;
    if (!pattern.empty() && !name.empty()) {
      if (pattern[0] == '[') {
        same = in_set(pattern, name[0]);
      } else {
        same = pattern[0] == '?' || pattern[0] == name[0];
        pattern.remove_prefix(1);
      }
    }
    if (same) {
      name.remove_prefix(1);
    } else {
      if (!starred || star_name.empty()) return false;
      star_name.remove_prefix(1);
      name = star_name;
      pattern = star_pattern;
    }
  }
}

// Appends the existing paths that `pattern` matches, sorted, component by component from `found` on.
Status expand_globs(Storage& storage, std::string_view pattern, std::vector<std::string>& out) {
  std::vector<std::string> found = {pattern.starts_with('/') ? "/" : ""};
  for (size_t at = pattern.starts_with('/') ? 1 : 0; at <= pattern.size();) {
    size_t end = std::min(pattern.find('/', at), pattern.size());
    std::string_view component = pattern.substr(at, end - at);
    bool last = end == pattern.size();
    std::vector<std::string> next;
    for (const std::string& folder : found) {
      std::string front = folder.empty() || folder == "/" ? folder : folder + "/";
      if (!has_glob(component)) {
        std::string path = front + std::string(component);
        if (!last || storage.stat(path).ok()) next.push_back(std::move(path));
        continue;
      }
      Status status = storage.list(folder.empty() ? "." : folder, [&](FolderEntry&& entry) {
        if (matches(component, entry.name)) next.push_back(front + entry.name);
        return next.size() <= kMostPaths;
      });
      if (!status.ok() && status.code() != Code::not_found) return status;
      if (next.size() > kMostPaths) return too_many(pattern);
    }
    std::sort(next.begin(), next.end());
    found = std::move(next);
    at = end + 1;
  }
  if (found.empty()) return Status(Code::not_found, "no path matches").at(printable(pattern));
  out.insert(out.end(), found.begin(), found.end());
  return {};
}

}  // namespace

Result<std::vector<std::string>> expand_paths(Storage& storage, std::string_view pattern) {
  if (pattern.empty())
    return Status(Code::invalid, "the path is empty; name a dataset, a container or a pattern");
  // A name that exists is meant as it stands, whatever signs it has.
  if (pattern.find_first_of("{*?[:") == std::string_view::npos || storage.stat(pattern).ok()) {
    return std::vector<std::string>{std::string(pattern)};
  }
  std::vector<std::string> braced, paths;
  for (size_t at = 0; at <= pattern.size();) {
    size_t end = std::min(pattern.find("::", at), pattern.size());
    PACKTRAIN_TRY(expand_braces("", pattern.substr(at, end - at), braced));
    at = end + 2;
  }
  for (const std::string& path : braced) {
    if (path.empty()) return Status(Code::invalid, "names an empty path").at(printable(pattern));
    if (has_glob(path) && !storage.stat(path).ok()) {
      PACKTRAIN_TRY(expand_globs(storage, path, paths));
    } else {
      paths.push_back(path);
    }
    if (paths.size() > kMostPaths) return too_many(pattern);
  }
  return paths;
}

}  // namespace packtrain
