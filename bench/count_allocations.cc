// Counts calls of the heap: LD_PRELOAD=libcount_allocations.so. Memory itself comes from the C library.
//
//   heap_calls_all()      malloc, calloc, realloc and their aligned forms so far, of all threads
//   heap_calls_of_main()  those of the thread that loaded the library
// Calls that free memory are not counted: in a steady state each has its allocation.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

// The C library's own names for its heap, which are there for whoever stands in front of it.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

std::atomic<uint64_t> g_all{0}, g_main{0};
const pid_t g_main_thread = getpid();  // the first thread of a process has its number

// One system call a thread: gettid() costs more than what is counted.
bool is_main_thread() {
  static thread_local const bool mine = gettid() == g_main_thread;
  return mine;
}

void count() {
  g_all.fetch_add(1, std::memory_order_relaxed);
  if (is_main_thread()) g_main.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

extern "C" {

uint64_t heap_calls_all() { return g_all.load(std::memory_order_relaxed); }
uint64_t heap_calls_of_main() { return g_main.load(std::memory_order_relaxed); }

void* malloc(size_t size) {
  count();
  return __libc_malloc(size);
}

void* calloc(size_t number, size_t size) {
  count();
  return __libc_calloc(number, size);
}

void* realloc(void* old, size_t size) {
  count();
  return __libc_realloc(old, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}

void* memalign(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** out, size_t alignment, size_t size) {
  count();
  void* memory = __libc_memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}

}  // extern "C"
