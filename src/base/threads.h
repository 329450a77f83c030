// Named threads that are always joined.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

namespace packtrain {

// Starts threads and joins them in its destructor. One thread at a time.
class Threads {
 public:
  Threads() = default;
  ~Threads() { join(); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  // `name` shows in ps and top, cut to 15 bytes. Signals are blocked in it: the main thread gets them.
  void start(std::string_view name, std::function<void()> body);
  void join();
  size_t size() const { return threads_.size(); }

 private:
  std::vector<std::thread> threads_;
};

// Runs body(worker) on `workers` threads named `name`, the calling one among them, and waits for all.
void run_on(std::string_view name, uint32_t workers, const std::function<void(uint32_t worker)>& body);

}  // namespace packtrain
