// What kind of bytes these are, told by their first ones.
#include "packtrain/media.h"

#include <algorithm>
#include <cstring>

#include "base/little_endian.h"
#include "base/pnm_header.h"

namespace packtrain {

namespace {

constexpr size_t kBytesLookedAt = 64 << 10;

bool starts_with(Bytes head, std::string_view magic, size_t at = 0) {
  return head.size() >= at + magic.size() && std::memcmp(head.data() + at, magic.data(), magic.size()) == 0;
}

// "BM" alone begins many a text: the length of the second header has few values, and decides.
bool looks_like_bmp(Bytes head) {
  if (!starts_with(head, "BM") || head.size() < 18) return false;
  switch (load_le<uint32_t>(head.data() + 14)) {
    case 12:
    case 40:
    case 52:
    case 56:
    case 64:
    case 108:
    case 124:
      return true;
    default:
      return false;
  }
}

// UTF-8 without control characters but white space; a character cut off by the end is no fault.
bool looks_like_text(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const auto lead = static_cast<uint8_t>(text[at]);
    size_t extra = 0;
    if (lead < 0x20) {
      if (lead != '\t' && lead != '\n' && lead != '\r' && lead != '\f') return false;
    } else if (lead == 0x7F) {
      return false;
    } else if (lead >= 0x80) {
      if (lead >= 0xC2 && lead <= 0xDF) {
        extra = 1;
      } else if (lead >= 0xE0 && lead <= 0xEF) {
        extra = 2;
      } else if (lead >= 0xF0 && lead <= 0xF4) {
        extra = 3;
      } else {
        return false;
      }
    }
    for (size_t i = 1; i <= extra && at + i < text.size(); ++i)
      if ((static_cast<uint8_t>(text[at + i]) & 0xC0) != 0x80) return false;
    at += 1 + extra;
  }
  return !text.empty();
}

// The first two tokens of an object or an array.
bool looks_like_json(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t open = text.find_first_not_of(kSpace);
  if (open == std::string_view::npos || (text[open] != '{' && text[open] != '[')) return false;
  const size_t next = text.find_first_not_of(kSpace, open + 1);
  if (next == std::string_view::npos) return false;
  const std::string_view follows = text[open] == '{' ? "\"}" : "\"]{[-0123456789tfn";
  return follows.find(text[next]) != std::string_view::npos;
}

}  // namespace

std::string_view media_kind_name(MediaKind kind) {
  switch (kind) {
    case MediaKind::jpeg:
      return "jpeg";
    case MediaKind::png:
      return "png";
    case MediaKind::gif:
      return "gif";
    case MediaKind::webp:
      return "webp";
    case MediaKind::bmp:
      return "bmp";
    case MediaKind::pnm:
      return "pnm";
    case MediaKind::wav:
      return "wav";
    case MediaKind::flac:
      return "flac";
    case MediaKind::npy:
      return "npy";
    case MediaKind::json:
      return "json";
    case MediaKind::text:
      return "text";
    case MediaKind::unknown:
      break;
  }
  return "unknown";
}

MediaKind media_kind(Bytes head) {
  if (starts_with(head, "\xFF\xD8\xFF")) return MediaKind::jpeg;
  if (starts_with(head, "\x89PNG\r\n\x1A\n")) return MediaKind::png;
  if (starts_with(head, "GIF87a") || starts_with(head, "GIF89a")) return MediaKind::gif;
  if (starts_with(head, "WEBP", 8) && starts_with(head, "RIFF")) return MediaKind::webp;
  if (starts_with(head, "WAVE", 8) && (starts_with(head, "RIFF") || starts_with(head, "RF64")))
    return MediaKind::wav;
  if (starts_with(head, "fLaC")) return MediaKind::flac;
  if (starts_with(head, "\x93NUMPY")) return MediaKind::npy;
  if (looks_like_bmp(head)) return MediaKind::bmp;
  if (read_pnm_header(head)) return MediaKind::pnm;
  std::string_view text(reinterpret_cast<const char*>(head.data()), std::min(head.size(), kBytesLookedAt));
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);  // byte order mark
  if (!looks_like_text(text)) return MediaKind::unknown;
  return looks_like_json(text) ? MediaKind::json : MediaKind::text;
}

}  // namespace packtrain
