// An open file of the POSIX storage, and what the blocking read and both backends share.
#pragma once

#include <cassert>
#include <string>
#include <string_view>
#include <typeinfo>

#include "packtrain/storage.h"

struct stat;

namespace packtrain {

// Owns a descriptor. Immutable, so thread-safe; valid in a forked child.
class PosixFile final : public File {
 public:
  PosixFile(int descriptor, FileInfo info, std::string path)
      : descriptor_(descriptor), info_(info), path_(std::move(path)) {}
  ~PosixFile() override;
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  uint64_t size() const override { return info_.size; }
  const FileInfo& info() const override { return info_; }
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

 private:
  const int descriptor_;
  const FileInfo info_;
  const std::string path_;
};

inline const PosixFile& posix_file(const File& file) {
  assert(typeid(file) == typeid(PosixFile) && "a File goes back to the Storage that opened it");
  return static_cast<const PosixFile&>(file);
}

FileInfo file_info(const struct stat& found);

// Linux moves at most 2 GiB less a page in one call; longer reads are cut into pieces of this size.
inline constexpr size_t kLargestPiece = size_t{1} << 30;

// Fills `into` by pread. No lock, no allocation unless it fails.
Status read_fully(const PosixFile& file, uint64_t offset, MutableBytes into);
// The outcome of a read that got an error, or no bytes, at `offset`.
Status read_failed(const PosixFile& file, uint64_t offset, int error);
Status ended_early(const PosixFile& file, uint64_t offset, uint64_t wanted);

// As status_from_errno, with the path in front. A name that is taken, too long, or of the wrong kind is the
// caller's mistake (invalid), not the system's; a path that leads through a file leads nowhere (not_found).
Status path_error(int error, std::string_view doing, std::string_view path);

}  // namespace packtrain
