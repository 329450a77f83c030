// The pages of an LMDB file (data version 1, 64 bits, little-endian), parsed and written. Pure functions,
// thread-safe.
//
//   page 0, page 1: meta pages; each names a whole state of the tree, the one with the higher transaction
//   counts page p at p × page size:
//     u64 number, u16 unused, u16 kind, then
//     meta      u32 magic, u32 version, u64 address, u64 map size, record of the free list, record of the
//     tree,
//               u64 last page, u64 transaction
//     branch,   u16 end of the table of nodes, u16 start of the nodes, u16 place of each node, …, nodes
//     leaf
//     overflow  u32 pages; the value, which may reach over the pages that follow
//   record of a tree: u32 (page size, in that of the free list), u16 flags, u16 depth, u64 branch, leaf and
//               overflow pages, u64 entries, u64 root
//   node in a branch: 48 bits of page number, u16 key bytes, key; the key of the first node is not looked at
//   node in a leaf:   u32 value bytes, u16 flags, u16 key bytes, key, value or u64 overflow page
#pragma once

#include <cstdint>
#include <string_view>

#include "packtrain/status.h"

namespace packtrain {

inline constexpr size_t kLmdbPageHeadBytes = 16;
inline constexpr size_t kLmdbMetaBytes = 152;  // page head and meta record
inline constexpr size_t kLmdbNodeHeadBytes = 8;
inline constexpr size_t kLmdbSlotBytes = 2;  // of a node, in the table at the front of its page
inline constexpr uint64_t kLmdbNoPage = UINT64_MAX;
inline constexpr uint32_t kLmdbSmallestPage = 512, kLmdbLargestPage = 32768;
inline constexpr uint32_t kLmdbDeepestTree = 32;  // no cursor of LMDB goes deeper
inline constexpr size_t kLmdbLongestKey = 511;    // of LMDB as everyone builds it
inline constexpr uint64_t kLmdbLongestValue = 0xFFFFFFFF;

inline constexpr uint16_t kLmdbBranch = 1, kLmdbLeaf = 2, kLmdbOverflow = 4, kLmdbMeta = 8, kLmdbLeaf2 = 0x20;
inline constexpr uint16_t kLmdbIntegerKeys = 0x08;                                // of a tree
inline constexpr uint16_t kLmdbBigValue = 1, kLmdbTree = 2, kLmdbDuplicates = 4;  // of a node

struct LmdbTree {
  uint16_t flags = 0, depth = 0;
  uint64_t branch_pages = 0, leaf_pages = 0, overflow_pages = 0, entries = 0;
  uint64_t root = kLmdbNoPage;
};

struct LmdbMeta {
  uint32_t page_bytes = 0;
  uint64_t map_bytes = 0;
  LmdbTree tree;
  uint64_t last_page = 0, transaction = 0;
};

// Whether these, the first kLmdbMetaBytes of a file, are of an LMDB file of any kind.
bool looks_like_lmdb(Bytes head);
Result<LmdbTree> parse_lmdb_tree(Bytes record);                                // of a named database
Result<LmdbMeta> parse_lmdb_meta(Bytes page);                                  // kLmdbMetaBytes
void write_lmdb_meta(const LmdbMeta& meta, uint64_t number, std::byte* page);  // kLmdbMetaBytes

// The number of nodes in a page, which must be of this kind and number.
Result<size_t> check_lmdb_page(Bytes page, uint16_t kind, uint64_t number);

struct LmdbNode {
  uint16_t flags = 0;
  std::string_view key;
  uint64_t child = 0;        // of a branch: the page; of a leaf with a big value: its first overflow page
  uint64_t value_bytes = 0;  // of a leaf
  size_t value_at = 0;       // in the page, unless the value is big
  size_t bytes = 0;          // that the node takes in its page
};
// Node `slot` of a page that was checked.
Result<LmdbNode> parse_lmdb_node(Bytes page, uint16_t kind, size_t slot);

// The pages of a value that has its own.
inline uint64_t lmdb_overflow_pages(uint64_t value_bytes, uint32_t page_bytes) {
  return (kLmdbPageHeadBytes - 1 + value_bytes) / page_bytes + 1;
}
// A value stays in its leaf as long as two such nodes fit into a page.
inline bool lmdb_is_big(size_t key_bytes, uint64_t value_bytes, uint32_t page_bytes) {
  const size_t largest = ((page_bytes - kLmdbPageHeadBytes) / 2 & ~size_t{1}) - kLmdbSlotBytes;
  return kLmdbNodeHeadBytes + key_bytes + value_bytes > largest;
}

}  // namespace packtrain
