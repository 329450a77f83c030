// Counts calls of the heap: LD_PRELOAD=libcount_allocations.so. Memory itself comes from the C library.
//
//   heap_calls_all()      malloc, calloc, realloc and their aligned forms so far, of all threads
//   heap_calls_of_main()  those of the thread that loaded the library
//   heap_watch_library(part), heap_calls_of_library()
//                         those made by code of the first library whose path holds `part`, since it was named
// Calls that free memory are not counted: in a steady state each has its allocation.
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

// The C library's own names for its heap, which are there for whoever stands in front of it.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

std::atomic<uint64_t> g_all{0}, g_main{0}, g_library{0};
std::atomic<uintptr_t> g_library_begin{0}, g_library_end{0};
const pid_t g_main_thread = getpid();  // the first thread of a process has its number

// One system call a thread: gettid() costs more than what is counted.
bool is_main_thread() {
  static thread_local const bool mine = gettid() == g_main_thread;
  return mine;
}

void count(const void* caller) {
  const auto from = reinterpret_cast<uintptr_t>(caller);
  if (from >= g_library_begin.load(std::memory_order_relaxed) &&
      from < g_library_end.load(std::memory_order_relaxed))
    g_library.fetch_add(1, std::memory_order_relaxed);
  g_all.fetch_add(1, std::memory_order_relaxed);
  if (is_main_thread()) g_main.fetch_add(1, std::memory_order_relaxed);
}

// Takes in where the library lies, and ends the search.
int found_library(dl_phdr_info* library, size_t, void* part) {
  if (std::strstr(library->dlpi_name, static_cast<const char*>(part)) == nullptr) return 0;
  uintptr_t end = 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& segment = library->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD) end = std::max<uintptr_t>(end, segment.p_vaddr + segment.p_memsz);
  }
  g_library_begin = library->dlpi_addr;
  g_library_end = library->dlpi_addr + end;
  return 1;
}

}  // namespace

extern "C" {

void heap_watch_library(const char* part) { dl_iterate_phdr(found_library, const_cast<char*>(part)); }
uint64_t heap_calls_of_library() { return g_library.load(std::memory_order_relaxed); }
uint64_t heap_calls_all() { return g_all.load(std::memory_order_relaxed); }
uint64_t heap_calls_of_main() { return g_main.load(std::memory_order_relaxed); }

void* malloc(size_t size) {
  count(__builtin_return_address(0));
  return __libc_malloc(size);
}

void* calloc(size_t number, size_t size) {
  count(__builtin_return_address(0));
  return __libc_calloc(number, size);
}

void* realloc(void* old, size_t size) {
  count(__builtin_return_address(0));
  return __libc_realloc(old, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}

void* memalign(size_t alignment, size_t size) {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** out, size_t alignment, size_t size) {
  count(__builtin_return_address(0));
  void* memory = __libc_memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}

}  // extern "C"
