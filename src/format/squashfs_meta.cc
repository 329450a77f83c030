#include "format/squashfs_meta.h"

#include <algorithm>

#include "base/little_endian.h"
#include "codec/decode_up_to.h"

namespace packtrain {
namespace {

constexpr size_t kBlocksKept = 1024;

}  // namespace

SquashCoding squash_coding(uint16_t codec) {
  // The ratios are the highest that each codec can reach; what claims more was made to exhaust memory.
  switch (static_cast<SquashCodec>(codec)) {
    case SquashCodec::gzip:
      return {"gzip", "zlib", 1032};  // so it is called there; its Adler-32 is compared
    case SquashCodec::lz4:
      return {"lz4", "lz4", 255};
    case SquashCodec::zstd:
      return {"zstd", "zstd", 32768};
    case SquashCodec::lzma:
      return {"lzma", "", 1};
    case SquashCodec::lzo:
      return {"lzo", "", 1};
    case SquashCodec::xz:
      return {"xz", "", 1};
  }
  return {"an unknown codec", "", 1};
}

Status squash_codec_missing(const SquashCoding& coding) {
  return Status(Code::unsupported,
                "is compressed by " + std::string(coding.name) +
                    ", packtrain reads images that are not, or by gzip, lz4 or zstd; unpack it "
                    "with unsquashfs and pack the files");
}

Status SquashTable::decode_block(uint64_t at, Decoded& out) {
  Status outside(Code::corrupt, "a block of metadata reaches out of its table");
  if (at > end_ || end_ - at < kSquashMetaHeadBytes) return outside;
  PACKTRAIN_ASSIGN(head, window_.at(at, kSquashMetaHeadBytes));
  const auto word = load_le<uint16_t>(head.data());
  const size_t stored = word & ~kSquashMetaRaw;
  if (stored == 0 || stored > kSquashMetaBytes) {
    return Status(Code::corrupt, "a block of metadata cannot have " + std::to_string(stored) + " bytes");
  }
  if (stored > end_ - at - kSquashMetaHeadBytes) return outside;
  PACKTRAIN_ASSIGN(bytes, window_.at(at + kSquashMetaHeadBytes, stored));
  out.next = at + kSquashMetaHeadBytes + stored;
  if ((word & kSquashMetaRaw) != 0) {
    out.bytes.assign(bytes.begin(), bytes.end());
    return {};
  }
  if (coding_.codec.empty()) return squash_codec_missing(coding_);
  out.bytes.resize(kSquashMetaBytes);
  PACKTRAIN_ASSIGN(made, decode_up_to(coding_.codec, bytes, out.bytes));
  out.bytes.resize(made);
  return {};
}

Result<const SquashTable::Decoded*> SquashTable::block(uint64_t at) {
  if (last_ != nullptr && last_at_ == at) return last_;
  last_at_ = at;
  if (auto found = kept_.find(at); found != kept_.end()) return last_ = &found->second;
  last_ = nullptr;
  Decoded decoded;
  if (Status status = decode_block(at, decoded); !status.ok()) return status.at("@ " + std::to_string(at));
  if (kept_.size() >= kBlocksKept) {
    kept_.erase(order_.front());
    order_.pop_front();
  }
  seen_.insert(at);
  order_.push_back(at);
  return last_ = &kept_.emplace(at, std::move(decoded)).first->second;
}

Status SquashTable::read_across(SquashPlace& place, MutableBytes into) {
  while (!into.empty()) {
    PACKTRAIN_ASSIGN(found, block(place.block));
    if (place.offset > found->bytes.size() ||
        (place.offset == found->bytes.size() && place.offset < kSquashMetaBytes)) {
      return Status(Code::corrupt, "metadata end before what they describe does")
          .at("@ " + std::to_string(place.block));
    }
    const size_t some = std::min(into.size(), found->bytes.size() - place.offset);
    std::copy_n(found->bytes.begin() + place.offset, some, into.begin());
    into = into.subspan(some);
    place.offset += static_cast<uint32_t>(some);
    if (place.offset == kSquashMetaBytes) place = {found->next, 0};
  }
  return {};
}

}  // namespace packtrain
