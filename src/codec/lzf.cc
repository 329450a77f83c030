// LibLZF's block format, decoded by our own code: h5py's compression="lzf".
//
//   c < 32   c + 1 bytes as they are
//   c >= 32  a copy: its length - 2 in the upper three bits (7: plus the next byte), its distance - 1 in the
//            lower five and the next byte
#include <cstring>
#include <string>

#include "codec/block_codecs.h"

namespace packtrain {

Result<size_t> lzf_decode(Bytes stored, MutableBytes raw) {
  const Status damaged(Code::corrupt,
                       "lzf data are damaged, cut short, or decode to more bytes than recorded");
  constexpr uint32_t kFirstCopy = 32, kLongest = 7;
  size_t at = 0, made = 0;
  while (at < stored.size()) {
    const auto control = std::to_integer<uint32_t>(stored[at++]);
    if (control < kFirstCopy) {
      const size_t length = control + 1;
      if (length > stored.size() - at || length > raw.size() - made) return damaged;
      std::memcpy(raw.data() + made, stored.data() + at, length);
      at += length;
      made += length;
      continue;
    }
    size_t length = (control >> 5) + 2;
    if (control >> 5 == kLongest) {
      if (at == stored.size()) return damaged;
      length += std::to_integer<size_t>(stored[at++]);
    }
    if (at == stored.size()) return damaged;
    const size_t distance = ((control & 31) << 8 | std::to_integer<uint32_t>(stored[at++])) + size_t{1};
    if (distance > made || length > raw.size() - made) return damaged;
    for (size_t i = 0; i < length; ++i, ++made) raw[made] = raw[made - distance];
  }
  return made;
}

}  // namespace packtrain
