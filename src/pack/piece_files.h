// The open files of a plan's containers.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "pack/plan.h"
#include "packtrain/storage.h"

namespace packtrain {

// Opens each file when it is first wanted and keeps it open, but never more than half of what the process may
// have: a source can have more shards than that, and the pack has files of its own to open. Where an open
// fails for lack of descriptors all the same, fewer stay open from then on. Thread-safe; a file that is open
// costs two atomic steps. The files' list must outlive it.
class PieceFiles {
  struct Slot {
    std::atomic<const File*> file = nullptr;
    std::atomic<uint32_t> uses = 0;
  };

 public:
  // A file that stays open as long as this lives.
  class Use {
   public:
    Use(Use&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)), file_(other.file_) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (slot_) slot_->uses.fetch_sub(1);
    }
    const File& operator*() const { return *file_; }

   private:
    friend class PieceFiles;
    explicit Use(Slot& slot) : slot_(&slot) { slot.uses.fetch_add(1); }

    Slot* slot_;
    const File* file_ = nullptr;
  };

  PieceFiles(Storage& storage, const std::vector<PieceFile>& files, uint64_t most_open);
  ~PieceFiles();
  PieceFiles(const PieceFiles&) = delete;
  PieceFiles& operator=(const PieceFiles&) = delete;

  // Code::corrupt if it is no longer the file that was listed.
  Result<Use> use(uint32_t file);

 private:
  bool close_one() REQUIRES(mutex_);
  Result<std::unique_ptr<File>> open(const PieceFile& spec) REQUIRES(mutex_);

  Storage& storage_;
  const std::vector<PieceFile>& files_;
  std::vector<Slot> slots_;
  Mutex mutex_;  // guards opening and closing; what is open is read without it
  uint64_t most_open_ GUARDED_BY(mutex_);
  uint64_t open_ GUARDED_BY(mutex_) = 0;
  size_t next_to_close_ GUARDED_BY(mutex_) = 0;
};

}  // namespace packtrain
