// Decoded blocks that samples share, kept for a while.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace packtrain {

// The last few: as many as kKept, and no more than kKeptBytes of them but for one. Thread-safe.
template <class Key>
class DecodedBlocks {
 public:
  using Decoded = std::shared_ptr<const std::vector<std::byte>>;
  Decoded find(const Key& block) {
    Lock lock(mutex_);
    for (auto it = recent_.begin(); it != recent_.end(); ++it) {
      if (it->first != block) continue;
      recent_.splice(recent_.begin(), recent_, it);
      return recent_.front().second;
    }
    return nullptr;
  }
  void keep(const Key& block, Decoded decoded) {
    Lock lock(mutex_);
    bytes_ += decoded->size();
    recent_.emplace_front(block, std::move(decoded));
    while (recent_.size() > kKept || (recent_.size() > 1 && bytes_ > kKeptBytes)) {
      bytes_ -= recent_.back().second->size();
      recent_.pop_back();
    }
  }

 private:
  static constexpr size_t kKept = 16;
  static constexpr uint64_t kKeptBytes = uint64_t{256} << 20;
  Mutex mutex_;
  std::list<std::pair<Key, Decoded>> recent_ GUARDED_BY(mutex_);
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace packtrain
