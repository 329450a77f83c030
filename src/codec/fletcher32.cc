// HDF5's check of a chunk: Fletcher-32 over big-endian words of 16 bits, little-endian behind the data.
#include <algorithm>
#include <string>

#include "base/little_endian.h"
#include "codec/block_codecs.h"

namespace packtrain {
namespace {

constexpr size_t kCheckBytes = 4;

uint32_t fletcher32(Bytes data) {
  constexpr size_t kWordsAtOnce = 360;  // so many sums fit 32 bits
  const auto byte = [&](size_t at) { return std::to_integer<uint32_t>(data[at]); };
  uint32_t first = 0, second = 0;
  size_t at = 0;
  for (size_t words = data.size() / 2; words > 0;) {
    size_t now = std::min(words, kWordsAtOnce);
    words -= now;
    for (; now > 0; --now, at += 2) {
      first += byte(at) << 8 | byte(at + 1);
      second += first;
    }
    first = (first & 0xFFFF) + (first >> 16);
    second = (second & 0xFFFF) + (second >> 16);
  }
  if (at < data.size()) {
    first += byte(at) << 8;
    second += first;
    first = (first & 0xFFFF) + (first >> 16);
    second = (second & 0xFFFF) + (second >> 16);
  }
  first = (first & 0xFFFF) + (first >> 16);
  second = (second & 0xFFFF) + (second >> 16);
  return second << 16 | first;
}

// The bytes of each half in the other order, as versions before 1.6.3 stored it on little-endian machines.
uint32_t with_halves_swapped(uint32_t check) { return (check & 0x00FF00FF) << 8 | (check >> 8 & 0x00FF00FF); }

}  // namespace

Result<size_t> fletcher32_decode(Bytes stored, MutableBytes raw) {
  if (stored.size() < kCheckBytes) return Status(Code::corrupt, "data are too short for their Fletcher-32");
  const Bytes data = stored.first(stored.size() - kCheckBytes);
  if (data.size() > raw.size()) {
    return Status(Code::corrupt, "data before their Fletcher-32 are longer than the " +
                                     std::to_string(raw.size()) + " bytes recorded");
  }
  const auto recorded = load_le<uint32_t>(stored.data() + data.size());
  const uint32_t check = fletcher32(data);
  if (recorded != check && recorded != with_halves_swapped(check))
    return Status(Code::corrupt, "data do not match their Fletcher-32");
  std::copy(data.begin(), data.end(), raw.begin());
  return data.size();
}

Result<std::vector<std::byte>> fletcher32_encode(Bytes raw, int /*level*/) {
  std::vector<std::byte> stored(raw.begin(), raw.end());
  stored.resize(raw.size() + kCheckBytes);
  store_le<uint32_t>(stored.data() + raw.size(), fletcher32(raw));
  return stored;
}

}  // namespace packtrain
