// Numbers as people read and write them. Pure functions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "packtrain/status.h"

namespace packtrain {

std::string bytes_in_words(uint64_t bytes);                  // "1.28 GB", powers of 1000
std::string count_in_words(uint64_t count);                  // "1,281,167"
std::string counted(uint64_t count, std::string_view noun);  // "1 shard", "1,281,167 samples"
std::string seconds_in_words(double seconds);                // "45 s", "3 min 12 s", "2 h 05 min"
// "512M", "1.5G", "64MiB", "1000": K, M, G, T are powers of 1000, Ki, Mi, Gi, Ti of 1024; a trailing B may
// follow.
Result<uint64_t> parse_bytes(std::string_view text);
// A name for a message: control and non-UTF-8 bytes escaped as \n, \xNN; cut in the middle when over 200
// bytes.
std::string printable(std::string_view name);
// "a, b, c and 9 more": the first few of `count` names, each as printable() shows it.
std::string names_in_words(std::span<const std::string> first_names, uint64_t count);
bool is_utf8(std::string_view text);
std::string path_below(std::string_view folder, std::string_view name);  // "folder/name"
bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> ends);

}  // namespace packtrain
