// ShardViews: shards whose samples are copied out of a mapping.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "io/cached_view.h"
#include "packtrain/storage.h"

namespace packtrain {

// Mapped one by one when they are first wanted, up to a limit, and kept: a page that was mapped before costs
// nothing to map, and copying takes half the time that the kernel takes for it. One thread at a time; the
// views are for all threads, until it dies. The files must outlive it.
class ShardViews {
 public:
  // What is mapped looks like the process' own memory to those who count it.
  explicit ShardViews(uint64_t most_bytes) : most_bytes_(most_bytes) {}
  const CachedView* of(const File& file);  // null: to be read

 private:
  const uint64_t most_bytes_;
  uint64_t bytes_ = 0;
  std::unordered_map<const File*, std::unique_ptr<CachedView>> views_;
};

}  // namespace packtrain
