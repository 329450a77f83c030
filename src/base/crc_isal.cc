#include <isa-l/crc.h>

#include "base/crc.h"

namespace packtrain::crc {

// ISA-L takes lengths as int in crc32_iscsi, hence the pieces.
constexpr size_t kPiece = size_t{1} << 30;

uint32_t crc32c_isal(uint32_t before, const void* data, size_t bytes) {
  // crc32_iscsi neither inverts its seed nor its result.
  uint32_t state = ~before;
  auto* at = static_cast<unsigned char*>(const_cast<void*>(data));
  while (bytes > 0) {
    const size_t piece = bytes < kPiece ? bytes : kPiece;
    state = crc32_iscsi(at, static_cast<int>(piece), state);
    at += piece;
    bytes -= piece;
  }
  return ~state;
}

uint32_t crc32_isal(uint32_t before, const void* data, size_t bytes) {
  return crc32_gzip_refl(before, static_cast<const unsigned char*>(data), bytes);
}

}  // namespace packtrain::crc
