#include "pack/file_facts.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/threads.h"
#include "base/words.h"
#include "packtrain/place.h"

namespace packtrain {
namespace {

constexpr uint64_t kCellsPerTurn = 8;
constexpr uint64_t kFewFiles = 20000;  // near storage answers so many in some tens of milliseconds
constexpr uint32_t kNearThreads = 4;

// No filesystem has such a name, but asking for it is a failure on some and an absence on others.
bool is_impossible(std::string_view path) {
  constexpr size_t kLongestName = 255;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    if (end - at > kLongestName) return true;
    at = end + 1;
  }
  return false;
}

class Looker {  // thread-safe but for its constructor and outcome()
 public:
  Looker(Storage& storage, Catalog& catalog, ScanProgress& progress)
      : storage_(storage), catalog_(catalog), progress_(progress) {}

  void work(bool reports) {
    std::string path;
    while (!stop_) {
      const uint64_t first = next_.fetch_add(kCellsPerTurn);
      if (first >= catalog_.cells.size()) return;
      const uint64_t end = std::min<uint64_t>(first + kCellsPerTurn, catalog_.cells.size());
      for (uint64_t c = first; c < end; ++c) look(c, path);
      if (reports) {
        if (Status told = progress_.tick(next_ / cells_per_file(), files_); !told.ok()) {
          stopped_ = std::move(told);
          stop_ = true;
        }
      }
    }
  }

  Result<std::vector<LookFailure>> outcome() EXCLUDES(mutex_) {
    if (!stopped_.ok()) return stopped_;
    Lock lock(mutex_);
    std::sort(failures_.begin(), failures_.end(),
              [](const LookFailure& a, const LookFailure& b) { return a.cell < b.cell; });
    return std::move(failures_);
  }

  void set_files(uint64_t files) { files_ = files; }

 private:
  uint64_t cells_per_file() const {
    return files_ == 0 ? 1 : std::max<uint64_t>(1, catalog_.cells.size() / files_);
  }

  void look(uint64_t number, std::string& path) EXCLUDES(mutex_) {
    Cell& cell = catalog_.cells[number];  // no other thread has this one
    if (cell.origin != Origin::file || cell.mtime_ns() != kNotLookedAt) return;
    const std::string_view relative = catalog_.name(cell.path);
    path.clear();
    if (!relative.starts_with('/')) {
      path = catalog_.roots[cell.source].folder;
      if (!path.ends_with('/')) path += '/';
    }
    path += relative;
    const auto info = storage_.stat(path);
    const bool listed = cell.inner_field == kFromList;
    cell.inner_field = 0;
    if (info.ok() && info->kind == FileKind::file) {
      cell.size = info->size;
      cell.set_mtime_ns(info->mtime_ns);
      return;
    }
    cell.set_mtime_ns(kNotThere);
    if (listed && (info.ok() || info.status().code() == Code::not_found || is_impossible(relative))) return;
    std::string what;
    if (info.ok()) {
      what = "is no longer a file";
    } else if (info.status().code() == Code::not_found) {
      what = "vanished while the source was looked at";
    } else {
      what = info.status().message();
    }
    Lock lock(mutex_);
    failures_.push_back({number, {path, std::move(what), ""}});
  }

  Storage& storage_;
  Catalog& catalog_;
  ScanProgress& progress_;
  uint64_t files_ = 0;
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> stop_{false};
  Status stopped_;  // written by the one thread that reports
  Mutex mutex_;
  std::vector<LookFailure> failures_ GUARDED_BY(mutex_);
};

}  // namespace

bool is_far(std::string_view path) {
  const auto place = place_of(path);
  return place.ok() && place->far();
}

Result<std::vector<LookFailure>> look_at_files(Storage& storage, uint32_t in_flight, Catalog& catalog,
                                               ScanProgress& progress) {
  uint64_t files = 0;
  for (const Cell& cell : catalog.cells)
    files += cell.origin == Origin::file && cell.mtime_ns() == kNotLookedAt;
  if (files == 0) return std::vector<LookFailure>();
  const bool far = std::any_of(catalog.roots.begin(), catalog.roots.end(),
                               [](const CatalogRoot& root) { return is_far(root.folder); });
  uint64_t threads = far                 ? std::max<uint32_t>(in_flight, 1)
                     : files > kFewFiles ? std::min(std::max<uint32_t>(in_flight, 1), kNearThreads)
                                         : 1;
  threads = std::min<uint64_t>(threads, 1 + files / kCellsPerTurn);
  Looker looker(storage, catalog, progress);
  looker.set_files(files);
  run_on("pt-stat", static_cast<uint32_t>(threads), [&](uint32_t worker) { looker.work(worker == 0); });
  PACKTRAIN_ASSIGN(failures, looker.outcome());
  PACKTRAIN_TRY(progress.tell(files, files));
  return failures;
}

}  // namespace packtrain
