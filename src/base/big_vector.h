// Columns with a row for each of millions of samples: memory of their own, which goes back to the system when
// they do. The C library keeps what is freed below a limit that it raises to 32 MiB by itself, and what lies
// behind keeps it from going back: packing a million files, that was a tenth of all memory.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace packtrain {

// Takes pages from the system for what has `kLarge` bytes or more, and is std::allocator for the rest.
template <class T, size_t kLarge = size_t{1} << 20>
struct PageAllocator {
  using value_type = T;
  template <class Other>
  struct rebind {
    using other = PageAllocator<Other, kLarge>;
  };
  static constexpr size_t kHuge = size_t{4} << 20;

  PageAllocator() = default;
  template <class Other>
  PageAllocator(const PageAllocator<Other, kLarge>&) {}  // NOLINT: allocators convert into each other

  T* allocate(size_t count) {
    if (count < kLarge / sizeof(T)) return std::allocator<T>().allocate(count);
    if (count > PTRDIFF_MAX / sizeof(T)) throw std::bad_array_new_length();
    void* pages =
        ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    // They are filled from front to back: a fault for each 2 MiB instead of each 4 KiB. Only advice.
    if (count * sizeof(T) >= kHuge) ::madvise(pages, count * sizeof(T), MADV_HUGEPAGE);
    return static_cast<T*>(pages);
  }
  void deallocate(T* data, size_t count) {
    if (count < kLarge / sizeof(T)) return std::allocator<T>().deallocate(data, count);
    ::munmap(data, count * sizeof(T));
  }
  template <class Other>
  bool operator==(const PageAllocator<Other, kLarge>&) const {
    return true;
  }
};

template <class T>
using BigVector = std::vector<T, PageAllocator<T>>;
using BigString = std::basic_string<char, std::char_traits<char>, PageAllocator<char>>;

// A fault for each 2 MiB of memory that is filled for the first time, and not for each 4 KiB. Only advice.
inline void want_huge_pages(const void* begin, size_t bytes) {
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  const auto at = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t from = (at + kHugePage - 1) / kHugePage * kHugePage,
                  to = (at + bytes) / kHugePage * kHugePage;
  if (from < to) ::madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
}

// Of the heap, which may have large pages itself, until they are worth large pages of their own.
constexpr size_t kWorthHugePages = size_t{4} << 20;
template <class T>
using HugeVector = std::vector<T, PageAllocator<T, kWorthHugePages>>;
using HugeString = std::basic_string<char, std::char_traits<char>, PageAllocator<char, kWorthHugePages>>;

}  // namespace packtrain
