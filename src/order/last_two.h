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
    return keep(key, std::make_shared<T>(make()));
  }
  // The same of what can be made anew in the memory of one that nobody has any more, by renew(T&): in steady
  // state nothing is allocated.
  template <class Make, class Renew>
  std::shared_ptr<const T> get(uint64_t key, Make&& make, Renew&& renew) EXCLUDES(mutex_) {
    std::shared_ptr<T> spare;
    {
      Lock lock(mutex_);
      if (auto found = find(key)) return found;
      spare = std::move(spare_);
    }
    if (!spare) return keep(key, std::make_shared<T>(make()));
    renew(*spare);
    return keep(key, std::move(spare));
  }

 private:
  using Entry = std::pair<uint64_t, std::shared_ptr<T>>;
  std::shared_ptr<const T> keep(uint64_t key, std::shared_ptr<T> made) EXCLUDES(mutex_) {
    Lock lock(mutex_);
    if (auto found = find(key)) return found;
    // Nobody can get it from here any more. Who had it last has let go of it before this copy of it goes,
    // which is what orders their reading before our writing.
    if (older_.second.use_count() == 1) {
      spare_ = older_.second;
      older_.second.reset();
    }
    older_ = std::move(newer_);
    newer_ = {key, std::move(made)};
    return newer_.second;
  }
  std::shared_ptr<const T> find(uint64_t key) REQUIRES(mutex_) {
    if (older_.second && older_.first == key) std::swap(older_, newer_);
    return newer_.second && newer_.first == key ? newer_.second : nullptr;
  }

  Mutex mutex_;  // guards what follows
  Entry newer_ GUARDED_BY(mutex_), older_ GUARDED_BY(mutex_);
  std::shared_ptr<T> spare_ GUARDED_BY(mutex_);
};

}  // namespace packtrain
