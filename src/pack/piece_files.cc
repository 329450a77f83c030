#include "pack/piece_files.h"

#include <algorithm>

#include "base/words.h"

namespace packtrain {

PieceFiles::PieceFiles(Storage& storage, const std::vector<PieceFile>& files, uint64_t most_open)
    : storage_(storage), files_(files), slots_(files.size()), most_open_(std::max<uint64_t>(1, most_open)) {}

PieceFiles::~PieceFiles() {
  for (Slot& slot : slots_) delete slot.file.load();
}

// Whoever uses a file counts itself first and looks for the file then; here the file is taken away first and
// users are looked for then. So one of both sees the other, whatever the order.
bool PieceFiles::close_one() {
  for (size_t tried = 0; tried < slots_.size(); ++tried) {
    Slot& slot = slots_[next_to_close_];
    next_to_close_ = (next_to_close_ + 1) % slots_.size();
    const File* const file = slot.file.exchange(nullptr);
    if (!file) continue;
    if (slot.uses.load() == 0) {
      delete file;
      --open_;
      return true;
    }
    slot.file.store(file);
  }
  return false;
}

Result<std::unique_ptr<File>> PieceFiles::open(const PieceFile& spec) {
  while (open_ >= most_open_ && close_one()) {
  }
  while (true) {
    auto opened = storage_.open(spec.path);
    if (opened.ok() || opened.status().code() != Code::limit || open_ == 0) return opened;
    most_open_ = std::max<uint64_t>(1, open_ / 2);
    bool any = false;
    while (open_ >= most_open_ && close_one()) any = true;
    if (!any) return opened;
  }
}

Result<PieceFiles::Use> PieceFiles::use(uint32_t file) {
  Slot& slot = slots_[file];
  Use use(slot);
  if ((use.file_ = slot.file.load())) return use;
  Lock lock(mutex_);
  if ((use.file_ = slot.file.load())) return use;
  const PieceFile& spec = files_[file];
  PACKTRAIN_ASSIGN(opened, open(spec));
  if (opened->size() != spec.bytes || (spec.mtime_ns != 0 && opened->info().mtime_ns != spec.mtime_ns))
    return Status(Code::corrupt, "has changed since it was listed").at(printable(spec.path));
  use.file_ = opened.release();
  slot.file.store(use.file_);
  ++open_;
  return use;
}

}  // namespace packtrain
