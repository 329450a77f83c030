#include <condition_variable>
#include <vector>

#include "base/fifo.h"
#include "base/mutex.h"
#include "base/threads.h"
#include "io/backends.h"
#include "io/fork.h"
#include "io/posix_file.h"

namespace packtrain {
namespace {

// Latency is hidden by depth, not by cores: 32 reads of half a millisecond in flight are 64,000 a second,
// more than one client gets from a network filesystem.
constexpr uint32_t kChosenThreads = 32;

// Where workers put the numbers of finished slots, and the owner of the slots waits for them.
struct Completions {
  Mutex mutex;
  std::condition_variable changed;
  std::vector<uint32_t> finished GUARDED_BY(mutex);
};

struct Ticket {
  Read* read;
  Completions* completions;
  uint32_t slot;
};

void serve(const Ticket& ticket) {
  Read& read = *ticket.read;
  read.status = read_fully(posix_file(*read.file), read.offset, read.into);
  // Notified under the lock: once the owner can take it, no worker touches the object again.
  Lock lock(ticket.completions->mutex);
  ticket.completions->finished.push_back(ticket.slot);
  ticket.completions->changed.notify_one();
}

}  // namespace

// Threads that serve tickets in the order of arrival. Thread-safe.
class ReadPool {
 public:
  explicit ReadPool(uint32_t limit) : generation_(fork_generation()), limit_(limit) {}

  ~ReadPool() {
    {
      Lock lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    threads_.join();
  }

  uint64_t generation() const { return generation_; }

  void submit(std::span<const Ticket> tickets) {
    bool no_thread = false;
    {
      Lock lock(mutex_);
      for (const Ticket& ticket : tickets) queue_.push(ticket);
      while (started_ < limit_ && queue_.size() > idle_ + starting_) {
        if (!threads_.start("pt-read", [this] { work(); }).ok()) break;  // those there are must do
        ++started_;
        ++starting_;
      }
      no_thread = started_ == 0;
      for (size_t i = 0; i < std::min(tickets.size(), idle_); ++i) changed_.notify_one();
    }
    if (no_thread) serve_here();
  }

 private:
  void work() {
    for (bool first = true;; first = false) {
      Ticket ticket;
      {
        Lock lock(mutex_);
        if (first) --starting_;
        ++idle_;
        while (queue_.empty() && !stopping_) lock.wait(changed_);
        --idle_;
        if (queue_.empty()) return;
        ticket = queue_.pop();
      }
      serve(ticket);
    }
  }

  void serve_here() {
    for (;;) {
      Ticket ticket;
      {
        Lock lock(mutex_);
        if (queue_.empty()) return;
        ticket = queue_.pop();
      }
      serve(ticket);
    }
  }

  const uint64_t generation_;
  const uint32_t limit_;
  Mutex mutex_;  // guards what follows; not held over a read
  std::condition_variable changed_;
  Fifo<Ticket> queue_ GUARDED_BY(mutex_);
  size_t started_ GUARDED_BY(mutex_) = 0;
  size_t starting_ GUARDED_BY(mutex_) = 0;  // threads on their way to their first ticket
  size_t idle_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
  Threads threads_;  // started under mutex_, joined by the destructor
};

namespace {

// Requests served by a pool. One thread at a time.
class PoolReads final : public Reads {
 public:
  PoolReads(ReadPoolOwner& owner, uint32_t depth)
      : owner_(owner), generation_(fork_generation()), completions_(new Completions), slots_(depth, nullptr) {
    for (uint32_t slot = depth; slot > 0; --slot) free_.push_back(slot - 1);
  }

  ~PoolReads() override {
    renew_after_fork();
    while (free_.size() < slots_.size()) collect();
  }

  void submit(std::span<Read* const> batch) override {
    renew_after_fork();
    std::vector<Ticket>& tickets = tickets_;
    for (Read* read : batch) {
      if (free_.empty()) {
        owner_.pool().submit(tickets);
        tickets.clear();
        collect();
      }
      read->status = Status();
      ++in_flight_;
      const uint32_t slot = free_.back();
      free_.pop_back();
      slots_[slot] = read;
      tickets.push_back({read, completions_.get(), slot});
    }
    if (!tickets.empty()) owner_.pool().submit(tickets);
    tickets.clear();
  }

  size_t wait(std::span<Read*> finished) override {
    renew_after_fork();
    if (ready_.empty() && free_.size() < slots_.size() && !finished.empty()) collect();
    size_t count = 0;
    while (count < finished.size() && !ready_.empty()) {
      finished[count++] = ready_.pop();
    }
    in_flight_ -= count;
    return count;
  }

  size_t in_flight() const override { return in_flight_; }

 private:
  // Waits for at least one completion and moves all there are to ready_.
  void collect() {
    {
      Lock lock(completions_->mutex);
      while (completions_->finished.empty()) lock.wait(completions_->changed);
      taken_.swap(completions_->finished);
    }
    for (uint32_t slot : taken_) {
      ready_.push(slots_[slot]);
      slots_[slot] = nullptr;
      free_.push_back(slot);
    }
    taken_.clear();
  }

  // In a forked child: what was in flight will arrive in the parent only.
  void renew_after_fork() {
    if (generation_ == fork_generation()) [[likely]]
      return;
    generation_ = fork_generation();
    // A worker of the parent may have held its lock at the moment of the fork: leave it alone.
    static_cast<void>(completions_.release());
    completions_.reset(new Completions);
    free_.clear();
    for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
      free_.push_back(slot);
      if (slots_[slot] == nullptr) continue;
      slots_[slot]->status = Status(Code::io, "the process forked while this read was in flight; read again");
      ready_.push(slots_[slot]);
      slots_[slot] = nullptr;
    }
  }

  ReadPoolOwner& owner_;
  uint64_t generation_;
  std::unique_ptr<Completions> completions_;
  std::vector<Read*> slots_;    // requests that a worker has or will have
  std::vector<uint32_t> free_;  // slots without one
  std::vector<uint32_t> taken_;
  std::vector<Ticket> tickets_;
  Fifo<Read*> ready_;  // finished, not handed back yet
  size_t in_flight_ = 0;
};

}  // namespace

ReadPoolOwner::ReadPoolOwner(uint32_t threads) : threads_(threads > 0 ? threads : kChosenThreads) {}

ReadPoolOwner::~ReadPoolOwner() {
  ReadPool* pool = pool_.load(std::memory_order_acquire);
  if (pool != nullptr && pool->generation() == fork_generation()) delete pool;
}

// Without a lock of its own: another thread could hold it at the moment of a fork.
ReadPool& ReadPoolOwner::pool() {
  ReadPool* current = pool_.load(std::memory_order_acquire);
  while (current == nullptr || current->generation() != fork_generation()) {
    auto fresh = std::make_unique<ReadPool>(threads_);
    if (pool_.compare_exchange_strong(current, fresh.get(), std::memory_order_acq_rel))
      current = fresh.release();
  }
  return *current;
}

std::unique_ptr<Reads> ReadPoolOwner::reads(uint32_t depth) {
  return std::make_unique<PoolReads>(*this, std::max<uint32_t>(depth, 1));
}

}  // namespace packtrain
