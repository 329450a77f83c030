// Snappy's block format, decoded by our own code: Parquet's usual codec, whose library few machines have.
//
//   block    the decoded length as a varint, then elements
//   element  a byte whose two low bits are its kind:
//     0      literal bytes: their number - 1 in the upper six bits, or from 60 on in the 1 to 4 bytes behind
//     1      a copy of 4 to 11 bytes: number - 4 in bits 2 to 4, distance in bits 5 to 7 and the next byte
//     2, 3   a copy of 1 to 64 bytes: number - 1 in the upper six bits, distance in the next 2 or 4 bytes
//
// A copy may reach into what it writes itself.
#include <cstring>
#include <string>

#include "base/little_endian.h"
#include "codec/block_codecs.h"

namespace packtrain {
namespace {

Status damaged_snappy() { return Status(Code::corrupt, "snappy data are damaged or cut short"); }

// One block on its way.
class SnappyBlock {
 public:
  SnappyBlock(Bytes stored, MutableBytes raw) : stored_(stored), raw_(raw) {}

  Result<size_t> run() {
    PACKTRAIN_ASSIGN(length, decoded_length());
    if (length > raw_.size()) {
      return Status(Code::corrupt,
                    "snappy data decode to more than the " + std::to_string(raw_.size()) + " bytes recorded");
    }
    raw_ = raw_.first(length);
    while (at_ < stored_.size()) {
      const auto tag = std::to_integer<uint32_t>(stored_[at_++]);
      if (!((tag & 3) == 0 ? literal(tag >> 2) : copy(tag))) return damaged_snappy();
    }
    if (made_ != length) return damaged_snappy();
    return made_;
  }

 private:
  Result<size_t> decoded_length() {
    uint64_t length = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      if (at_ == stored_.size()) break;
      const auto byte = std::to_integer<uint64_t>(stored_[at_++]);
      length |= (byte & 0x7F) << shift;
      if (byte < 0x80 && length <= UINT32_MAX) return static_cast<size_t>(length);
    }
    return damaged_snappy();
  }

  // A number of `bytes` bytes; false if they are not there.
  bool number(size_t bytes, uint64_t& value) {
    if (bytes > stored_.size() - at_) return false;
    value = 0;
    for (size_t i = 0; i < bytes; ++i) value |= std::to_integer<uint64_t>(stored_[at_ + i]) << (8 * i);
    at_ += bytes;
    return true;
  }

  bool literal(uint32_t upper) {
    constexpr uint32_t kShortest = 60;
    uint64_t length = upper;
    if (upper >= kShortest && !number(upper - kShortest + 1, length)) return false;
    if (length >= stored_.size() - at_ || length >= raw_.size() - made_) return false;
    ++length;
    std::memcpy(raw_.data() + made_, stored_.data() + at_, static_cast<size_t>(length));
    at_ += static_cast<size_t>(length);
    made_ += static_cast<size_t>(length);
    return true;
  }

  bool copy(uint32_t tag) {
    uint64_t distance = 0;
    size_t length = (tag >> 2) + 1;
    if ((tag & 3) == 1) {
      length = (tag >> 2 & 7) + 4;
      if (!number(1, distance)) return false;
      distance |= uint64_t{tag >> 5} << 8;
    } else if (!number((tag & 3) == 2 ? 2 : 4, distance)) {
      return false;
    }
    if (distance == 0 || distance > made_ || length > raw_.size() - made_) return false;
    std::byte* to = raw_.data() + made_;
    const std::byte* from = to - distance;
    if (distance >= length) {
      std::memcpy(to, from, length);
    } else {
      for (size_t i = 0; i < length; ++i) to[i] = from[i];
    }
    made_ += length;
    return true;
  }

  Bytes stored_;
  MutableBytes raw_;
  size_t at_ = 0, made_ = 0;
};

}  // namespace

Result<size_t> snappy_decode(Bytes stored, MutableBytes raw) { return SnappyBlock(stored, raw).run(); }

}  // namespace packtrain
