// Storages for tests: one in memory, and wrappers that count, slow down or fail the calls to another Storage.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "packtrain/storage.h"

namespace packtrain {

// What a wrapper can tell apart. `read` is one request, blocking or in flight.
enum class Call : uint8_t {
  open,
  read,
  stat,
  list,
  read_link,
  create,
  write,
  commit,
  make_folder,
  rename,
  link,
  remove,
  sync_folder,
};
inline constexpr size_t kCallKinds = 13;

// Forwards everything to another Storage, which must outlive it, through hooks that derived classes override.
// Thread-safe if the hooks are. Files and Reads of a wrapper belong to it.
class StorageWrapper : public Storage {
 public:
  explicit StorageWrapper(Storage& inner) : inner_(inner) {}

  Result<std::unique_ptr<File>> open(std::string_view path) override;
  std::unique_ptr<Reads> reads(uint32_t depth) override;
  Status read(const File& file, uint64_t offset, MutableBytes into) override;
  Result<FileInfo> look_at(const File& file) override;
  Result<FileInfo> stat(std::string_view path, bool follow = true) override;
  Status list(std::string_view folder, const std::function<bool(FolderEntry&&)>& each) override;
  Result<std::string> read_link(std::string_view path) override;
  Result<std::unique_ptr<Writer>> create(std::string_view path, uint64_t size,
                                         const WriteOptions& options = {}) override;
  Status make_folder(std::string_view path) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status exchange(std::string_view one, std::string_view other) override;  // to the hooks, a rename
  Status link(std::string_view from, std::string_view to) override;
  Status remove(std::string_view path) override;
  Status sync_folder(std::string_view path) override;

 protected:
  using Clock = std::chrono::steady_clock;

  // Before a call goes on; a failure is its outcome. `bytes`: of a read or write. Of rename and link, `path`
  // is the new name.
  virtual Status before(Call, std::string_view /*path*/, uint64_t /*bytes*/) { return {}; }
  virtual Status before_read(std::string_view path, uint64_t /*offset*/, uint64_t bytes) {
    return before(Call::read, path, bytes);
  }
  // After a read that went well; may change its bytes or fail it.
  virtual Status after_read(std::string_view /*path*/, uint64_t /*offset*/, MutableBytes) { return {}; }
  // When a read of so many bytes that starts now may be finished.
  virtual Clock::time_point ready_at(uint64_t /*bytes*/) { return Clock::time_point::min(); }
  // What open and stat tell of a file.
  virtual FileInfo seen(FileInfo info, std::string_view /*path*/) { return info; }

 private:
  class WrappedFile;
  class WrappedReads;
  class WrappedWriter;

  Storage& inner_;
};

// Counts calls and bytes. Thread-safe.
class CountingStorage : public StorageWrapper {
 public:
  using StorageWrapper::StorageWrapper;

  uint64_t calls(Call call) const { return calls_[static_cast<size_t>(call)].load(); }
  uint64_t opens() const { return calls(Call::open); }
  uint64_t reads_done() const { return calls(Call::read); }
  uint64_t stats() const { return calls(Call::stat); }
  uint64_t lists() const { return calls(Call::list); }
  uint64_t writes() const { return calls(Call::write); }
  uint64_t metadata_calls() const;  // all but read, write and commit
  uint64_t bytes_read() const { return bytes_read_.load(); }
  uint64_t bytes_written() const { return bytes_written_.load(); }
  void reset();

 protected:
  Status before(Call call, std::string_view path, uint64_t bytes) override;

 private:
  std::array<std::atomic<uint64_t>, kCallKinds> calls_{};
  std::atomic<uint64_t> bytes_read_{0}, bytes_written_{0};
};

struct Throttle {
  std::chrono::microseconds per_metadata_call{0};  // all but read, write and commit
  std::chrono::microseconds per_read{0};           // latency: reads in flight share it
  uint64_t bytes_per_second = 0;                   // of reads and writes together; 0: no cap
};

// Answers as late as a slow filesystem would. Thread-safe.
class ThrottledStorage : public StorageWrapper {
 public:
  ThrottledStorage(Storage& inner, const Throttle& throttle) : StorageWrapper(inner), throttle_(throttle) {}

 protected:
  Status before(Call call, std::string_view path, uint64_t bytes) override;
  Clock::time_point ready_at(uint64_t bytes) override;

 private:
  Clock::time_point take_bandwidth(uint64_t bytes);

  const Throttle throttle_;
  Mutex mutex_;
  Clock::time_point line_free_ GUARDED_BY(mutex_) = Clock::time_point::min();
};

// What goes wrong, and when: the N of "the Nth such call", from 1; 0: never.
struct Faults {
  uint64_t fail_open = 0, fail_read = 0, fail_stat = 0, fail_list = 0, fail_read_link = 0;
  uint64_t fail_create = 0, fail_write = 0, fail_commit = 0;
  uint64_t fail_make_folder = 0, fail_rename = 0, fail_link = 0, fail_remove = 0, fail_sync_folder = 0;
  bool from_then_on = false;  // every later call of the kind fails too
  bool no_exchange = false;   // a filesystem that has no such call
  Code code = Code::io;
  uint64_t flip_read = 0;                         // the Nth read gets one bit wrong, and says nothing
  uint64_t flip_bit = 0;                          // which one, modulo the bits read
  std::optional<uint64_t> ends_at;                // files look cut to this length
  std::function<bool(std::string_view path)> on;  // only these count; empty: all
};

// Fails as told. Thread-safe.
class FaultyStorage : public StorageWrapper {
 public:
  FaultyStorage(Storage& inner, Faults faults);
  uint64_t failures() const { return failures_.load(); }  // injected so far, flips included
  Status exchange(std::string_view one, std::string_view other) override;

 protected:
  Status before(Call call, std::string_view path, uint64_t bytes) override;
  Status before_read(std::string_view path, uint64_t offset, uint64_t bytes) override;
  Status after_read(std::string_view path, uint64_t offset, MutableBytes into) override;
  FileInfo seen(FileInfo info, std::string_view path) override;

 private:
  bool concerns(std::string_view path) const { return !faults_.on || faults_.on(path); }

  const Faults faults_;
  std::array<uint64_t, kCallKinds> fail_at_{};
  std::array<std::atomic<uint64_t>, kCallKinds> calls_{};
  std::atomic<uint64_t> finished_reads_{0}, failures_{0};
};

// A whole Storage in memory, with folders, second names and no symlinks; "/a", "./a" and "a" are the same.
// Every change takes the next tick of a clock of its own as its mtime, so that runs repeat exactly.
// Thread-safe.
class MemoryStorage : public Storage {
 public:
  explicit MemoryStorage(uint64_t capacity = std::numeric_limits<uint64_t>::max());
  ~MemoryStorage() override;

  Result<std::unique_ptr<File>> open(std::string_view path) override;
  std::unique_ptr<Reads> reads(uint32_t depth) override;
  Status read(const File& file, uint64_t offset, MutableBytes into) override;
  Result<FileInfo> look_at(const File& file) override;
  Result<FileInfo> stat(std::string_view path, bool follow = true) override;
  Status list(std::string_view folder, const std::function<bool(FolderEntry&&)>& each) override;
  Result<std::string> read_link(std::string_view path) override;
  Result<std::unique_ptr<Writer>> create(std::string_view path, uint64_t size,
                                         const WriteOptions& options = {}) override;
  Status make_folder(std::string_view path) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status link(std::string_view from, std::string_view to) override;
  Status remove(std::string_view path) override;
  Status sync_folder(std::string_view path) override;

 private:
  struct Node;
  class MemoryFile;
  class MemoryReads;
  class MemoryWriter;
  using Tree = std::map<std::string, std::shared_ptr<Node>, std::less<>>;

  static std::string normal(std::string_view path);
  std::shared_ptr<Node> find(std::string_view normal_path) REQUIRES(mutex_);
  Status needs_parent(std::string_view normal_path) REQUIRES(mutex_);
  bool has_children(std::string_view normal_path) REQUIRES(mutex_);
  std::shared_ptr<Node> new_node(FileKind kind) REQUIRES(mutex_);
  uint64_t bytes_held() REQUIRES(mutex_);
  Status needs_room(uint64_t more, std::string_view path) REQUIRES(mutex_);
  Status move_name(const std::string& from, const std::string& to, bool replace) REQUIRES(mutex_);

  const uint64_t capacity_;
  Mutex mutex_;  // guards what follows, and the bytes of files being written
  Tree tree_ GUARDED_BY(mutex_);
  int64_t tick_ GUARDED_BY(mutex_) = 0;
  uint64_t inodes_ GUARDED_BY(mutex_) = 0;
};

// A new folder below $TMPDIR or /tmp, removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

// Puts a file where it should be, over another if there is one; its folders too. Ends the program on failure:
// a test cannot go on without it.
void put(Storage& storage, std::string_view path, std::string_view text);
// The bytes of a file, or "<" and the status in words.
std::string get(Storage& storage, std::string_view path);
// Every file below `folder` by relative path, sorted; parts (".tmp-") only if asked for.
std::vector<std::string> visible(Storage& storage, std::string_view folder = ".", bool parts = false);

}  // namespace packtrain
