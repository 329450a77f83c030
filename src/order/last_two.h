// What costs something to prepare, kept for the two keys asked for last: of epochs, the current one and the
// next one that is prefetched.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/mutex.h"

namespace packtrain {

// Thread-safe.
template <class T>
class LastTwo {
 public:
  // make() returns a T and is called outside the lock: of two threads that come first at the same time, both
  // make the same thing and one of them is kept.
  template <class Make>
  std::shared_ptr<const T> get(uint64_t key, Make&& make) EXCLUDES(mutex_) {
    {
      Lock lock(mutex_);
      if (auto found = find(key)) return found;
    }
    auto made = std::make_shared<const T>(make());
    Lock lock(mutex_);
    if (auto found = find(key)) return found;
    older_ = std::move(newer_);
    newer_ = {key, std::move(made)};
    return newer_.second;
  }

 private:
  using Entry = std::pair<uint64_t, std::shared_ptr<const T>>;
  std::shared_ptr<const T> find(uint64_t key) REQUIRES(mutex_) {
    if (older_.second && older_.first == key) std::swap(older_, newer_);
    return newer_.second && newer_.first == key ? newer_.second : nullptr;
  }

  Mutex mutex_;  // guards what follows
  Entry newer_ GUARDED_BY(mutex_), older_ GUARDED_BY(mutex_);
};

}  // namespace packtrain
