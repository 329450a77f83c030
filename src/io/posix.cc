#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "base/words.h"
#include "io/backends.h"
#include "io/open_files.h"
#include "io/posix_file.h"
#include "io/posix_mapping.h"
#include "io/posix_paths.h"

namespace packtrain {
namespace {

// What the kernel says about rings, asked once.
const std::string& kernel_trouble() {
#if PACKTRAIN_HAVE_URING
  static const std::string trouble = uring_trouble();
#else
  static const std::string trouble = "this build has no liburing";
#endif
  return trouble;
}

std::string_view backend_from_environment() {
  const char* value = std::getenv("PACKTRAIN_IO");
  return value != nullptr ? value : "";
}

ReadBackend choose_backend(ReadBackend asked) {
  if (asked == ReadBackend::automatic && backend_from_environment() == "pool") asked = ReadBackend::pool;
  if (asked == ReadBackend::pool || !kernel_trouble().empty()) return ReadBackend::pool;
  return ReadBackend::io_uring;
}

// The real filesystem. Thread-safe; holds nothing open but what its Files and Reads hold.
class PosixStorage final : public Storage {
 public:
  explicit PosixStorage(const PosixOptions& options)
      : backend_(choose_backend(options.backend)), pool_(options.pool_threads) {}

  Result<std::unique_ptr<File>> open(std::string_view path) override {
    PACKTRAIN_ASSIGN(name, kernel_path(path));
    // O_NONBLOCK: a FIFO must not hold us until somebody writes to it.
    const int descriptor =
        open_descriptor([&] { return ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); });
    if (descriptor < 0) return path_error(errno, "cannot open", path);
    struct stat found;
    if (::fstat(descriptor, &found) != 0) {
      const int error = errno;
      ::close(descriptor);
      return path_error(error, "cannot look at", path);
    }
    const FileInfo info = file_info(found);
    if (info.kind != FileKind::file) {
      ::close(descriptor);
      return Status(Code::invalid, info.kind == FileKind::folder ? "is a folder, not a file; name a file"
                                                                 : "is no regular file; name one")
          .at(printable(path));
    }
    ::fcntl(descriptor, F_SETFL, 0);  // for io_uring, O_NONBLOCK would mean: only what is in memory
    return std::unique_ptr<File>(new PosixFile(descriptor, info, std::move(name)));
  }

  std::unique_ptr<Reads> reads(uint32_t depth) override {
#if PACKTRAIN_HAVE_URING
    if (backend_ == ReadBackend::io_uring) {
      if (auto reads = make_uring_reads(depth)) return reads;
    }
#endif
    return pool_.reads(depth);
  }

  Status read(const File& file, uint64_t offset, MutableBytes into) override {
    return read_fully(posix_file(file), offset, into);
  }

  Result<FileInfo> look_at(const File& file) override {
    struct stat found;
    if (::fstat(posix_file(file).descriptor(), &found) != 0)
      return path_error(errno, "cannot look at", posix_file(file).path());
    return file_info(found);
  }

  Result<std::unique_ptr<Mapping>> map(std::string_view path) override {
    PACKTRAIN_ASSIGN(file, open(path));
    if (auto mapping = map_if_local(posix_file(*file))) return mapping;
    return Storage::map(path);
  }

  Result<FileInfo> stat(std::string_view path, bool follow) override {
    PACKTRAIN_ASSIGN(name, kernel_path(path));
    struct stat found;
    if (::fstatat(AT_FDCWD, name.c_str(), &found, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0)
      return path_error(errno, "cannot look at", path);
    return file_info(found);
  }

  Status list(std::string_view folder, const std::function<bool(FolderEntry&&)>& each) override;

  Result<std::string> read_link(std::string_view path) override {
    PACKTRAIN_ASSIGN(name, kernel_path(path));
    std::string target(256, '\0');
    for (;;) {
      const ssize_t length = ::readlink(name.c_str(), target.data(), target.size());
      if (length < 0 && errno == EINVAL)
        return Status(Code::invalid, "is no symbolic link").at(printable(path));
      if (length < 0) return path_error(errno, "cannot read the link", path);
      if (static_cast<size_t>(length) < target.size()) {
        target.resize(static_cast<size_t>(length));
        return target;
      }
      target.resize(target.size() * 2);  // it may have been cut
    }
  }

  Result<std::unique_ptr<Writer>> create(std::string_view path, uint64_t size,
                                         const WriteOptions& options) override {
    return create_posix_writer(path, size, options);
  }

  Status make_folder(std::string_view path) override;

  Status rename(std::string_view from, std::string_view to) override {
    PACKTRAIN_ASSIGN(old_name, kernel_path(from));
    PACKTRAIN_ASSIGN(new_name, kernel_path(to));
    if (::rename(old_name.c_str(), new_name.c_str()) == 0) return {};
    const bool taken = errno == EEXIST || errno == ENOTEMPTY || errno == EISDIR;
    return path_error(errno, taken ? "cannot rename to it" : "cannot rename to " + printable(to),
                      taken ? to : from);
  }

  Status exchange(std::string_view one, std::string_view other) override {
    PACKTRAIN_ASSIGN(first, kernel_path(one));
    PACKTRAIN_ASSIGN(second, kernel_path(other));
    if (::renameat2(AT_FDCWD, first.c_str(), AT_FDCWD, second.c_str(), RENAME_EXCHANGE) == 0) return {};
    if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) return Storage::exchange(one, other);
    return path_error(errno, "cannot change places with " + printable(other), one);
  }

  Status link(std::string_view from, std::string_view to) override {
    PACKTRAIN_ASSIGN(old_name, kernel_path(from));
    PACKTRAIN_ASSIGN(new_name, kernel_path(to));
    if (::link(old_name.c_str(), new_name.c_str()) == 0) return {};
    return path_error(errno, "cannot make it a second name of " + printable(from), to);
  }

  Status remove(std::string_view path) override {
    PACKTRAIN_ASSIGN(name, kernel_path(path));
    if (::unlink(name.c_str()) == 0) return {};
    // A folder answers EISDIR, or EPERM where the filesystem keeps to POSIX; a file may say EPERM too.
    const int error = errno;
    if (error == EISDIR || error == EPERM) {
      if (::rmdir(name.c_str()) == 0) return {};
      if (errno != ENOTDIR) return path_error(errno, "cannot remove", path);
    }
    return path_error(error, "cannot remove", path);
  }

  Status sync_folder(std::string_view path) override {
    PACKTRAIN_ASSIGN(name, kernel_path(path));
    if (int error = sync_folder_of_names(name.empty() ? "." : name.c_str()); error != 0)
      return path_error(error, "cannot write the folder's names to disk", path);
    return {};
  }

 private:
  const ReadBackend backend_;
  ReadPoolOwner pool_;
};

FileKind kind_of_entry(unsigned char type) {
  return type == DT_REG   ? FileKind::file
         : type == DT_DIR ? FileKind::folder
         : type == DT_LNK ? FileKind::symlink
                          : FileKind::other;
}

Status PosixStorage::list(std::string_view folder, const std::function<bool(FolderEntry&&)>& each) {
  PACKTRAIN_ASSIGN(name, kernel_path(folder));
  const int descriptor = open_descriptor(
      [&] { return ::open(name.empty() ? "." : name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0) return path_error(errno, "cannot list", folder);
  const std::unique_ptr<DIR, int (*)(DIR*)> open_folder(::fdopendir(descriptor), ::closedir);
  if (open_folder == nullptr) {
    const int error = errno;
    ::close(descriptor);
    return path_error(error, "cannot list", folder);
  }
  for (;;) {
    errno = 0;
    const dirent* found = ::readdir(open_folder.get());
    if (found == nullptr) return errno == 0 ? Status() : path_error(errno, "cannot list", folder);
    FolderEntry entry{found->d_name, kind_of_entry(found->d_type)};
    if (entry.name == "." || entry.name == "..") continue;
    if (found->d_type == DT_UNKNOWN) {
      struct stat info;
      if (::fstatat(::dirfd(open_folder.get()), found->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) continue;  // gone since it was listed
        return path_error(errno, "cannot look at", std::string(folder) + "/" + entry.name);
      }
      entry.kind = file_info(info).kind;
    }
    if (!each(std::move(entry))) return {};
  }
}

Status PosixStorage::make_folder(std::string_view path) {
  PACKTRAIN_ASSIGN(name, kernel_path(path));
  if (name.empty() || ::mkdir(name.c_str(), 0777) == 0) return {};
  if (errno == ENOENT) {
    const std::string parent = folder_of(name);
    if (parent == name) return path_error(ENOENT, "cannot make the folder", path);
    PACKTRAIN_TRY(make_folder(parent));
    if (::mkdir(name.c_str(), 0777) == 0) return {};
  }
  // Some filesystems answer EROFS or EACCES for a folder that is there.
  const int error = errno;
  struct stat found;
  if (::stat(name.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) return {};
  return path_error(error, "cannot make the folder", path);
}

}  // namespace

std::unique_ptr<Storage> make_posix_storage(const PosixOptions& options) {
  return std::make_unique<PosixStorage>(options);
}

std::string io_uring_trouble() {
  if (kernel_trouble().empty() && backend_from_environment() == "pool") return "PACKTRAIN_IO=pool is set";
  return kernel_trouble();
}

Storage& posix_storage() {
  // Lives as long as the process: threads may still read through it while static objects are destroyed.
  static Storage* const storage = make_posix_storage().release();
  return *storage;
}

}  // namespace packtrain
