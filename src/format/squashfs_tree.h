// The inodes and listings of a SquashFS image in the making, from the paths of its files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/squashfs_records.h"
#include "packtrain/status.h"

namespace packtrain {

// Collects files and makes the two tables of them: folders follow from the slashes in paths, entries of a
// folder are sorted, everything belongs to root, is of 1970, and readable by all. Memory: the paths, 40 bytes
// and four for each block of a file; when finished, the tables too. One thread at a time.
class SquashTree {
 public:
  explicit SquashTree(uint32_t block_bytes) : block_bytes_(block_bytes) {}

  // Its blocks lie back to back from `start` on; `words` say how each is stored. None: all of them raw.
  Status add_file(std::string_view path, uint64_t start, uint64_t size, std::vector<uint32_t> words);

  Status finish();
  const SquashStream& inodes() const { return inodes_; }
  const SquashStream& listings() const { return listings_; }
  uint64_t root() const { return root_; }  // as the superblock names it
  uint32_t inode_count() const { return inode_count_; }

 private:
  struct File {
    uint64_t path_at, start, size;
    uint32_t path_bytes, number;
    std::vector<uint32_t> words;
  };
  // One name in a folder, its inode written already.
  struct Entry {
    std::string_view name;
    uint32_t block, number;
    uint16_t offset;
    SquashKind kind;
  };
  // A folder whose entries are being gathered.
  struct Folder {
    std::string_view path;  // with a slash at its end, but for the root
    uint32_t number = 0, parent = 0, folders = 0;
    std::vector<Entry> entries;
  };

  std::string_view path_of(const File& file) const {
    return std::string_view(paths_).substr(file.path_at, file.path_bytes);
  }
  Status check_neighbours() const;
  Entry write_file(const File& file);
  Entry write_folder(const Folder& folder);
  void add_head(std::byte* inode, SquashKind kind, uint16_t mode, uint32_t number);

  const uint32_t block_bytes_;
  std::string paths_;
  std::vector<File> files_;
  SquashStream inodes_, listings_;
  uint64_t root_ = 0;
  uint32_t inode_count_ = 0;
};

}  // namespace packtrain
