// The two ways to keep many reads in flight. What they are is chosen in posix.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "packtrain/storage.h"

namespace packtrain {

class ReadPool;

// The threads of the pread backend, shared by all Reads of one Storage: started when work waits for them,
// joined by the destructor. Thread-safe. A forked child gets a pool of its own at first use; the parent's,
// whose locks may be held by threads that the child does not have, is never touched there.
class ReadPoolOwner {
 public:
  explicit ReadPoolOwner(uint32_t threads);  // 0: chosen
  ~ReadPoolOwner();
  ReadPoolOwner(const ReadPoolOwner&) = delete;
  ReadPoolOwner& operator=(const ReadPoolOwner&) = delete;

  ReadPool& pool();
  std::unique_ptr<Reads> reads(uint32_t depth);  // must not outlive this

 private:
  const uint32_t threads_;
  std::atomic<ReadPool*> pool_{nullptr};
};

// A ring of its own for each object; null if the kernel refuses one now (limits, seccomp).
std::unique_ptr<Reads> make_uring_reads(uint32_t depth);
// Why no ring can be had in this process, or empty. Asks the kernel.
std::string uring_trouble();

}  // namespace packtrain
