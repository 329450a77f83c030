// Pace: how often long work looks up to tell where it is.
#pragma once

#include <chrono>

#include "packtrain/progress.h"
#include "packtrain/status.h"

namespace packtrain {

// Calls a Progress at most ten times a second, and turns its "stop" into a Status. One thread at a time.
class Pace {
 public:
  explicit Pace(const Progress& progress) : progress_(progress) {}

  // Cheap enough for every item: the clock is read once in a thousand calls.
  Status tell(const ProgressEvent& event) {
    if (!progress_ || ++calls_ % 1024 != 0) return {};
    return tell_now(event);
  }
  Status tell_now(const ProgressEvent& event) {
    auto now = std::chrono::steady_clock::now();
    if (!progress_ || now - last_ < std::chrono::milliseconds(100)) return {};
    last_ = now;
    return progress_(event) ? Status() : Status(Code::stopped, "stopped before the end");
  }

 private:
  const Progress& progress_;
  uint64_t calls_ = 0;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace packtrain
