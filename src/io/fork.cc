#include "io/fork.h"

#include <pthread.h>

#include <atomic>

namespace packtrain {
namespace {

std::atomic<uint64_t> generation{0};

void count_fork() { generation.fetch_add(1, std::memory_order_relaxed); }

// Registered while the program is loaded, so before anything could have been made to go stale.
const int registered = pthread_atfork(nullptr, nullptr, count_fork);

}  // namespace

uint64_t fork_generation() {
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace packtrain
