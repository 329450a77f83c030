// In a file of its own: the compiler must not see through the replaced operators where they are used.
#include "load/allocations_test_support.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<uint64_t> g_allocations = 0;

}  // namespace

void* operator new(size_t bytes) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = nullptr;
  if (::posix_memalign(&memory, static_cast<size_t>(alignment), bytes) == 0) return memory;
  throw std::bad_alloc();
}
// Those that do not throw as well: a sanitizer has its own, whose memory std::free may not be given.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = nullptr;
  return ::posix_memalign(&memory, static_cast<size_t>(alignment), bytes) == 0 ? memory : nullptr;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace packtrain {

uint64_t allocations_of_all_threads() { return g_allocations.load(); }

}  // namespace packtrain
