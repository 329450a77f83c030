// A shard that is mapped into memory.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>

#include "packtrain/storage.h"

namespace packtrain {

// Copies out of a mapping, and remembers where it has done so: what was copied once is in memory most likely,
// since the kernel reads and maps the neighbours of a page along with it. One bit for each 64 KiB, which is
// as many as it maps at once. Thread-safe.
class MappedShard {
 public:
  explicit MappedShard(std::unique_ptr<Mapping> mapping)
      : mapping_(std::move(mapping)),
        copied_(std::make_unique<std::atomic<uint64_t>[]>(mapping_->bytes().size() / kStretch / 64 + 1)) {}

  // False where the bytes leave the mapping.
  bool copy(uint64_t offset, MutableBytes into) {
    const Bytes all = mapping_->bytes();
    if (offset > all.size() || into.size() > all.size() - offset) return false;
    if (into.empty()) return true;
    std::memcpy(into.data(), all.data() + offset, into.size());
    for (uint64_t at = offset / kStretch; at <= (offset + into.size() - 1) / kStretch; ++at)
      if (!is_marked(at)) copied_[at / 64].fetch_or(uint64_t{1} << at % 64, std::memory_order_relaxed);
    return true;
  }

  // Of bytes within the mapping: that all of them, or their neighbours, were copied before.
  bool was_copied(uint64_t offset, uint64_t length) const {
    if (length == 0) return true;
    for (uint64_t at = offset / kStretch; at <= (offset + length - 1) / kStretch; ++at)
      if (!is_marked(at)) return false;
    return true;
  }

  uint64_t size() const { return mapping_->bytes().size(); }

 private:
  static constexpr uint64_t kStretch = 64 << 10;
  bool is_marked(uint64_t stretch) const {
    return (copied_[stretch / 64].load(std::memory_order_relaxed) >> stretch % 64 & 1) != 0;
  }

  const std::unique_ptr<Mapping> mapping_;
  const std::unique_ptr<std::atomic<uint64_t>[]> copied_;
};

}  // namespace packtrain
