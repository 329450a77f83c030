#include "pack/findings.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <tuple>

#include "base/words.h"

namespace packtrain {

Finding finding_of(const std::string& file, const std::string& path, const Status& status) {
  std::string_view where = status.where();
  for (const std::string& name : {path, printable(path)}) {
    if (!where.starts_with(name)) continue;
    const std::string_view rest = where.substr(name.size());
    if (!rest.empty() && rest[0] != ':' && rest[0] != ' ') continue;
    where = rest.substr(std::min(rest.find_first_not_of(": "), rest.size()));
    break;
  }
  constexpr std::string_view kAt = "@ ";
  uint64_t offset = 0;
  if (where.starts_with(kAt)) {
    const auto [end, error] = std::from_chars(where.data() + kAt.size(), where.data() + where.size(), offset);
    if (error == std::errc() && end == where.data() + where.size())
      where = {};
    else
      offset = 0;
  }
  const std::string places = where.empty() ? "" : std::string(where) + ": ";
  return {file, "", "", offset, places + status.message()};
}

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
