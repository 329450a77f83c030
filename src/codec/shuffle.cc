// Codecs that only rearrange or repeat bytes: HDF5's shuffle filter, and values that are not stored at all.
#include <algorithm>
#include <cstring>
#include <string>

#include "codec/block_codecs.h"

namespace packtrain {
namespace {

constexpr uint32_t kLargestNumber = 1 << 20;

Status check_number_bytes(uint32_t bytes) {
  if (bytes >= 1 && bytes <= kLargestNumber) return {};
  return Status(Code::corrupt, "numbers of " + std::to_string(bytes) + " bytes cannot be shuffled");
}

}  // namespace

Result<size_t> shuffle_decode(Bytes stored, const CodecStep& step, MutableBytes raw) {
  PACKTRAIN_TRY(check_number_bytes(step.parameter));
  if (stored.size() > raw.size()) {
    return Status(Code::corrupt,
                  "shuffled data are longer than the " + std::to_string(raw.size()) + " bytes recorded");
  }
  const size_t width = step.parameter, count = stored.size() / width, whole = count * width;
  for (size_t byte = 0; byte < width; ++byte) {
    for (size_t i = 0; i < count; ++i) raw[i * width + byte] = stored[byte * count + i];
  }
  std::copy(stored.begin() + static_cast<ptrdiff_t>(whole), stored.end(),
            raw.begin() + static_cast<ptrdiff_t>(whole));
  return stored.size();
}

Result<std::vector<std::byte>> shuffle_encode(Bytes raw, uint32_t number_bytes, int /*level*/) {
  if (number_bytes < 1 || number_bytes > kLargestNumber)
    return Status(Code::invalid, "numbers of " + std::to_string(number_bytes) + " bytes cannot be shuffled");
  std::vector<std::byte> stored(raw.begin(), raw.end());
  const size_t width = number_bytes, count = raw.size() / width;
  for (size_t byte = 0; byte < width; ++byte) {
    for (size_t i = 0; i < count; ++i) stored[byte * count + i] = raw[i * width + byte];
  }
  return stored;
}

Result<size_t> fill_decode(Bytes stored, const CodecStep& step, MutableBytes raw) {
  if (!stored.empty()) return Status(Code::corrupt, "bytes are stored where there is only a fill value");
  if (step.value.empty()) return Status(Code::corrupt, "a fill value has no bytes");
  size_t made = std::min(step.value.size(), raw.size());
  if (made > 0) std::memcpy(raw.data(), step.value.data(), made);
  // What is there is doubled: few copies, however short the value is.
  while (made < raw.size()) {
    const size_t more = std::min(made, raw.size() - made);
    std::memcpy(raw.data() + made, raw.data(), more);
    made += more;
  }
  return made;
}

}  // namespace packtrain
