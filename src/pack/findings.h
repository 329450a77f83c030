// What verify has found so far.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "packtrain/pack.h"

namespace packtrain {

inline constexpr uint64_t kNoSample = UINT64_MAX;

// What is wrong with a whole file, which is called `file` and lies at `path`: the place in it that the status
// names is the finding's, and its path is not said again.
Finding finding_of(const std::string& file, const std::string& path, const Status& status);

// Counts every finding and keeps the first ones, so that a set that is bad throughout does not fill memory.
// Thread-safe.
class Findings {
 public:
  explicit Findings(uint64_t keep) : keep_(keep) {}

  // `sample`: whose bytes or row it is, or kNoSample.
  void add(Finding finding, uint64_t sample = kNoSample) {
    Lock lock(mutex_);
    ++count_;
    if (sample != kNoSample) damaged_.insert(sample);
    if (finding.remedy == Remedy::remove) ++to_remove_;
    if (finding.remedy == Remedy::reindex) ++to_reindex_;
    if (kept_.size() < keep_) kept_.push_back(std::move(finding));
  }
  void add_recoverable(std::string words) {
    Lock lock(mutex_);
    recoverable_.push_back(std::move(words));
  }
  // Samples that nothing can be said of.
  void add_unchecked(uint64_t samples) {
    Lock lock(mutex_);
    unchecked_ += samples;
  }
  uint64_t count() const {
    Lock lock(mutex_);
    return count_;
  }
  // Adds them to the report, sorted by file and offset.
  void move_into(VerifyReport& report);

 private:
  const uint64_t keep_;
  mutable Mutex mutex_;
  uint64_t count_ GUARDED_BY(mutex_) = 0, to_remove_ GUARDED_BY(mutex_) = 0,
                  to_reindex_ GUARDED_BY(mutex_) = 0, unchecked_ GUARDED_BY(mutex_) = 0;
  std::unordered_set<uint64_t> damaged_ GUARDED_BY(mutex_);
  std::vector<Finding> kept_ GUARDED_BY(mutex_);
  std::vector<std::string> recoverable_ GUARDED_BY(mutex_);
};

}  // namespace packtrain
