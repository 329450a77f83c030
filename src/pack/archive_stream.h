// ArchiveStream: the files of a tar archive, plain or compressed, front to back and never unpacked to disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// What the first bytes of a file say: "gzip", "zstd", or "" for anything else.
std::string_view stream_codec(Bytes head);

// One pass over an archive: next() moves to the next regular file, read() takes its bytes. Every header's
// checksum is verified; damage is Code::corrupt with its offset in the (decompressed) archive. A member that
// is not read to its end is skipped by next(): in a plain archive without reading it. One thread at a time;
// needs the Storage, and a few MiB of memory.
class ArchiveStream {
 public:
  struct Member {
    std::string_view name;  // as the archive has it: any bytes; valid until the next call
    uint64_t size = 0;
    uint64_t number = 0;  // of regular files, from 0
    uint64_t offset = 0;  // of its data
  };

  static Result<std::unique_ptr<ArchiveStream>> open(Storage& storage, std::string_view path);
  virtual ~ArchiveStream() = default;

  virtual Result<bool> next(Member& out) = 0;  // false at the archive's sound end
  virtual Status read(MutableBytes into) = 0;  // the next bytes of the member; not beyond its end
  virtual uint64_t links() const = 0;          // hard and symbolic links passed so far: they have no bytes
  virtual uint64_t folders() const = 0;        // entries for folders passed so far
};

}  // namespace packtrain
