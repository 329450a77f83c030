#include "base/hash.h"
#include "packtrain/index.h"

namespace packtrain {

std::string_view check_kind_name(CheckKind kind) {
  switch (kind) {
    case CheckKind::none:
      return "none";
    case CheckKind::crc32:
      return "crc32";
    case CheckKind::crc32c:
      return "crc32c";
  }
  return "unknown";
}

bool matches(CheckKind kind, uint32_t check, Bytes data) {
  switch (kind) {
    case CheckKind::none:
      return true;
    case CheckKind::crc32:
      return crc32(data) == check;
    case CheckKind::crc32c:
      return crc32c(data) == check;
  }
  return false;
}

}  // namespace packtrain
