#include <liburing.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <system_error>
#include <vector>

#include "base/fifo.h"
#include "io/backends.h"
#include "io/fork.h"
#include "io/posix_file.h"

namespace packtrain {
namespace {

// Enough for any storage; a ring of this size takes a quarter of a megabyte.
constexpr uint32_t kLargestDepth = 4096;

// Regular files on filesystems without non-blocking reads (most network ones) are read by kernel threads, of
// which a ring has at most four per CPU. Depth is asked for to hide latency, so allow as many.
void allow_kernel_threads(io_uring& ring, uint32_t depth) {
  unsigned limits[2] = {0, 0};  // bounded and unbounded work; 0 only asks
  if (io_uring_register_iowq_max_workers(&ring, limits) != 0 || limits[0] >= depth) return;
  limits[0] = depth;
  limits[1] = 0;
  io_uring_register_iowq_max_workers(&ring,
                                     limits);  // kernels before 5.15 cannot; then depth is four per CPU
}

// The kernel may give the memory of a ring that one thread closed to the ring that another opens. It keeps
// the two apart, but ThreadSanitizer does not see it do so; this tells it.
std::atomic<uint64_t> rings_given_back = 0;

// Requests in flight over a ring of its own. One thread at a time.
//
// Every slot has at most one entry in the submission queue, which has at least as many entries as there are
// slots: an entry is always to be had. A forked child shares the parent's ring memory and must not touch it;
// it makes a new one. Where the ring fails, requests are read on the spot: slower, never wrong.
class UringReads final : public Reads {
 public:
  explicit UringReads(uint32_t depth) : generation_(fork_generation()), slots_(depth) {
    for (Slot& slot : slots_) free_.push_back(&slot);
    open_ring();
  }

  ~UringReads() override {
    renew_after_fork();
    while (free_.size() < slots_.size()) {
      flush();
      if (free_.size() < slots_.size()) reap();
    }
    close_ring();
  }

  bool usable() const { return submits_; }

  void submit(std::span<Read* const> batch) override {
    renew_after_fork();
    for (Read* read : batch) {
      read->status = Status();
      ++in_flight_;
      if (read->into.empty()) {
        ready_.push(read);
        continue;
      }
      while (free_.empty()) {
        flush();
        if (free_.empty()) reap();
      }
      Slot* slot = free_.back();
      free_.pop_back();
      *slot = {read, 0};
      enqueue(slot);
    }
    flush();
  }

  size_t wait(std::span<Read*> finished) override {
    renew_after_fork();
    while (ready_.empty() && in_flight_ > 0 && !finished.empty()) {
      flush();
      if (ready_.empty()) reap();
    }
    size_t count = 0;
    while (count < finished.size() && !ready_.empty()) {
      finished[count++] = ready_.pop();
    }
    in_flight_ -= count;
    return count;
  }

  size_t in_flight() const override { return in_flight_; }

 private:
  struct Slot {
    Read* read = nullptr;
    size_t done = 0;
  };

  void open_ring() {
    ring_open_ = io_uring_queue_init(static_cast<unsigned>(slots_.size()), &ring_, IORING_SETUP_CLAMP) == 0;
    (void)rings_given_back.load(std::memory_order_acquire);
    submits_ = ring_open_;
    if (ring_open_) allow_kernel_threads(ring_, static_cast<uint32_t>(slots_.size()));
  }

  void close_ring() {
    rings_given_back.fetch_add(1, std::memory_order_release);
    if (ring_open_) io_uring_queue_exit(&ring_);
    ring_open_ = submits_ = false;
  }

  // Puts the rest of a slot's request into the submission queue.
  void enqueue(Slot* slot) {
    io_uring_sqe* entry = submits_ ? io_uring_get_sqe(&ring_) : nullptr;
    if (entry == nullptr) return finish_here(slot);
    const MutableBytes rest = slot->read->into.subspan(slot->done);
    io_uring_prep_read(entry, posix_file(*slot->read->file).descriptor(), rest.data(),
                       static_cast<unsigned>(std::min(rest.size(), kLargestPiece)),
                       slot->read->offset + slot->done);
    io_uring_sqe_set_data(entry, slot);
    queued_.push_back(slot);
  }

  // Hands the submission queue to the kernel.
  void flush() {
    while (!queued_.empty()) {
      const int taken = io_uring_submit(&ring_);
      if (taken > 0) {
        queued_.erase(queued_.begin(), queued_.begin() + taken);
      } else if (taken == -EINTR) {
        continue;
      } else if (taken != 0 && taken != -EAGAIN && taken != -EBUSY) {
        stop_submitting();
      } else if (free_.size() + queued_.size() < slots_.size()) {
        reap();  // the kernel is short of something that a completion gives back
      } else {
        stop_submitting();
      }
    }
  }

  // What the kernel did not take is read here; what it took is still waited for. The entries left in the
  // queue stay there: nothing is submitted to this ring again.
  void stop_submitting() {
    submits_ = false;
    std::vector<Slot*> left;
    left.swap(queued_);
    for (Slot* slot : left) finish_here(slot);
  }

  // Waits for at least one completion and takes all there are. Some requests may go on (short reads): then
  // they stand in the queue again.
  void reap() {
    io_uring_cqe* first = nullptr;
    int error;
    do {
      error = io_uring_wait_cqe(&ring_, &first);
      assert(error == 0 || error == -EINTR || error == -EAGAIN || error == -EBUSY);
    } while (error != 0);
    unsigned head = 0, count = 0;
    io_uring_cqe* completion = nullptr;
    io_uring_for_each_cqe(&ring_, head, completion) {
      ++count;
      advance(static_cast<Slot*>(io_uring_cqe_get_data(completion)), completion->res);
    }
    io_uring_cq_advance(&ring_, count);
  }

  void advance(Slot* slot, int result) {
    Read& read = *slot->read;
    const PosixFile& file = posix_file(*read.file);
    if (result > 0) {
      slot->done += static_cast<size_t>(result);
      if (slot->done == read.into.size()) return hand_over(slot);
      enqueue(slot);
    } else if (result == 0) {
      read.status = ended_early(file, read.offset + slot->done, read.into.size() - slot->done);
      hand_over(slot);
    } else if (result == -EINTR || result == -EAGAIN) {
      finish_here(slot);  // asked again, some kernels answer the same for ever; pread does not
    } else {
      read.status = read_failed(file, read.offset + slot->done, -result);
      hand_over(slot);
    }
  }

  void finish_here(Slot* slot) {
    Read& read = *slot->read;
    read.status = read_fully(posix_file(*read.file), read.offset + slot->done, read.into.subspan(slot->done));
    hand_over(slot);
  }

  void hand_over(Slot* slot) {
    ready_.push(slot->read);
    slot->read = nullptr;
    free_.push_back(slot);
  }

  // In a forked child: what was in flight will arrive in the parent only.
  void renew_after_fork() {
    if (generation_ == fork_generation()) [[likely]]
      return;
    generation_ = fork_generation();
    close_ring();  // the child's view of it; the parent keeps its own
    open_ring();
    queued_.clear();
    free_.clear();
    for (Slot& slot : slots_) {
      if (slot.read != nullptr) {
        slot.read->status = Status(Code::io, "the process forked while this read was in flight; read again");
        ready_.push(slot.read);
        slot.read = nullptr;
      }
      free_.push_back(&slot);
    }
  }

  uint64_t generation_;
  io_uring ring_;
  bool ring_open_ = false;
  bool submits_ = false;  // false: requests are read on the spot
  std::vector<Slot> slots_;
  std::vector<Slot*> free_;
  std::vector<Slot*> queued_;  // in the submission queue, in its order
  Fifo<Read*> ready_;          // finished, not handed back yet
  size_t in_flight_ = 0;
};

}  // namespace

std::unique_ptr<Reads> make_uring_reads(uint32_t depth) {
  auto reads = std::make_unique<UringReads>(std::clamp<uint32_t>(depth, 1, kLargestDepth));
  return reads->usable() ? std::move(reads) : nullptr;
}

std::string uring_trouble() {
  io_uring ring;
  const int error = -io_uring_queue_init(4, &ring, 0);
  switch (error) {
    case 0:
      break;
    case ENOSYS:
      return "the kernel has no io_uring";
    case EPERM:
    case EACCES:
      return "io_uring is forbidden here (sysctl kernel.io_uring_disabled, or a container's seccomp profile)";
    case ENOMEM:
      return "the limit on locked memory (ulimit -l) is too low for io_uring";
    default:
      return "io_uring does not start: " + std::generic_category().message(error);
  }
  io_uring_probe* probe = io_uring_get_probe_ring(&ring);
  const bool can_read = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_READ);
  if (probe != nullptr) io_uring_free_probe(probe);
  io_uring_queue_exit(&ring);
  return can_read ? "" : "the kernel's io_uring is too old (it needs Linux 5.6)";
}

}  // namespace packtrain
