#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/words.h"
#include "io/open_files.h"
#include "io/posix_file.h"
#include "io/posix_paths.h"

namespace packtrain {
namespace {

// Allocating ahead makes a lack of room show before byte one and keeps a file in few extents; writing 256 MiB
// to ext4 became 20 % faster by it. Small files are left to delayed allocation: their first write is
// nearly all of them, and reserves.
constexpr uint64_t kAllocateFrom = uint64_t{1} << 20;

// A durable writer hands its pages to the disk every so many bytes, so that the disk works while the rest is
// still being made: 256 MiB with their fsync took 0.6 times as long on ext4 as with all of it left to the
// fsync.
constexpr uint64_t kWritebackBytes = uint64_t{8} << 20;
// What is so far behind has reached the disk, and nobody writes to its last page any more.
constexpr uint64_t kBehindBytes = uint64_t{32} << 20;

Status no_room(uint64_t size, uint64_t free, std::string_view part) {
  return Status(Code::no_room, "needs " + bytes_in_words(size) + ", but only " + bytes_in_words(free) +
                                   " are free there; free some or choose another target")
      .at(printable(part));
}

// tmpfs clears every page that it allocates, by one thread: half the time of packing photographs into memory.
bool allocates_by_clearing(int descriptor) {
  struct statfs facts;
  return ::fstatfs(descriptor, &facts) == 0 && facts.f_type == TMPFS_MAGIC;
}

// Sets the length, with its blocks allocated where the filesystem can do so cheaply. Elsewhere the room is
// looked up: another writer may still take it, but most lacks show now.
Status allocate(int descriptor, uint64_t size, std::string_view part) {
  struct statvfs room;
  int error = EOPNOTSUPP;
  if (!allocates_by_clearing(descriptor)) {
    do {
      error = ::fallocate(descriptor, 0, 0, static_cast<off_t>(size)) == 0 ? 0 : errno;
    } while (error == EINTR);
  }
  const bool cannot = error == EOPNOTSUPP || error == ENOSYS || error == EINVAL;
  if (error == 0) return {};
  const bool room_known = ::fstatvfs(descriptor, &room) == 0 && room.f_blocks > 0;
  const uint64_t free = room_known ? uint64_t{room.f_bavail} * room.f_frsize : 0;
  if (!cannot) {
    if (error == ENOSPC && room_known && free < size) return no_room(size, free, part);
    return path_error(error, "cannot allocate " + bytes_in_words(size), part);
  }
  struct stat now;
  const uint64_t held = ::fstat(descriptor, &now) == 0 ? uint64_t(now.st_blocks) * 512 : 0;
  if (room_known && free + held < size) return no_room(size, free + held, part);
  if (::ftruncate(descriptor, static_cast<off_t>(size)) != 0)
    return path_error(errno, "cannot set the length", part);
  return {};
}

// A file under its temporary name. Thread-safe: writes go by position and share only counters; resize(),
// commit() and discard() come from one thread, when no write is running.
class PosixWriter final : public Writer {
 public:
  PosixWriter(int descriptor, std::string path, std::string part, uint64_t size, uint64_t end,
              const WriteOptions& options)
      : descriptor_(descriptor),
        path_(std::move(path)),
        part_(std::move(part)),
        size_(size),
        durable_(options.durable),
        replace_(options.replace),
        stays_(options.stay_in_memory || !options.durable),
        in_new_folder_(options.in_new_folder),
        end_(end) {}

  ~PosixWriter() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  PosixWriter(const PosixWriter&) = delete;
  PosixWriter& operator=(const PosixWriter&) = delete;

  Status write_at(uint64_t offset, Bytes data) override {
    if (descriptor_ < 0) return Status(Code::invalid, "a write after commit or discard").at(printable(path_));
    if (offset > size_ || data.size() > size_ - offset)
      return Status(Code::invalid, "a write of " + std::to_string(data.size()) + " bytes at " +
                                       std::to_string(offset) + " leaves the " + std::to_string(size_) +
                                       " bytes that the file was created with")
          .at(printable(path_));
    const uint64_t end = offset + data.size(), bytes = data.size();
    while (!data.empty()) {
      const ssize_t put = ::pwrite(descriptor_, data.data(), std::min(data.size(), kLargestPiece),
                                   static_cast<off_t>(offset));
      if (put < 0) {
        if (errno == EINTR || errno == EAGAIN) continue;
        return path_error(errno, "cannot write", part_);
      }
      if (put == 0) return path_error(EIO, "cannot write", part_);
      offset += static_cast<uint64_t>(put);
      data = data.subspan(static_cast<size_t>(put));
    }
    uint64_t seen = end_.load(std::memory_order_relaxed);
    while (seen < end && !end_.compare_exchange_weak(seen, end, std::memory_order_relaxed)) {
    }
    if (durable_) start_writeback(bytes);
    return {};
  }

  Status resize(uint64_t size) override {
    if (descriptor_ < 0)
      return Status(Code::invalid, "a change of size after commit or discard").at(printable(path_));
    if (size < end_.load()) {
      if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0)
        return path_error(errno, "cannot set the length", part_);
      end_ = size;
    } else if (size > size_ && size >= kAllocateFrom) {
      PACKTRAIN_TRY(allocate(descriptor_, size, part_));
      end_ = size;
    }
    size_ = size;
    return {};
  }

  Status commit() override {
    if (descriptor_ < 0)
      return Status(Code::invalid, "a second commit, or one after discard").at(printable(path_));
    if (end_.load() < size_ && ::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0)
      return path_error(errno, "cannot set the length", part_);
    if (durable_ && ::fsync(descriptor_) != 0) return path_error(errno, "cannot write to disk", part_);
    if (!stays_) (void)::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
    // Some network filesystems tell only here that a write failed.
    const int closed = ::close(std::exchange(descriptor_, -1));
    if (closed != 0 && errno != EINTR) return path_error(errno, "cannot close", part_);
    if (in_new_folder_) {
      committed_ = true;
      return {};
    }
    if (int error = rename_file(part_.c_str(), path_.c_str(), replace_); error != 0)
      return path_error(error, "cannot give the finished file its name", path_);
    committed_ = true;
    if (!durable_) return {};
    if (int error = sync_folder_of_names(folder_of(path_).c_str()); error != 0) {
      // Durable and visible, or neither; what was replaced, however, cannot come back.
      if (!replace_) committed_ = rename_file(path_.c_str(), part_.c_str(), true) != 0;
      return path_error(error, "cannot write the folder's names to disk", folder_of(path_));
    }
    return {};
  }

  void discard() override {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    if (!committed_) ::unlink(part_.c_str());
  }

 private:
  void start_writeback(uint64_t bytes) {
    const uint64_t before = written_.fetch_add(bytes, std::memory_order_relaxed);
    if (before / kWritebackBytes == (before + bytes) / kWritebackBytes) return;
    ::sync_file_range(descriptor_, 0, 0, SYNC_FILE_RANGE_WRITE);  // advice: its failure is fsync's to tell
    // Bytes are written front to back, about. Where they are not, a page is kept, or read again: no harm.
    if (!stays_ && before > kBehindBytes)
      (void)::posix_fadvise(descriptor_, 0, static_cast<off_t>(before - kBehindBytes), POSIX_FADV_DONTNEED);
  }

  int descriptor_;  // -1 after commit() or discard()
  const std::string path_, part_;
  uint64_t size_;  // changed by resize() alone
  const bool durable_, replace_, stays_, in_new_folder_;
  bool committed_ = false;
  std::atomic<uint64_t> end_;  // of the bytes written, or of the file where its length was set
  std::atomic<uint64_t> written_{0};
};

}  // namespace

Result<std::unique_ptr<Writer>> create_posix_writer(std::string_view path, uint64_t size,
                                                    const WriteOptions& options) {
  PACKTRAIN_ASSIGN(target, kernel_path(path));
  PACKTRAIN_ASSIGN(
      part, kernel_path(options.in_new_folder ? std::string(path) : temporary_path(path, options.token)));
  // Never through a link that somebody else put there: a part is a new file, or one of ours.
  int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  if (!options.resume) flags |= O_EXCL;
  const auto open_part = [&] { return ::open(part.c_str(), flags, 0666); };
  int descriptor = open_descriptor(open_part);
  if (descriptor < 0 && errno == EEXIST) {  // left by an earlier attempt
    if (::unlink(part.c_str()) != 0 && errno != ENOENT)
      return path_error(errno, "cannot remove the old part", part);
    descriptor = open_descriptor(open_part);
  }
  if (descriptor < 0) return path_error(errno, "cannot create", part);

  uint64_t end = 0;
  Status status;
  if (options.resume) {  // a part of another length is cut, or grows by zeros
    struct stat found;
    if (::fstat(descriptor, &found) != 0) {
      status = path_error(errno, "cannot look at the part", part);
    } else if (!S_ISREG(found.st_mode)) {
      status = Status(Code::invalid, "is no regular file").at(printable(part));
    } else if (static_cast<uint64_t>(found.st_size) > size &&
               ::ftruncate(descriptor, static_cast<off_t>(size)) != 0) {
      status = path_error(errno, "cannot cut the part", part);
    } else {
      end = std::min(static_cast<uint64_t>(found.st_size), size);
    }
  }
  if (status.ok() && size >= kAllocateFrom) {
    status = allocate(descriptor, size, part);
    end = size;
  }
  auto writer =
      std::make_unique<PosixWriter>(descriptor, std::move(target), std::move(part), size, end, options);
  if (!status.ok()) {
    if (!options.resume) writer->discard();
    return status;
  }
  return std::unique_ptr<Writer>(std::move(writer));
}

}  // namespace packtrain
