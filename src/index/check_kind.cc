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

Status decode_checked(const Pipeline& pipeline, CheckKind kind, uint32_t check, Bytes stored,
                      MutableBytes raw) {
  const bool of_stored = checks_stored(pipeline);
  bool same = !of_stored || matches(kind, check, stored);
  if (same) PACKTRAIN_TRY(decode(pipeline, stored, raw));
  if (!of_stored) same = matches(kind, check, raw);
  return same ? Status() : Status(Code::corrupt, "the bytes do not match their check");
}

}  // namespace packtrain
