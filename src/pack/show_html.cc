#include "pack/show_html.h"

#include <algorithm>

#include "base/words.h"

namespace packtrain {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// How many bytes the character at the start of `text` has; 0 if it is none.
size_t character_bytes(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text.front());
  if (lead < 0x80) return 1;
  for (size_t bytes = 2; bytes <= std::min<size_t>(4, text.size()); ++bytes)
    if (is_utf8(text.substr(0, bytes))) return bytes;
  return 0;
}

void append_escaped(std::string& out, std::string_view character) {
  switch (character.front()) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    case '\n':
    case '\t':
      out += character;
      break;
    default: {
      const auto lead = static_cast<uint8_t>(character.front());
      out += lead < 0x20 || lead == 0x7F ? kReplacement : character;
    }
  }
}

}  // namespace

std::string html_text(std::string_view text, size_t longest) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    const size_t bytes = character_bytes(rest);
    if (at + std::max<size_t>(bytes, 1) > longest) return out += "…";
    if (bytes == 0)
      out += kReplacement;
    else
      append_escaped(out, rest.substr(0, bytes));
    at += std::max<size_t>(bytes, 1);
  }
  return out;
}

std::string data_uri(std::string_view media_type, Bytes bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out = "data:";
  out += media_type;
  out += ";base64,";
  out.reserve(out.size() + (bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t left = std::min<size_t>(bytes.size() - i, 3);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < left ? static_cast<uint32_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) out += k <= left ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace packtrain
