#include "io/posix_paths.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/hash.h"
#include "base/words.h"
#include "io/open_files.h"

namespace packtrain {

Result<std::string> kernel_path(std::string_view path) {
  if (path.find('\0') != std::string_view::npos)
    return Status(Code::invalid, "a path cannot hold a byte 0").at(printable(path));
  return std::string(path);
}

std::string folder_of(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

std::string temporary_path(std::string_view path, std::string_view token) {
  constexpr size_t kLongestLeaf = 255;  // NAME_MAX of every filesystem in use
  constexpr size_t kHashBytes = 17;     // '-' and 16 digits
  std::string suffix = ".tmp-";
  suffix.append(token);
  const size_t slash = path.rfind('/');
  const std::string_view leaf = slash == std::string_view::npos ? path : path.substr(slash + 1);
  if (leaf.size() + suffix.size() <= kLongestLeaf || leaf.size() > kLongestLeaf ||
      suffix.size() + kHashBytes >= kLongestLeaf)
    return std::string(path) + suffix;
  const size_t kept = kLongestLeaf - suffix.size() - kHashBytes;
  std::string name(path.substr(0, path.size() - leaf.size() + kept));
  return name + "-" + hex64(xxh64(as_bytes(leaf))) + suffix;
}

namespace {

// Whether `to` is a second name of `from`: a link whose answer got lost on the network says EEXIST, yet is
// there.
bool same_file(const char* from, const char* to) {
  struct stat first, second;
  return ::lstat(from, &first) == 0 && ::lstat(to, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

int rename_file(const char* from, const char* to, bool replace) {
  if (replace) return ::rename(from, to) == 0 ? 0 : errno;
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) return errno;
  // NFS and others have no such rename: link() refuses an existing name as well.
  if (::link(from, to) == 0 || (errno == EEXIST && same_file(from, to)))
    return ::unlink(from) == 0 ? 0 : errno;
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK) return errno;
  // No hard links either: all that is left is to look first.
  struct stat found;
  if (::lstat(to, &found) == 0) return EEXIST;
  return ::rename(from, to) == 0 ? 0 : errno;
}

int sync_folder_of_names(const char* folder) {
  const int descriptor = open_descriptor([&] { return ::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0) return errno;
  int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  if (error == EINVAL || error == EOPNOTSUPP || error == ENOSYS || error == EROFS) error = 0;
  return error;
}

}  // namespace packtrain
