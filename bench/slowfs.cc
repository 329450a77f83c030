// slowfs: a pass-through filesystem that behaves like a far, busy or failing one.
//
//   slowfs SOURCE MOUNT [--metadata-ms N] [--read-ms N] [--rate BYTES] [--no-space-after BYTES]
//                       [--fail-every N] [--flip-every N] [--no-allocate]
//
// Shows the folder SOURCE at MOUNT until SIGTERM or SIGINT. Knobs that are not given are off.
//   --metadata-ms N         each metadata call takes N milliseconds
//   --read-ms N             each read request takes N milliseconds
//   --rate BYTES            at most that many bytes a second, read and written together ("200M")
//   --no-space-after BYTES  once that many bytes were written, writing fails with ENOSPC
//   --fail-every N          each Nth file opened for reading gives EIO at every read (after one failed
//                           read the kernel asks again, and nobody would learn of it)
//   --flip-every N          each Nth read request has one bit flipped
//   --no-allocate           fallocate() is not supported, so that lack of room shows only while writing
//
// A metadata call is a lookup or getattr of what is no folder, a failed lookup, open, create, readdir,
// readlink, and every change of names or attributes. Folders' attributes are free: clients of parallel
// filesystems keep those under a lock. Names are never kept by the kernel, attributes for a tenth of a
// second, so that a stat costs one call and an open two (the lookup in front of it). Pages are dropped when a
// file is opened: each pass over the files reads them again.
//
// MOUNT/.slowfs, which no listing shows, holds the counters as `name=value` lines.
#include <dirent.h>
#include <fcntl.h>
#include <fuse.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/words.h"

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr unsigned kThreads = 256;  // calls sleep, so far more of them run at once than there are cores
constexpr double kAttributeSeconds = 0.1;
constexpr std::string_view kCountersPath = "/.slowfs";
constexpr uint64_t kCountersHandle = ~uint64_t{0};
constexpr uint64_t kFailing = uint64_t{1} << 32;  // set in the handle of a file whose reads fail

struct Knobs {
  double metadata_ms = 0, read_ms = 0;
  uint64_t bytes_per_second = 0, no_space_after = 0, fail_every = 0, flip_every = 0;
  bool allocate = true;
};

struct Counters {
  std::atomic<uint64_t> metadata_calls = 0, listings = 0, opens = 0, reads = 0, bytes_read = 0, writes = 0,
                        bytes_written = 0;

  std::string text() const {
    return "metadata_calls=" + std::to_string(metadata_calls) + "\nlistings=" + std::to_string(listings) +
           "\nopens=" + std::to_string(opens) + "\nreads=" + std::to_string(reads) +
           "\nbytes_read=" + std::to_string(bytes_read) + "\nwrites=" + std::to_string(writes) +
           "\nbytes_written=" + std::to_string(bytes_written) + "\n";
  }
};

// Gives out the bytes of each second in the order of asking. Thread-safe.
class RateLimit {
 public:
  explicit RateLimit(uint64_t bytes_per_second) : rate_(bytes_per_second) {}
  void take(size_t bytes) {
    if (rate_ == 0) return;
    Clock::time_point until;
    {
      std::lock_guard lock(mutex_);
      free_at_ = std::max(free_at_, Clock::now()) +
                 std::chrono::duration_cast<Clock::duration>(
                     Seconds(static_cast<double>(bytes) / static_cast<double>(rate_)));
      until = free_at_;
    }
    std::this_thread::sleep_until(until);
  }

 private:
  const uint64_t rate_;
  std::mutex mutex_;
  Clock::time_point free_at_;
};

// The mounted filesystem. Thread-safe: set before the first call, but for the counters and the limit.
struct SlowFs {
  SlowFs(const Knobs& wanted, int source_folder)
      : knobs(wanted), source(source_folder), limit(wanted.bytes_per_second) {}

  void metadata_call() {
    counters.metadata_calls++;
    sleep_ms(knobs.metadata_ms);
  }
  static void sleep_ms(double milliseconds) {
    if (milliseconds > 0) std::this_thread::sleep_for(Seconds(milliseconds / 1000));
  }

  const Knobs knobs;
  const int source;
  Counters counters;
  RateLimit limit;
};

SlowFs& fs() { return *static_cast<SlowFs*>(fuse_get_context()->private_data); }

// FUSE's paths start at the mount; ours at the open source folder.
const char* below_source(const char* path) { return path[1] ? path + 1 : "."; }
int outcome(int result) { return result < 0 ? -errno : 0; }
int handle_of(const fuse_file_info* info) { return static_cast<int>(info->fh & ~kFailing); }
bool is_counters(const fuse_file_info* info) { return info && info->fh == kCountersHandle; }

// Files belong to whom they would belong to without FUSE between; only root may arrange that.
void give_to_caller(const char* path) {
  const fuse_context* caller = fuse_get_context();
  if (fchownat(fs().source, below_source(path), caller->uid, caller->gid, AT_SYMLINK_NOFOLLOW) != 0) return;
}

void* on_init(fuse_conn_info* connection, fuse_config* config) {
  config->use_ino = 1;
  config->entry_timeout = config->negative_timeout = 0;
  config->attr_timeout = kAttributeSeconds;
  connection->max_background = connection->congestion_threshold = kThreads;
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_READDIRPLUS);  // it would bring attributes for nothing
  connection->want |= static_cast<unsigned>(FUSE_CAP_PARALLEL_DIROPS);
  return fuse_get_context()->private_data;
}

int on_getattr(const char* path, struct stat* out, fuse_file_info* info) {
  if (path && path == kCountersPath) {
    *out = {};
    out->st_mode = S_IFREG | 0444;
    out->st_nlink = 1;
    return 0;
  }
  const int result =
      info ? fstat(handle_of(info), out) : fstatat(fs().source, below_source(path), out, AT_SYMLINK_NOFOLLOW);
  const int error = errno;
  if (result != 0 || !S_ISDIR(out->st_mode)) fs().metadata_call();
  return result == 0 ? 0 : -error;
}

int on_readlink(const char* path, char* out, size_t size) {
  fs().metadata_call();
  const ssize_t length = readlinkat(fs().source, below_source(path), out, size - 1);
  if (length < 0) return -errno;
  out[length] = 0;
  return 0;
}

int on_readdir(const char* path, void* out, fuse_fill_dir_t fill, off_t, fuse_file_info*,
               fuse_readdir_flags) {
  fs().metadata_call();
  fs().counters.listings++;
  const int folder = openat(fs().source, below_source(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return -errno;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fdopendir(folder), closedir);
  while (const dirent* entry = readdir(listing.get())) {
    struct stat known = {};
    known.st_ino = entry->d_ino;
    known.st_mode = DTTOIF(entry->d_type);
    if (fill(out, entry->d_name, &known, 0, fuse_fill_dir_flags{}) != 0) break;
  }
  return 0;
}

int open_below(const char* path, fuse_file_info* info, int more_flags, mode_t mode) {
  fs().metadata_call();
  // The kernel has done the appending already, and its buffers are not aligned for direct access.
  const int flags = (info->flags & ~(O_APPEND | O_DIRECT)) | O_CLOEXEC | more_flags;
  const int handle = openat(fs().source, below_source(path), flags, mode);
  if (handle < 0) return -errno;
  info->fh = static_cast<uint64_t>(handle);
  return 0;
}

int on_open(const char* path, fuse_file_info* info) {
  if (path == kCountersPath) {
    info->fh = kCountersHandle;
    info->direct_io = 1;
    return 0;
  }
  const int result = open_below(path, info, 0, 0);
  if (result != 0 || (info->flags & O_ACCMODE) != O_RDONLY) return result;
  const uint64_t number = ++fs().counters.opens, every = fs().knobs.fail_every;
  if (every && number % every == 0) info->fh |= kFailing;
  return 0;
}

int on_create(const char* path, mode_t mode, fuse_file_info* info) {
  const int result = open_below(path, info, O_CREAT, mode);
  if (result == 0) give_to_caller(path);
  return result;
}

int read_counters(char* out, size_t size, off_t offset) {
  const std::string text = fs().counters.text();
  if (static_cast<size_t>(offset) >= text.size()) return 0;
  const std::string_view rest = std::string_view(text).substr(static_cast<size_t>(offset), size);
  memcpy(out, rest.data(), rest.size());
  return static_cast<int>(rest.size());
}

int on_read(const char*, char* out, size_t size, off_t offset, fuse_file_info* info) {
  if (is_counters(info)) return read_counters(out, size, offset);
  const Knobs& knobs = fs().knobs;
  Counters& counters = fs().counters;
  SlowFs::sleep_ms(knobs.read_ms);
  const uint64_t number = ++counters.reads;
  if (info->fh & kFailing) return -EIO;
  const ssize_t got = pread(handle_of(info), out, size, offset);
  if (got < 0) return -errno;
  fs().limit.take(static_cast<size_t>(got));
  counters.bytes_read += static_cast<uint64_t>(got);
  if (knobs.flip_every && number % knobs.flip_every == 0 && got > 0) out[got / 2] ^= 1;
  return static_cast<int>(got);
}

int on_write(const char*, const char* data, size_t size, off_t offset, fuse_file_info* info) {
  Counters& counters = fs().counters;
  const uint64_t room = fs().knobs.no_space_after;
  if (room && counters.bytes_written + size > room) return -ENOSPC;
  fs().limit.take(size);
  const ssize_t put = pwrite(handle_of(info), data, size, offset);
  if (put < 0) return -errno;
  counters.writes++;
  counters.bytes_written += static_cast<uint64_t>(put);
  return static_cast<int>(put);
}

int on_release(const char*, fuse_file_info* info) {
  if (!is_counters(info)) close(handle_of(info));
  return 0;
}

int on_fsync(const char*, int data_only, fuse_file_info* info) {
  return outcome(data_only ? fdatasync(handle_of(info)) : fsync(handle_of(info)));
}

int on_fallocate(const char*, int mode, off_t offset, off_t size, fuse_file_info* info) {
  if (!fs().knobs.allocate) return -EOPNOTSUPP;
  return outcome(fallocate(handle_of(info), mode, offset, size));
}

int on_statfs(const char*, struct statvfs* out) { return outcome(fstatvfs(fs().source, out)); }

int on_unlink(const char* path) {
  fs().metadata_call();
  return outcome(unlinkat(fs().source, below_source(path), 0));
}

int on_rmdir(const char* path) {
  fs().metadata_call();
  return outcome(unlinkat(fs().source, below_source(path), AT_REMOVEDIR));
}

int on_mkdir(const char* path, mode_t mode) {
  fs().metadata_call();
  if (mkdirat(fs().source, below_source(path), mode) != 0) return -errno;
  give_to_caller(path);
  return 0;
}

int on_symlink(const char* target, const char* path) {
  fs().metadata_call();
  if (symlinkat(target, fs().source, below_source(path)) != 0) return -errno;
  give_to_caller(path);
  return 0;
}

int on_link(const char* from, const char* to) {
  fs().metadata_call();
  return outcome(linkat(fs().source, below_source(from), fs().source, below_source(to), 0));
}

int on_rename(const char* from, const char* to, unsigned flags) {
  fs().metadata_call();
  return outcome(renameat2(fs().source, below_source(from), fs().source, below_source(to), flags));
}

int on_chmod(const char* path, mode_t mode, fuse_file_info* info) {
  fs().metadata_call();
  return outcome(info ? fchmod(handle_of(info), mode) : fchmodat(fs().source, below_source(path), mode, 0));
}

int on_chown(const char* path, uid_t user, gid_t group, fuse_file_info* info) {
  fs().metadata_call();
  return outcome(info ? fchown(handle_of(info), user, group)
                      : fchownat(fs().source, below_source(path), user, group, AT_SYMLINK_NOFOLLOW));
}

int on_truncate(const char* path, off_t size, fuse_file_info* info) {
  fs().metadata_call();
  if (info) return outcome(ftruncate(handle_of(info), size));
  const int handle = openat(fs().source, below_source(path), O_WRONLY | O_CLOEXEC);
  if (handle < 0) return -errno;
  const int result = outcome(ftruncate(handle, size));
  close(handle);
  return result;
}

int on_utimens(const char* path, const timespec times[2], fuse_file_info* info) {
  fs().metadata_call();
  return outcome(info ? futimens(handle_of(info), times)
                      : utimensat(fs().source, below_source(path), times, AT_SYMLINK_NOFOLLOW));
}

fuse_operations operations() {
  fuse_operations table = {};
  table.init = on_init;
  table.getattr = on_getattr;
  table.readlink = on_readlink;
  table.readdir = on_readdir;
  table.open = on_open;
  table.create = on_create;
  table.read = on_read;
  table.write = on_write;
  table.release = on_release;
  table.fsync = on_fsync;
  table.fallocate = on_fallocate;
  table.statfs = on_statfs;
  table.unlink = on_unlink;
  table.rmdir = on_rmdir;
  table.mkdir = on_mkdir;
  table.symlink = on_symlink;
  table.link = on_link;
  table.rename = on_rename;
  table.chmod = on_chmod;
  table.chown = on_chown;
  table.truncate = on_truncate;
  table.utimens = on_utimens;
  return table;
}

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr,
               "slowfs: %s\nusage: slowfs SOURCE MOUNT [--metadata-ms N] [--read-ms N] [--rate BYTES]\n"
               "       [--no-space-after BYTES] [--fail-every N] [--flip-every N] [--no-allocate]\n",
               why.c_str());
  std::exit(2);
}

Knobs parse_knobs(int argc, char** argv) {
  Knobs knobs;
  for (int i = 3; i < argc; i++) {
    const std::string_view name = argv[i];
    if (name == "--no-allocate") {
      knobs.allocate = false;
      continue;
    }
    if (i + 1 == argc) refuse(std::string(name) + " needs a value");
    const char* text = argv[++i];
    char* end = nullptr;
    const double number = std::strtod(text, &end);
    const bool is_number = end != text && *end == 0 && number >= 0;
    const auto bytes = packtrain::parse_bytes(text);
    if (name == "--metadata-ms" && is_number) {
      knobs.metadata_ms = number;
    } else if (name == "--read-ms" && is_number) {
      knobs.read_ms = number;
    } else if (name == "--rate" && bytes.ok()) {
      knobs.bytes_per_second = *bytes;
    } else if (name == "--no-space-after" && bytes.ok()) {
      knobs.no_space_after = *bytes;
    } else if (name == "--fail-every" && is_number) {
      knobs.fail_every = static_cast<uint64_t>(number);
    } else if (name == "--flip-every" && is_number) {
      knobs.flip_every = static_cast<uint64_t>(number);
    } else {
      refuse("cannot understand " + std::string(name) + " " + text);
    }
  }
  return knobs;
}

// libfuse before 3.17 does not pass on that lookups in one folder may run side by side, and the kernel then
// sends one after another: no client of a parallel filesystem does that. So the word is put into the reply to
// its first request. Where libfuse is older than 3.14 and has no place to do it, stats in one folder take
// turns.
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 14)
ssize_t reply(int device, iovec* parts, int count, void*) {
  static std::atomic<bool> is_first = true;
  if (is_first.exchange(false) && count == 2 && parts[1].iov_len >= sizeof(fuse_init_out))
    static_cast<fuse_init_out*>(parts[1].iov_base)->flags |= FUSE_PARALLEL_DIROPS;
  return writev(device, parts, count);
}

ssize_t receive(int device, void* into, size_t size, void*) { return read(device, into, size); }

bool allow_parallel_lookups(fuse_session* session) {
  fuse_custom_io calls = {};
  calls.writev = reply;
  calls.read = receive;
  return fuse_session_custom_io(session, &calls, fuse_session_fd(session)) == 0;
}
#else
bool allow_parallel_lookups(fuse_session*) { return true; }
#endif

int serve(fuse* session) {
#if FUSE_USE_VERSION >= 312
  fuse_loop_config* config = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(config, kThreads);
  fuse_loop_cfg_set_idle_threads(config, kThreads);
  const int result = fuse_loop_mt(session, config);
  fuse_loop_cfg_destroy(config);
  return result;
#else  // starts as many threads as there are calls
  fuse_loop_config config = {};
  config.max_idle_threads = kThreads;
  return fuse_loop_mt(session, &config);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) refuse("SOURCE and MOUNT are needed");
  const Knobs knobs = parse_knobs(argc, argv);
  const int source = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (source < 0) refuse(std::string(argv[1]) + ": " + std::strerror(errno));
  umask(0);
  SlowFs mounted(knobs, source);

  // Other users may look in where the one who mounts is root; permissions are checked by the kernel.
  std::string options = "default_permissions,fsname=slowfs,subtype=slowfs";
  if (geteuid() == 0) options += ",allow_other";
  char* arguments[] = {argv[0], const_cast<char*>("-o"), options.data()};
  fuse_args args = FUSE_ARGS_INIT(3, arguments);
  const fuse_operations table = operations();
  fuse* session = fuse_new(&args, &table, sizeof(table), &mounted);
  if (!session || fuse_mount(session, argv[2]) != 0 || !allow_parallel_lookups(fuse_get_session(session))) {
    std::fprintf(stderr, "slowfs: cannot mount at %s\n", argv[2]);
    return 1;
  }
  fuse_set_signal_handlers(fuse_get_session(session));
  const int result = serve(session);
  fuse_unmount(session);
  fuse_destroy(session);
  fuse_opt_free_args(&args);
  close(source);
  return result < 0 ? 1 : 0;  // a signal that ended it is no failure
}
