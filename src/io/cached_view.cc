#include "io/cached_view.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>
#include <string>

#include "base/mutex.h"
#include "io/cached_read.h"
#include "io/posix_file.h"

namespace packtrain {
namespace {

constexpr size_t kMostViews = 4096;  // at a time, in the process
#ifdef SYS_cachestat
constexpr long kCachestat = SYS_cachestat;
#else
constexpr long kCachestat = 451;  // on every architecture
#endif

struct ViewSlot {
  std::atomic<uintptr_t> begin{0}, end{0};  // of the mapping; begin 0: free
  std::atomic<bool> cut{false};
};
ViewSlot view_slots[kMostViews];

Mutex views_mutex;  // guards what follows, and which slots are taken
size_t views_alive GUARDED_BY(views_mutex) = 0;
bool is_covered GUARDED_BY(views_mutex) = false;  // somebody's action lies over ours, and may come back to it
struct sigaction action_before;                   // read by the handler; set before it is installed
std::atomic<bool> gave_up{false};                 // a fault elsewhere was left to action_before

// The same signal for whoever had it before.
void pass_on(int signal, siginfo_t* info, void* context) {
  if ((action_before.sa_flags & SA_SIGINFO) != 0) return action_before.sa_sigaction(signal, info, context);
  if (action_before.sa_handler == SIG_IGN) return;
  if (action_before.sa_handler != SIG_DFL) return action_before.sa_handler(signal);
  ::sigaction(signal, &action_before, nullptr);
  ::raise(signal);  // comes when this handler is left
}

// Only calls that are safe in a handler: atomics without locks, mmap, sigaction and raise.
void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  if (info->si_code <= 0) {  // somebody sent it: no fault that would come again
    pass_on(signal, info, context);
    errno = error;
    return;
  }
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (ViewSlot& slot : view_slots) {
    const uintptr_t begin = slot.begin.load(std::memory_order_acquire);
    const uintptr_t end = slot.end.load(std::memory_order_relaxed);
    if (begin == 0 || at < begin || at >= end) continue;
    const uintptr_t from = at / page * page;
    void* zeros = ::mmap(reinterpret_cast<void*>(from), end - from, PROT_READ,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (zeros == MAP_FAILED) break;
    slot.cut.store(true, std::memory_order_release);
    errno = error;
    return;
  }
  // Not ours: the instruction faults again, with the action that was there before. If that one, as those do
  // that were put over ours, leaves it to us once more, it ends here.
  struct sigaction last = action_before;
  if (gave_up.exchange(true)) {
    last = {};
    last.sa_handler = SIG_DFL;
  }
  ::sigaction(SIGBUS, &last, nullptr);
  errno = error;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_bus_error;
}

bool have_the_signal() {
  struct sigaction now;
  return ::sigaction(SIGBUS, nullptr, &now) == 0 && is_ours(now);
}

bool blocks_bus_errors() {
  sigset_t blocked;
  return ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked) != 0 || sigismember(&blocked, SIGBUS) != 0;
}

// Whether all pages of the stretch are in memory; false where the kernel (before 6.5) or its rules (who may
// not write the file, since 6.14) do not let it be asked.
bool in_page_cache(int descriptor, uint64_t offset, uint64_t bytes, uint64_t page) {
  struct {
    uint64_t offset, bytes;
  } range{offset, bytes};
  struct {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
  } found{};
  if (::syscall(kCachestat, descriptor, &range, &found, 0) != 0) return false;
  return found.cached >= (bytes + page - 1) / page;
}

// Whether mincore() says of this file's pages what is so. To all others it says that every page is in memory.
bool is_told_of_pages(int descriptor) {
  struct stat found;
  if (::fstat(descriptor, &found) == 0 && found.st_uid == ::geteuid()) return true;
  const std::string name = "/proc/self/fd/" + std::to_string(descriptor);
  return ::faccessat(AT_FDCWD, name.c_str(), W_OK, AT_EACCESS) == 0;
}

// The number of the slot, or kMostViews where none is free.
size_t take_slot(uintptr_t begin, uintptr_t end) {
  const Lock lock(views_mutex);
  size_t free = 0;
  while (free < kMostViews && view_slots[free].begin.load(std::memory_order_relaxed) != 0) ++free;
  if (free == kMostViews) return free;
  struct sigaction now;
  if (::sigaction(SIGBUS, nullptr, &now) != 0) return kMostViews;
  if (!is_ours(now)) {
    is_covered = is_covered || views_alive > 0;
    if (is_covered) return kMostViews;
    action_before = now;
    gave_up.store(false, std::memory_order_relaxed);
    struct sigaction ours = {};
    ours.sa_sigaction = on_bus_error;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    if (::sigaction(SIGBUS, &ours, nullptr) != 0) return kMostViews;
  }
  ++views_alive;
  ViewSlot& slot = view_slots[free];
  slot.cut.store(false, std::memory_order_relaxed);
  slot.end.store(end, std::memory_order_relaxed);
  slot.begin.store(begin, std::memory_order_release);
  return free;
}

void free_slot(size_t number) {
  const Lock lock(views_mutex);
  view_slots[number].begin.store(0, std::memory_order_release);
  if (--views_alive > 0) return;
  // Whoever has put an action over ours since keeps it.
  if (have_the_signal())
    ::sigaction(SIGBUS, &action_before, nullptr);
  else
    is_covered = true;
}

}  // namespace

std::unique_ptr<CachedView> CachedView::map(const PosixFile& file, uint64_t offset, uint64_t bytes) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t skip = offset % page, length = skip + bytes;
  if (length > std::numeric_limits<size_t>::max() / 2) return nullptr;
  void* address = ::mmap(nullptr, static_cast<size_t>(length), PROT_READ, MAP_SHARED, file.descriptor(),
                         static_cast<off_t>(offset - skip));
  if (address == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const size_t slot = take_slot(begin, begin + static_cast<uintptr_t>((length + page - 1) / page * page));
  if (slot == kMostViews) {
    ::munmap(address, static_cast<size_t>(length));
    return nullptr;
  }
  const Bytes seen(static_cast<const std::byte*>(address) + skip, static_cast<size_t>(bytes));
  return std::unique_ptr<CachedView>(
      new CachedView(file, offset + bytes, address, static_cast<size_t>(length), seen, slot));
}

std::unique_ptr<CachedView> CachedView::of(const File& file, uint64_t offset, uint64_t bytes) {
  const auto* posix = dynamic_cast<const PosixFile*>(&file);
  if (posix == nullptr || bytes == 0 || offset > posix->size() || bytes > posix->size() - offset)
    return nullptr;
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t skip = offset % page;
  if (blocks_bus_errors() || !is_near(file) ||
      !in_page_cache(posix->descriptor(), offset - skip, skip + bytes, page))
    return nullptr;
  return map(*posix, offset, bytes);
}

std::unique_ptr<CachedView> CachedView::of_whole(const File& file) {
  const auto* posix = dynamic_cast<const PosixFile*>(&file);
  if (posix == nullptr || posix->size() == 0 || blocks_bus_errors() || !is_near(file) ||
      !is_told_of_pages(posix->descriptor()))
    return nullptr;
  return map(*posix, 0, posix->size());
}

CachedView::~CachedView() {
  free_slot(slot_);
  ::munmap(address_, mapped_);
}

// Only advice: what stays mapped goes with the view.
void CachedView::leave(size_t begin, size_t end) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<uintptr_t>(bytes_.data());
  const uintptr_t from = (at + begin + page - 1) / page * page, to = (at + end) / page * page;
  if (from < to) ::madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

// Behind an end within a page lie zeros, which no signal tells.
bool CachedView::cut() const {
  if (view_slots[slot_].cut.load(std::memory_order_acquire)) return true;
  struct stat now;
  return ::fstat(file_.descriptor(), &now) != 0 || static_cast<uint64_t>(now.st_size) < end_;
}

bool CachedView::copy(uint64_t offset, MutableBytes into) const {
  constexpr size_t kPagesAtOnce = 256;
  if (offset > bytes_.size() || into.size() > bytes_.size() - offset || !have_the_signal()) return false;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  while (!into.empty()) {
    const auto at = reinterpret_cast<uintptr_t>(bytes_.data() + offset);
    const uintptr_t first = at / page * page;
    const size_t piece = std::min(into.size(), static_cast<size_t>(first + kPagesAtOnce * page - at));
    const size_t pages = (at + piece - first + page - 1) / page;
    unsigned char found[kPagesAtOnce];
    if (::mincore(reinterpret_cast<void*>(first), pages * page, found) != 0) return false;
    if (!std::all_of(found, found + pages, [](unsigned char is) { return (is & 1) != 0; })) return false;
    std::memcpy(into.data(), bytes_.data() + offset, piece);
    offset += piece;
    into = into.subspan(piece);
  }
  return !view_slots[slot_].cut.load(std::memory_order_acquire);
}

}  // namespace packtrain
