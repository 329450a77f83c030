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

}  // namespace packtrain
