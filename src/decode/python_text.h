// How Python writes strings as lines of ASCII. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace packtrain {

void append_utf8(uint32_t point, std::string& out);

// Python's raw-unicode-escape, Latin-1 but for \\uXXXX and \\UXXXXXXXX, to UTF-8; false if an escape is bad.
bool decode_raw_unicode(std::string_view text, std::string& out);
// The inside of a quoted Python 2 string: bytes, with escapes by a backslash; false if an escape is bad.
bool decode_literal(std::string_view text, std::string& out);

// What os.fsencode makes of a str: UTF-8, but for bytes of a name that were no UTF-8, which Python keeps as
// the surrogates U+DC80 to U+DCFF.
std::string fs_encode(std::string_view text);

}  // namespace packtrain
