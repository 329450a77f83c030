// Named threads that are always joined.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "packtrain/status.h"

namespace packtrain {

// Starts threads and joins them in its destructor. One thread at a time.
class Threads {
 public:
  Threads() = default;
  ~Threads() { join(); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  // `name` shows in ps and top, cut to 15 bytes. Signals are blocked in it, but for faults of its
  // own: the main thread gets them.
  // Code::no_room where the system allows no more threads.
  Status start(std::string_view name, std::function<void()> body);
  void join();
  size_t size() const { return threads_.size(); }

 private:
  std::vector<std::thread> threads_;
};

// Runs body(worker) on `workers` threads named `name`, the calling one among them, and waits for all. On
// fewer where the system allows no more, so that workers must share their work, each taking what is left.
// What a body throws (memory may run out) the caller gets when all have ended.
void run_on(std::string_view name, uint32_t workers, const std::function<void(uint32_t worker)>& body);

}  // namespace packtrain
