#include "io/posix_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/words.h"

namespace packtrain {

PosixFile::~PosixFile() { ::close(descriptor_); }

FileInfo file_info(const struct stat& found) {
  FileInfo info;
  info.kind = S_ISREG(found.st_mode)   ? FileKind::file
              : S_ISDIR(found.st_mode) ? FileKind::folder
              : S_ISLNK(found.st_mode) ? FileKind::symlink
                                       : FileKind::other;
  info.size = static_cast<uint64_t>(found.st_size);
  info.mtime_ns = int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec;
  info.device = found.st_dev;
  info.inode = found.st_ino;
  info.mode = found.st_mode & 07777;
  return info;
}

Status read_fully(const PosixFile& file, uint64_t offset, MutableBytes into) {
  while (!into.empty()) {
    const ssize_t got = ::pread(file.descriptor(), into.data(), std::min(into.size(), kLargestPiece),
                                static_cast<off_t>(offset));
    if (got > 0) [[likely]] {
      offset += static_cast<uint64_t>(got);
      into = into.subspan(static_cast<size_t>(got));
    } else if (got == 0) {
      return ended_early(file, offset, into.size());
    } else if (errno != EINTR && errno != EAGAIN) {
      return read_failed(file, offset, errno);
    }
  }
  return {};
}

Status read_failed(const PosixFile& file, uint64_t offset, int error) {
  // No file is that long: the kernel says EINVAL to what is, for the caller, a place behind the end.
  if (offset > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) return ended_early(file, offset, 0);
  return status_from_errno(error, "cannot read").at(printable(file.path()) + " @ " + std::to_string(offset));
}

Status ended_early(const PosixFile& file, uint64_t offset, uint64_t wanted) {
  struct stat now;
  const uint64_t end =
      ::fstat(file.descriptor(), &now) == 0 ? static_cast<uint64_t>(now.st_size) : file.size();
  std::string message = "file ends at " + std::to_string(end) + ", but ";
  message += wanted > 0 ? std::to_string(wanted) + " more bytes were to be read here" : "a read starts here";
  if (end < file.size())
    message += "; it was " + std::to_string(file.size()) + " bytes long when it was opened";
  return Status(Code::corrupt, std::move(message))
      .at(printable(file.path()) + " @ " + std::to_string(offset));
}

namespace {

// What whoever named the path can do about it; empty where status_from_errno has said it, or nothing is
// known.
std::string_view next_step(int error) {
  switch (error) {
    case ENOENT:
      return "; check the name";
    case ENOTDIR:
      return ": a part of the path is a file; check the name";
    case EEXIST:
    case ENOTEMPTY:
      return "; choose another name, or remove what is there";
    case EISDIR:
      return "; name a file";
    case ENAMETOOLONG:
      return "; choose a shorter one";
    case ELOOP:
      return "; remove the circle of links";
    case EACCES:
    case EPERM:
      return "; ask its owner for access";
    case EROFS:
      return "; choose another place";
    case EIO:
    case ESTALE:
    case ETIMEDOUT:
      return ": the storage failed; try again, and tell whoever looks after it if that does not help";
    default:
      return "";
  }
}

}  // namespace

Status path_error(int error, std::string_view doing, std::string_view path) {
  const Status status = status_from_errno(error, doing);
  Code code = status.code();
  if (error == EEXIST || error == ENOTEMPTY || error == EISDIR || error == ENAMETOOLONG) code = Code::invalid;
  return Status(code, status.message() + std::string(next_step(error))).at(printable(path));
}

}  // namespace packtrain
