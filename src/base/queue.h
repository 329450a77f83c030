// A queue with a bound: work moves between threads by moving ownership through it.
#pragma once

#include <condition_variable>
#include <deque>
#include <optional>
#include <utility>

#include "base/mutex.h"

namespace packtrain {

// Thread-safe. close() wakes everyone: push() then drops and returns false, pop() drains and then ends.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t bound) : bound_(bound) {}

  bool push(T item) {
    Lock lock(mutex_);
    while (items_.size() >= bound_ && !closed_) lock.wait(not_full_);
    if (closed_) return false;
    items_.push_back(std::move(item));
    not_empty_.notify_one();
    return true;
  }

  std::optional<T> pop() {
    Lock lock(mutex_);
    while (items_.empty() && !closed_) lock.wait(not_empty_);
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    not_full_.notify_one();
    return item;
  }

  void close() {
    Lock lock(mutex_);
    closed_ = true;
    not_empty_.notify_all();
    not_full_.notify_all();
  }

 private:
  const size_t bound_;
  Mutex mutex_;
  std::condition_variable not_empty_, not_full_;
  std::deque<T> items_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace packtrain
