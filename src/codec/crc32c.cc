// Zarr's check of a chunk: a CRC-32C, little-endian, behind the bytes.
#include <algorithm>
#include <string>

#include "base/hash.h"
#include "base/little_endian.h"
#include "codec/block_codecs.h"

namespace packtrain {

Result<size_t> crc32c_decode(Bytes stored, const CodecStep& step, MutableBytes raw) {
  constexpr size_t kCheckBytes = 4;
  if (stored.size() < kCheckBytes || stored.size() - kCheckBytes < step.parameter)
    return Status(Code::corrupt, "data are too short for their CRC-32C");
  const Bytes covered = stored.first(stored.size() - kCheckBytes);
  const Bytes data = covered.subspan(step.parameter);
  if (data.size() > raw.size()) {
    return Status(Code::corrupt, "data before their CRC-32C are longer than the " +
                                     std::to_string(raw.size()) + " bytes recorded");
  }
  if (crc32c(covered) != load_le<uint32_t>(stored.data() + covered.size()))
    return Status(Code::corrupt, "data do not match their CRC-32C");
  std::copy(data.begin(), data.end(), raw.begin());
  return data.size();
}

}  // namespace packtrain
