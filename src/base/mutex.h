// std::mutex with the annotations that let Clang check locking (-Wthread-safety).
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define PACKTRAIN_ANNOTATE(x) __attribute__((x))
#else
#define PACKTRAIN_ANNOTATE(x)
#endif
#define GUARDED_BY(mutex) PACKTRAIN_ANNOTATE(guarded_by(mutex))
#define REQUIRES(mutex) PACKTRAIN_ANNOTATE(requires_capability(mutex))
#define EXCLUDES(mutex) PACKTRAIN_ANNOTATE(locks_excluded(mutex))

namespace packtrain {

class PACKTRAIN_ANNOTATE(capability("mutex")) Mutex {
 public:
  void lock() PACKTRAIN_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  void unlock() PACKTRAIN_ANNOTATE(release_capability()) { mutex_.unlock(); }
  std::mutex& native() { return mutex_; }

 private:
  std::mutex mutex_;
};

// Gives a lock that is held away for as long as it lives, also where that ends with an exception.
class Unlocked {
 public:
  explicit Unlocked(Mutex& mutex) PACKTRAIN_ANNOTATE(no_thread_safety_analysis) : mutex_(mutex) {
    mutex_.unlock();
  }
  ~Unlocked() PACKTRAIN_ANNOTATE(no_thread_safety_analysis) { mutex_.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  Mutex& mutex_;
};

class PACKTRAIN_ANNOTATE(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) PACKTRAIN_ANNOTATE(acquire_capability(mutex)) : lock_(mutex.native()) {}
  ~Lock() PACKTRAIN_ANNOTATE(release_capability()) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  // Waits until notified; call it in a loop over the condition.
  void wait(std::condition_variable& changed) { changed.wait(lock_); }
  template <class Duration>
  bool wait_for(std::condition_variable& changed, Duration duration) {
    return changed.wait_for(lock_, duration) == std::cv_status::no_timeout;
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace packtrain
