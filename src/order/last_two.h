// What is prepared once per epoch, kept for the two epochs asked for last: the current one, and the next one
// that is prefetched.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/mutex.h"

namespace packtrain {

// Thread-safe.
template <class T>
class EpochCache {
 public:
  // make() returns a T and is called outside the lock: of two threads that come first at the same time, both
  // make the same thing and one of them is kept.
  template <class Make>
  std::shared_ptr<const T> get(uint64_t epoch, Make&& make) EXCLUDES(mutex_) {
    {
      Lock lock(mutex_);
      if (auto found = find(epoch)) return found;
    }
    auto made = std::make_shared<const T>(make());
    Lock lock(mutex_);
    if (auto found = find(epoch)) return found;
    older_ = std::move(newer_);
    newer_ = {epoch, std::move(made)};
    return newer_.second;
  }

 private:
  using Entry = std::pair<uint64_t, std::shared_ptr<const T>>;
  std::shared_ptr<const T> find(uint64_t epoch) REQUIRES(mutex_) {
    if (older_.second && older_.first == epoch) std::swap(older_, newer_);
    return newer_.second && newer_.first == epoch ? newer_.second : nullptr;
  }

  Mutex mutex_;  // guards what follows
  Entry newer_ GUARDED_BY(mutex_), older_ GUARDED_BY(mutex_);
};

}  // namespace packtrain
