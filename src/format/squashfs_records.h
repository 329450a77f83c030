// The records of a SquashFS image (version 4.0, little-endian), parsed and written. Pure functions,
// thread-safe.
//
//   superblock  [codec options]  data blocks, fragment blocks  inode table  directory table
//   [fragment table]  [export table]  table of owners  [extended attributes]  [padding]
//
// Inodes and directories are streams cut into metadata blocks: u16 (bit 15: stored as it is; the rest: stored
// bytes), then up to 8192 bytes, of which all blocks but the last of a table have exactly as many. A place in
// a stream is the offset of its block within the table and the offset within the decoded block.
//   inode      u16 kind, u16 mode, u16 owner, u16 group, u32 time, u32 number, then by kind
//   directory  runs of: u32 entries − 1, u32 block of their inodes, u32 number of the first inode, then for
//   each
//              entry: u16 place of its inode in that block, i16 its number less the first's, u16 kind,
//              u16 bytes of its name − 1, name
// A file is cut into blocks of one size, the last one shorter; a u32 for each says what is stored: 24 bits of
// length (0: a hole), bit 24 if as it is. They lie back to back. The last one may instead be a slice of a
// fragment block, which the tails of several files share.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "packtrain/status.h"

namespace packtrain {

inline constexpr size_t kSquashSuperBytes = 96;
inline constexpr size_t kSquashMetaBytes = 8192;  // of a decoded metadata block
inline constexpr size_t kSquashMetaHeadBytes = 2;
inline constexpr uint16_t kSquashMetaRaw = 0x8000;
inline constexpr uint32_t kSquashRaw = 1 << 24;  // of a block's word: stored as it is
inline constexpr uint32_t kSquashNoFragment = UINT32_MAX;
inline constexpr uint64_t kSquashNoTable = UINT64_MAX;
inline constexpr size_t kSquashInodeHeadBytes = 16;
inline constexpr size_t kSquashFileBytes = 32, kSquashLongFileBytes = 56;  // without the words of its blocks
inline constexpr size_t kSquashFolderBytes = 32, kSquashLongFolderBytes = 40;  // without its index
inline constexpr size_t kSquashRunHeadBytes = 12, kSquashEntryHeadBytes = 8;
inline constexpr size_t kSquashFragmentBytes = 16;
inline constexpr uint32_t kSquashListingExtra = 3;  // a folder's size counts "." and ".." so
inline constexpr size_t kSquashLongestName = 255;
inline constexpr uint32_t kSquashSmallestBlock = 4096, kSquashLargestBlock = 1 << 20;

enum class SquashKind : uint16_t {
  folder = 1,
  file = 2,
  symlink = 3,
  long_folder = 8,
  long_file = 9,
  long_symlink = 10
};
enum class SquashCodec : uint16_t { gzip = 1, lzma = 2, lzo = 3, xz = 4, lz4 = 5, zstd = 6 };

struct SquashSuper {
  uint32_t inodes = 0, block_bytes = 0, fragments = 0;
  uint16_t codec = 0, flags = 0, owners = 1;
  uint64_t root = 0;  // block in the inode table << 16 | place in it
  uint64_t bytes = 0;
  uint64_t owner_table = 0, xattr_table = kSquashNoTable, inode_table = 0, folder_table = 0,
           fragment_table = 0, export_table = kSquashNoTable;
};
inline constexpr uint16_t kSquashRawInodes = 0x0001, kSquashRawData = 0x0002, kSquashRawFragments = 0x0008,
                          kSquashNoFragments = 0x0010, kSquashNoXattrs = 0x0200, kSquashRawOwners = 0x0800;

bool looks_like_squashfs(Bytes head);
Result<SquashSuper> parse_squash_super(Bytes record);  // kSquashSuperBytes
void write_squash_super(const SquashSuper& super, std::byte* out);

// The part of an inode that does not vary in length.
struct SquashInode {
  SquashKind kind = SquashKind::file;
  uint32_t number = 0;
  // Of a file:
  uint64_t start = 0, size = 0;
  uint32_t fragment = kSquashNoFragment, fragment_offset = 0;
  // Of a folder:
  uint32_t listing_block = 0, listing_bytes = 0;
  uint16_t listing_offset = 0;
};
// How many bytes parse_squash_inode() needs for an inode that begins so; its head alone for those that are
// neither file nor folder.
size_t squash_inode_bytes(Bytes head);
Result<SquashInode> parse_squash_inode(Bytes record);

inline bool is_squash_file(SquashKind kind) {
  return kind == SquashKind::file || kind == SquashKind::long_file;
}
inline bool is_squash_folder(SquashKind kind) {
  return kind == SquashKind::folder || kind == SquashKind::long_folder;
}
inline bool is_squash_symlink(SquashKind kind) {
  return kind == SquashKind::symlink || kind == SquashKind::long_symlink;
}

// A stream of metadata as it goes to disk, in blocks that are stored as they are: every place is known at
// once.
class SquashStream {
 public:
  uint64_t position() const { return bytes_.size(); }
  uint32_t block() const {
    return static_cast<uint32_t>(position() / kSquashMetaBytes * (kSquashMetaBytes + kSquashMetaHeadBytes));
  }
  uint16_t offset() const { return static_cast<uint16_t>(position() % kSquashMetaBytes); }
  std::byte* add(size_t bytes);  // zeros, valid until the next call
  void add(Bytes bytes);
  std::byte* at(uint64_t position) { return bytes_.data() + position; }  // valid until the next add()
  uint64_t disk_bytes() const;
  std::vector<std::byte> to_disk() const;

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace packtrain
