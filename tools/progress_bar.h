// How far long work is, on stderr: a bar that redraws itself on a terminal, a line now and then elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "packtrain/progress.h"

namespace packtrain::tools {

// Items and bytes per second of late: an average that forgets over about ten seconds, so that it follows a
// storage that slows down and does not jump with every burst. One thread at a time.
class RecentRate {
 public:
  void restart(const ProgressEvent& event, double now);
  void update(const ProgressEvent& event, double now);
  double items() const { return items_; }
  double bytes() const { return bytes_; }

 private:
  double items_ = 0, bytes_ = 0;
  double last_time_ = 0, first_time_ = 0;
  uint64_t last_items_ = 0, last_bytes_ = 0;
};

// "write 43 %, 430 of 1,000 files, 51.2 files/s, 5.50 MB/s, 11 s left"
std::string progress_words(const ProgressEvent& event, const RecentRate& rate);
// The same as a line of at most `columns` columns with a bar in front; what does not fit is left out from the
// end.
std::string progress_line(const ProgressEvent& event, const RecentRate& rate, size_t columns);

enum class ProgressStyle : uint8_t { none, lines, bar };

// Thread-safe. Says nothing about work that takes less than two seconds.
class ProgressBar {
 public:
  struct Terminal {
    std::function<double()> seconds;              // a clock that only goes forward
    std::function<void(std::string_view)> write;  // to stderr
    std::function<size_t()> columns;
  };

  ProgressBar(ProgressStyle style, std::string verb, Terminal terminal);

  void update(const ProgressEvent& event);
  // Wipes the bar, so that other text can be written; the next update draws it again.
  void clear();

 private:
  const ProgressStyle style_;
  const std::string verb_;
  const Terminal terminal_;
  Mutex mutex_;
  double started_ GUARDED_BY(mutex_) = 0, drawn_at_ GUARDED_BY(mutex_) = 0;
  std::string phase_ GUARDED_BY(mutex_);
  RecentRate rate_ GUARDED_BY(mutex_);
  bool visible_ GUARDED_BY(mutex_) = false;
};

}  // namespace packtrain::tools
