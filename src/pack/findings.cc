#include "pack/findings.h"

#include <algorithm>
#include <tuple>

namespace packtrain {

void Findings::move_into(VerifyReport& report) {
  Lock lock(mutex_);
  std::sort(kept_.begin(), kept_.end(), [](const Finding& a, const Finding& b) {
    return std::tie(a.file, a.offset, a.key, a.field, a.what) <
           std::tie(b.file, b.offset, b.key, b.field, b.what);
  });
  std::sort(recoverable_.begin(), recoverable_.end());
  report.findings_count += count_;
  report.damaged_samples += damaged_.size();
  report.to_remove += to_remove_;
  report.to_reindex += to_reindex_;
  report.unchecked_samples += unchecked_;
  for (Finding& finding : kept_) report.findings.push_back(std::move(finding));
  for (std::string& words : recoverable_) report.recoverable.push_back(std::move(words));
  count_ = to_remove_ = to_reindex_ = unchecked_ = 0;
  damaged_.clear();
  kept_.clear();
  recoverable_.clear();
}

}  // namespace packtrain
