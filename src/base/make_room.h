// Room in vectors that are kept and filled again and again, with sizes that vary.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace packtrain {

// What does not fit gets as much room again, up to a MiB more, and 128 KiB in all at least: the largest of
// all comes late. Room that is not needed is never touched.
template <class T>
void make_room(std::vector<T>& vector, size_t size) {
  constexpr size_t kLeast = (size_t{128} << 10) / sizeof(T), kMostMore = (size_t{1} << 20) / sizeof(T);
  if (vector.capacity() < size) vector.reserve(std::max(kLeast, size + std::min(size, kMostMore)));
}

// For what is written before it is read: never cleared, never smaller.
template <class T>
void grow(std::vector<T>& vector, size_t size) {
  make_room(vector, size);
  if (vector.size() < size) vector.resize(size);
}

}  // namespace packtrain
