// In a file of its own: the compiler must not see through the replaced operators where they are used.
#include <cstdlib>
#include <new>

#include "decode/allocations_test_support.h"

namespace {

thread_local uint64_t count = 0;

}  // namespace

void* operator new(size_t bytes) {
  ++count;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
// The one that does not throw as well: a sanitizer has its own, whose memory std::free may not be given.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++count;
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace packtrain {

uint64_t allocation_count() { return count; }

}  // namespace packtrain
