// The files of a SquashFS image: walks its folders and learns where the bytes of every file lie.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/big_vector.h"
#include "format/pace.h"
#include "format/squashfs_meta.h"
#include "format/squashfs_records.h"
#include "packtrain/format.h"

namespace packtrain {

// Stored bytes that belong to one file: a run of raw blocks, one compressed block, or a run of holes.
struct SquashPart {
  enum class Kind : uint8_t { raw, compressed, hole };
  uint64_t offset = 0, stored = 0, raw = 0;
  Kind kind = Kind::raw;
};

struct SquashFile {
  uint64_t name_at = 0;
  uint32_t name_bytes = 0;
  uint32_t parts = 0;  // from first_part on
  uint64_t first_part = 0;
  uint64_t start = 0, size = 0;
  uint32_t fragment = kSquashNoFragment, fragment_offset = 0, tail = 0;  // the tail's bytes, in a fragment
};

// Memory: 56 bytes and the path for each file, 32 for each part. One thread at a time.
class SquashWalk {
 public:
  SquashWalk(Storage& storage, const File& file, const IndexOptions& options)
      : storage_(storage), file_(file), options_(options), pace_(options.progress) {}

  Status run();

  const HugeVector<SquashFile>& files() const { return files_; }
  std::string_view path(const SquashFile& file) const {
    return std::string_view(paths_).substr(file.name_at, file.name_bytes);
  }
  std::span<const SquashPart> parts(const SquashFile& file) const {
    return std::span(parts_).subspan(file.first_part, file.parts);
  }
  // The image does not tell how long a compressed one is: as long as the tails of all files reach.
  const std::vector<SquashPart>& fragments() const { return fragments_; }
  const SquashCoding& coding() const { return coding_; }

 private:
  // A folder that is being listed.
  struct Folder {
    SquashPlace at;     // of what comes next in its listing
    uint32_t left = 0;  // bytes of it
    size_t path_bytes = 0;
    uint32_t run_left = 0;   // entries of the run
    uint32_t run_block = 0;  // of their inodes, in the inode table
  };

  Status read_super();
  Status read_fragments();
  Status walk();
  Status step(Folder& folder, std::optional<Folder>& inner);
  Status take_entry(SquashPlace inode_at, uint64_t inode_id, std::optional<Folder>& inner);
  Status take_file(const SquashInode& inode, SquashPlace words_at);
  Status take_block(uint32_t word, uint64_t raw, uint64_t& offset, uint64_t& holes, SquashFile& file);
  Status take_tail(const SquashInode& inode, SquashFile& file);
  bool passes_over(const Status& failure);

  Storage& storage_;
  const File& file_;
  const IndexOptions& options_;
  Pace pace_;
  SquashSuper super_;
  SquashCoding coding_;
  std::optional<SquashTable> inodes_, folders_;
  std::unordered_set<uint64_t> folders_seen_;
  uint64_t listed_bytes_ = 0, entries_ = 0;
  std::string path_;  // of the entry at hand
  HugeString paths_;
  HugeVector<SquashFile> files_;
  HugeVector<SquashPart> parts_;
  std::vector<SquashPart> fragments_;
};

}  // namespace packtrain
