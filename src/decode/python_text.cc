#include "decode/python_text.h"

#include <charconv>

namespace packtrain {
namespace {

// `digits` characters of base 8 or 16 at `at`; false if they are not there.
bool digits_at(std::string_view text, size_t at, size_t digits, int base, uint32_t& out) {
  if (text.size() < digits || at > text.size() - digits) return false;
  const char* end = text.data() + at + digits;
  const auto parsed = std::from_chars(text.data() + at, end, out, base);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace

void append_utf8(uint32_t point, std::string& out) {
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0 | point >> 6);
    out += static_cast<char>(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0 | point >> 12);
    out += static_cast<char>(0x80 | (point >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (point & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | point >> 18);
    out += static_cast<char>(0x80 | (point >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (point >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (point & 0x3f));
  }
}

bool decode_raw_unicode(std::string_view text, std::string& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == 'u' || text[i + 1] == 'U')) {
      const size_t digits = text[i + 1] == 'u' ? 4 : 8;
      uint32_t point = 0;
      if (!digits_at(text, i + 2, digits, 16, point) || point > 0x10ffff) return false;
      append_utf8(point, out);
      i += 1 + digits;
    } else {
      append_utf8(static_cast<unsigned char>(text[i]), out);
    }
  }
  return true;
}

bool decode_literal(std::string_view text, std::string& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return false;
    uint32_t value = 0;
    switch (text[i]) {
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'a':
        out += '\a';
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'v':
        out += '\v';
        break;
      case '\\':
      case '\'':
      case '"':
        out += text[i];
        break;
      case 'x':
        if (!digits_at(text, i + 1, 2, 16, value)) return false;
        out += static_cast<char>(value);
        i += 2;
        break;
      default: {
        size_t digits = 0;
        while (digits < 3 && i + digits < text.size() && text[i + digits] >= '0' && text[i + digits] <= '7')
          ++digits;
        if (digits == 0) return false;
        if (!digits_at(text, i, digits, 8, value)) return false;
        out += static_cast<char>(value & 0xff);
        i += digits - 1;
      }
    }
  }
  return true;
}

std::string fs_encode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
    // U+DC80 to U+DCFF as three bytes: ED B2 80 to ED B3 BF.
    if (byte(i) == 0xed && i + 2 < text.size() && (byte(i + 1) == 0xb2 || byte(i + 1) == 0xb3) &&
        (byte(i + 2) & 0xc0) == 0x80) {
      out += static_cast<char>((byte(i + 1) == 0xb2 ? 0x80 : 0xc0) | (byte(i + 2) & 0x3f));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace packtrain
