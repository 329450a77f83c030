#include "base/words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace packtrain {

std::string bytes_in_words(uint64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  // 999.5 and above would be printed as 1000 of the smaller unit.
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %s", decimals, value, kUnits[unit]);
  return text;
}

std::string count_in_words(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string counted(uint64_t count, std::string_view noun) {
  std::string words = count_in_words(count);
  words.append(1, ' ').append(noun);
  return count == 1 ? words : words + "s";
}

std::string seconds_in_words(double seconds) {
  char text[48];
  if (!(seconds >= 0) || seconds > 1e12) return "unknown time";
  if (seconds < 9.95) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
    return text;
  }
  const auto whole = static_cast<uint64_t>(std::llround(seconds));
  if (whole < 60) {
    std::snprintf(text, sizeof text, "%u s", static_cast<unsigned>(whole));
  } else if (whole < 3600) {
    std::snprintf(text, sizeof text, "%u min %02u s", static_cast<unsigned>(whole / 60),
                  static_cast<unsigned>(whole % 60));
  } else {
    std::snprintf(text, sizeof text, "%llu h %02u min", static_cast<unsigned long long>(whole / 3600),
                  static_cast<unsigned>(whole % 3600 / 60));
  }
  return text;
}

Result<uint64_t> parse_bytes(std::string_view text) {
  const auto bad = [&] {
    return Status(Code::invalid,
                  "'" + printable(text) + "' is not a size; write for example 512M, 1.5G or 64MiB");
  };
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0)) return bad();
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (!unit.empty() && (unit.back() == 'B' || unit.back() == 'b')) unit.remove_suffix(1);
  double factor = 1;
  if (!unit.empty()) {
    const double base = unit.size() == 2 && unit[1] == 'i' ? 1024 : 1000;
    if (unit.size() > 2 || (unit.size() == 2 && unit[1] != 'i')) return bad();
    const size_t power = std::string_view("KMGTP").find(static_cast<char>(unit[0] & ~0x20));
    if (power == std::string_view::npos) return bad();
    factor = std::pow(base, static_cast<double>(power + 1));
  }
  const double bytes = number * factor;
  if (bytes > 9e18) return bad();
  return static_cast<uint64_t>(std::llround(bytes));
}

namespace {

// Bytes of the valid UTF-8 sequence that starts at `at`, 0 if there is none.
size_t utf8_sequence(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                        : (lead & 0xF0) == 0xE0        ? 3
                        : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                       : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (size_t i = at + 1; i < at + length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and code points above U+10FFFF.
  if (lead == 0xE0 && byte(at + 1) < 0xA0) return 0;
  if (lead == 0xED && byte(at + 1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(at + 1) < 0x90) return 0;
  if (lead == 0xF4 && byte(at + 1) > 0x8F) return 0;
  return length;
}

}  // namespace

std::string names_in_words(std::span<const std::string> first_names, uint64_t count) {
  constexpr size_t kMostShown = 5;
  const size_t shown = std::min(first_names.size(), kMostShown);
  std::string words;
  for (size_t i = 0; i < shown; ++i) words += (i == 0 ? "" : ", ") + printable(first_names[i]);
  if (count > shown) words += " and " + count_in_words(count - shown) + " more";
  return words;
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_sequence(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string printable(std::string_view name) {
  constexpr size_t kLongest = 200;
  std::string out;
  for (size_t at = 0; at < name.size();) {
    if (name.size() > kLongest && at >= kLongest / 2 && at < name.size() - kLongest / 2) {
      out += "…";
      at = name.size() - kLongest / 2;
      continue;
    }
    const auto byte = static_cast<unsigned char>(name[at]);
    const size_t length = utf8_sequence(name, at);
    if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (length == 0 || byte < 0x20 || byte == 0x7F) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02X", byte);
      out += escaped;
    } else {
      out.append(name.substr(at, length));
      at += length;
      continue;
    }
    ++at;
  }
  return out;
}

std::string path_below(std::string_view folder, std::string_view name) {
  std::string path;
  path.reserve(folder.size() + 1 + name.size());
  return path.append(folder).append(1, '/').append(name);
}

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return text.ends_with(end); });
}

}  // namespace packtrain
