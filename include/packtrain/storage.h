// Storage: a place of named byte objects. The only way the rest of packtrain touches data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "packtrain/status.h"

namespace packtrain {

enum class FileKind : uint8_t { file, folder, symlink, other };

struct FileInfo {
  FileKind kind = FileKind::file;
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  uint64_t device = 0, inode = 0;
  uint32_t mode = 0;
};

// One name in a folder. `kind` comes with the listing and costs no further call; where the
// filesystem does not tell it, it is resolved by one.
struct FolderEntry {
  std::string name;
  FileKind kind = FileKind::file;
};

// Open for reading; its bytes are taken to be immutable. Thread-safe. Must not outlive its Storage.
struct File {
  virtual ~File() = default;
  virtual uint64_t size() const = 0;
  virtual const FileInfo& info() const = 0;  // as it was when opened
};

// One request and its own outcome.
struct Read {
  const File* file = nullptr;  // opened by the Storage that gets the request
  uint64_t offset = 0;
  MutableBytes into;  // filled to the last byte, or status says why not
  Status status;
  uint64_t tag = 0;  // the caller's own
};

// Requests in flight. One thread at a time; several Reads objects may be used side by side.
struct Reads {
  virtual ~Reads() = default;                             // waits for what is in flight
  virtual void submit(std::span<Read* const> batch) = 0;  // each must stay alive until it is handed back
  virtual size_t wait(
      std::span<Read*> finished) = 0;  // at least one if any is in flight, in the order of completion
  virtual size_t in_flight() const = 0;
};

// A new object being written. Thread-safe. Without commit() nothing is visible under its name; the
// destructor leaves the uncommitted part under its temporary name unless discard() was called.
struct Writer {
  virtual ~Writer() = default;
  virtual Status write_at(uint64_t offset, Bytes data) = 0;
  // Changes the size given at creation, for what learns it late; no write may be running.
  virtual Status resize(uint64_t) {
    return Status(Code::unsupported, "this storage cannot change the size of an object being written");
  }
  virtual Status commit() = 0;  // afterwards durable and visible, or neither
  virtual void discard() = 0;   // removes the part
};

struct WriteOptions {
  // The temporary name is PATH + ".tmp-" + token. A part left by an earlier attempt with the same
  // token is opened again with its bytes kept if `resume`, else it starts anew.
  std::string token = "0";
  bool resume = false;
  bool durable = true;   // fsync before the rename, and the folder after it
  bool replace = false;  // commit() over an existing object; otherwise that is Code::invalid
  // Whether the bytes may stay in the system's memory once they are on the disk. Where they would be most of
  // what is in it, whatever others read again and again is worth more. Of durable writers alone.
  bool stay_in_memory = true;
  // For the files of a folder that nobody knows yet, and that gets its name when all of them are there: where
  // it saves something, the file has its own name from the start, and commit() leaves the folder's names to
  // sync_folder(), once for all of them.
  bool in_new_folder = false;
};

// The bytes of a whole object, readable for as long as this lives. Immutable.
struct Mapping {
  virtual ~Mapping() = default;
  virtual Bytes bytes() const = 0;
};

// A place of named byte objects; paths use '/'. Thread-safe.
class Storage {
 public:
  virtual ~Storage() = default;

  virtual Result<std::unique_ptr<File>> open(std::string_view path) = 0;
  virtual std::unique_ptr<Reads> reads(
      uint32_t depth) = 0;  // up to `depth` in flight; more wait inside submit
  // Fills `into` to the last byte. A file that ends before that is Code::corrupt.
  virtual Status read(const File& file, uint64_t offset, MutableBytes into) = 0;
  // An open file as it is now, whatever has its name by now; File::info() is how it was.
  virtual Result<FileInfo> look_at(const File& file) = 0;

  // Mapped where that is cheap and safe (a local filesystem); elsewhere read once into memory.
  virtual Result<std::unique_ptr<Mapping>> map(std::string_view path);

  virtual Result<FileInfo> stat(std::string_view path, bool follow = true) = 0;
  // Calls `each` for every name but "." and "..", in no order; stops early when it returns false.
  virtual Status list(std::string_view folder, const std::function<bool(FolderEntry&&)>& each) = 0;
  virtual Result<std::string> read_link(std::string_view path) = 0;

  // `size` is known from the start and allocated where the filesystem can, so that a lack of room
  // shows before byte one.
  virtual Result<std::unique_ptr<Writer>> create(std::string_view path, uint64_t size,
                                                 const WriteOptions& options = {}) = 0;
  virtual Status make_folder(std::string_view path) = 0;  // parents too; no error if it exists
  virtual Status rename(std::string_view from, std::string_view to) = 0;  // never replaces a non-empty folder
  // Two names change places, and nobody ever finds one of them missing. Code::unsupported where that cannot
  // be.
  virtual Status exchange(std::string_view /*one*/, std::string_view /*other*/) {
    return Status(Code::unsupported, "names cannot be exchanged here");
  }
  virtual Status link(std::string_view from,
                      std::string_view to) = 0;      // a second name; Code::invalid if `to` exists
  virtual Status remove(std::string_view path) = 0;  // a file or an empty folder; not_found if absent
  virtual Status sync_folder(std::string_view path) = 0;
};

enum class ReadBackend : uint8_t { automatic, io_uring, pool };

struct PosixOptions {
  // automatic: io_uring where the kernel allows it, else the pool. The environment variable
  // PACKTRAIN_IO=pool|io_uring sets it where this says automatic.
  ReadBackend backend = ReadBackend::automatic;
  uint32_t pool_threads = 0;  // 0: chosen
};

// The real filesystem. Never fails: without io_uring it uses the pool.
std::unique_ptr<Storage> make_posix_storage(const PosixOptions& options = {});
// Why io_uring is not used here, or empty if it works.
std::string io_uring_trouble();
// Process-wide POSIX storage with default options. Safe to use after fork(): per-process state is rebuilt.
Storage& posix_storage();

// Conveniences on top of any Storage.
Result<std::string> read_whole(Storage& storage, std::string_view path, uint64_t limit = uint64_t{1} << 32);
Status write_whole(Storage& storage, std::string_view path, Bytes data, const WriteOptions& options = {});
Status remove_tree(Storage& storage, std::string_view path);  // never follows symlinks
inline Bytes as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace packtrain
