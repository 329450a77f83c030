// Fifo: first in, first out, in memory that is kept.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace packtrain {

// Unlike std::deque, it stops to allocate once it has been as long as it gets. One thread at a time.
template <class T>
class Fifo {
 public:
  // So that up to `items` at a time never ask for more memory.
  void reserve(size_t items) { items_.reserve(2 * items); }
  bool empty() const { return first_ == items_.size(); }
  size_t size() const { return items_.size() - first_; }
  size_t capacity() const { return items_.capacity(); }
  T& front() { return items_[first_]; }
  T& operator[](size_t i) { return items_[first_ + i]; }
  const T& front() const { return items_[first_]; }

  void push(T item) {
    // What was taken is closed up before there would be more memory; half of it at least, so that an item
    // moves once on average.
    if (items_.size() == items_.capacity() && first_ >= items_.size() - first_ && first_ > 0) {
      std::move(items_.begin() + static_cast<ptrdiff_t>(first_), items_.end(), items_.begin());
      items_.resize(items_.size() - first_);
      first_ = 0;
    }
    items_.push_back(std::move(item));
  }

  T pop() {
    T item = std::move(items_[first_++]);
    if (empty()) {
      items_.clear();
      first_ = 0;
    }
    return item;
  }

 private:
  std::vector<T> items_;
  size_t first_ = 0;
};

}  // namespace packtrain
