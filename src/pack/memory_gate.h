// How much of what is large may be in memory at a time, however many threads there are.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <utility>

#include "base/mutex.h"
#include "packtrain/status.h"

namespace packtrain {

// Bytes that threads hold while they work on a large value, such as an entry of a zip that unpacks to a
// thousand times its size. A thread waits until what it asks for fits beside what the others hold; one value
// alone may always be as large as memory is. What is small passes free of charge. Thread-safe. A thread that
// holds some must not wait for another that asks.
class MemoryGate {
 public:
  static constexpr uint64_t kSmall = uint64_t{16} << 20;

  // A fourth of what is left of memory, and 1 GiB at most.
  static uint64_t usual_limit();

  MemoryGate() : limit_(usual_limit()) {}
  explicit MemoryGate(uint64_t limit) : limit_(limit) {}

  // Gives its bytes back when it dies.
  class Hold {
   public:
    Hold() = default;
    Hold(MemoryGate* gate, uint64_t bytes) : gate_(gate), bytes_(bytes) {}
    Hold(Hold&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)), bytes_(other.bytes_) {}
    Hold& operator=(Hold&& other) noexcept {
      if (this != &other) {
        if (gate_ != nullptr) gate_->give_back(bytes_);
        gate_ = std::exchange(other.gate_, nullptr);
        bytes_ = other.bytes_;
      }
      return *this;
    }
    ~Hold() {
      if (gate_ != nullptr) gate_->give_back(bytes_);
    }

   private:
    MemoryGate* gate_ = nullptr;
    uint64_t bytes_ = 0;
  };

  // Code::no_room if that much memory is not left at all.
  Result<Hold> hold(uint64_t bytes);

 private:
  void give_back(uint64_t bytes);

  const uint64_t limit_;
  Mutex mutex_;
  std::condition_variable changed_;
  uint64_t held_ GUARDED_BY(mutex_) = 0;
};

// Code::no_room if so many bytes do not fit into what is left of memory.
Status fits_memory(uint64_t bytes);

}  // namespace packtrain
