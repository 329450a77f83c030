// How a scan says where it is.
#pragma once

#include <chrono>
#include <cstdint>

#include "packtrain/progress.h"
#include "packtrain/status.h"

namespace packtrain {

// Passes counts of files on to the caller's Progress, about ten times a second. One thread at a time.
class ScanProgress {
 public:
  explicit ScanProgress(const Progress& progress) : progress_(progress) {}

  // Code::stopped if the caller wants no more. Cheap enough to be called for every file.
  Status tick(uint64_t files, uint64_t files_total = 0) {
    if (!progress_ || (++calls_ & 63) != 0) return {};
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(100)) return {};
    last_ = now;
    return tell(files, files_total);
  }
  // As tick, but at once.
  Status tell(uint64_t files, uint64_t files_total) {
    if (!progress_) return {};
    ProgressEvent event;
    event.phase = "scan";
    event.items = files;
    event.items_total = files_total;
    event.unit = "files";
    if (progress_(event)) return {};
    return Status(Code::stopped, "stopped while looking at the source; run the same command again");
  }

 private:
  const Progress& progress_;
  uint32_t calls_ = 0;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace packtrain
