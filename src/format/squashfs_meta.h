// The metadata of a SquashFS image as streams of bytes, read and decoded by need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "format/squashfs_records.h"
#include "format/window.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// What a codec of SquashFS is called here, and what it makes at most of a byte.
struct SquashCoding {
  std::string_view name;   // of SquashFS
  std::string_view codec;  // of packtrain; empty: there is none
  uint64_t ratio = 1;
};
SquashCoding squash_coding(uint16_t codec);
Status squash_codec_missing(const SquashCoding& coding);

// A place in a stream of metadata.
struct SquashPlace {
  uint64_t block = 0;  // from the front of the file
  uint32_t offset = 0;
};

// One table of an image. Keeps the last few megabytes that were decoded, since the entries of a folder follow
// each other. One thread at a time.
class SquashTable {
 public:
  // `end`: no block of the table reaches beyond it.
  SquashTable(Storage& storage, const File& file, uint64_t end, const SquashCoding& coding)
      : window_(storage, file), end_(end), coding_(coding) {}

  // Fills `into` and moves `place` behind it. What leads out of the table is Code::corrupt.
  Status read(SquashPlace& place, MutableBytes into) {
    // Nearly all records lie in the block of the one before.
    if (last_ != nullptr && last_at_ == place.block && place.offset < last_->bytes.size() &&
        into.size() < last_->bytes.size() - place.offset) {
      std::copy_n(last_->bytes.data() + place.offset, into.size(), into.data());
      place.offset += static_cast<uint32_t>(into.size());
      return {};
    }
    return read_across(place, into);
  }
  uint64_t blocks_seen() const { return seen_.size(); }  // different ones

 private:
  struct Decoded {
    std::vector<std::byte> bytes;
    uint64_t next = 0;  // the block that follows
  };
  Status read_across(SquashPlace& place, MutableBytes into);
  Result<const Decoded*> block(uint64_t at);
  Status decode_block(uint64_t at, Decoded& out);

  Window window_;
  const uint64_t end_;
  const SquashCoding coding_;
  std::unordered_map<uint64_t, Decoded> kept_;
  std::deque<uint64_t> order_;  // of kept_, the oldest first
  std::unordered_set<uint64_t> seen_;
  const Decoded* last_ = nullptr;  // the one asked for last, at last_at_
  uint64_t last_at_ = 0;
};

}  // namespace packtrain
