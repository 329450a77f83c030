// How work on many threads tells its one caller where it is.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "packtrain/progress.h"

namespace packtrain {

// Adds up what all threads did and passes it on about ten times a second, from one thread at a time.
// Remembers that the caller wants no more. Thread-safe; cheap enough for every read.
class ProgressMeter {
 public:
  ProgressMeter(const Progress& progress, std::string_view phase, std::string_view unit, uint64_t items_total,
                uint64_t bytes_total)
      : progress_(progress),
        phase_(phase),
        unit_(unit),
        items_total_(items_total),
        bytes_total_(bytes_total) {}

  // False: stop.
  bool add(uint64_t items, uint64_t bytes) {
    items_.fetch_add(items, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (progress_ && now() >= next_.load(std::memory_order_relaxed)) tell();
    return !stopped();
  }
  // Tells the end of a phase, however short it was, so that a caller who wants no more is heard before what
  // cannot be taken back. False: stop. For one thread, once the others are done.
  bool finish() {
    if (progress_ && !stopped()) tell();
    return !stopped();
  }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

 private:
  static int64_t now() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::milliseconds(1);
  }

  void tell() {
    if (telling_.test_and_set(std::memory_order_acquire)) return;  // another thread is at it
    ProgressEvent event;
    event.phase = phase_;
    event.unit = unit_;
    event.items = items_.load(std::memory_order_relaxed);
    event.items_total = items_total_;
    event.bytes = bytes_.load(std::memory_order_relaxed);
    event.bytes_total = bytes_total_;
    if (!progress_(event)) stopped_.store(true, std::memory_order_relaxed);
    next_.store(now() + 100, std::memory_order_relaxed);
    telling_.clear(std::memory_order_release);
  }

  const Progress& progress_;
  const std::string phase_, unit_;
  const uint64_t items_total_, bytes_total_;
  std::atomic<uint64_t> items_{0}, bytes_{0};
  std::atomic<int64_t> next_{0};
  std::atomic<bool> stopped_{false};
  std::atomic_flag telling_ = ATOMIC_FLAG_INIT;
};

}  // namespace packtrain
