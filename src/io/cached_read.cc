#include "io/cached_read.h"

#include <sys/uio.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "io/mounts.h"
#include "io/posix_file.h"

namespace packtrain {

bool is_near(const File& file) {
  const auto* posix = dynamic_cast<const PosixFile*>(&file);
  struct statfs found;
  if (posix == nullptr || ::fstatfs(posix->descriptor(), &found) != 0) return false;
  const PlaceKind kind = filesystem_kind(static_cast<uint32_t>(found.f_type), "");
  return kind == PlaceKind::local || kind == PlaceKind::memory;
}

bool read_if_cached(const File& file, uint64_t offset, MutableBytes into) {
  const auto* posix = dynamic_cast<const PosixFile*>(&file);
  if (posix == nullptr) return false;
  // To the kernel an offset of -1 would mean the file's own position.
  if (offset > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) return false;
  while (!into.empty()) {
    const iovec piece{into.data(), std::min(into.size(), kLargestPiece)};
    const ssize_t got = ::preadv2(posix->descriptor(), &piece, 1, static_cast<off_t>(offset), RWF_NOWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;  // not all there, behind the end, or a filesystem that always waits
    offset += static_cast<uint64_t>(got);
    into = into.subspan(static_cast<size_t>(got));
  }
  return true;
}

}  // namespace packtrain
