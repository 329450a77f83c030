#include "format/lmdb_records.h"

#include <bit>
#include <cstring>
#include <string>

#include "base/little_endian.h"

namespace packtrain {
namespace {

constexpr uint32_t kMagic = 0xBEEFC0DE, kVersion = 1;
constexpr size_t kTreeBytes = 48;
// Places in a page.
constexpr size_t kNumberAt = 0, kKindAt = 10, kTableEndAt = 12, kTableAt = 16;
constexpr size_t kMagicAt = 16, kMagic32At = 12, kVersionAt = 20, kMapAt = 32, kFreeTreeAt = 40, kTreeAt = 88,
                 kLastPageAt = 136, kTransactionAt = 144;
static_assert(kTreeAt == kFreeTreeAt + kTreeBytes && kLastPageAt == kTreeAt + kTreeBytes);

LmdbTree parse_tree(const std::byte* at) {
  return {.flags = load_le<uint16_t>(at + 4),
          .depth = load_le<uint16_t>(at + 6),
          .branch_pages = load_le<uint64_t>(at + 8),
          .leaf_pages = load_le<uint64_t>(at + 16),
          .overflow_pages = load_le<uint64_t>(at + 24),
          .entries = load_le<uint64_t>(at + 32),
          .root = load_le<uint64_t>(at + 40)};
}

void write_tree(const LmdbTree& tree, uint32_t pad, std::byte* at) {
  store_le(at, pad);
  store_le(at + 4, tree.flags);
  store_le(at + 6, tree.depth);
  store_le(at + 8, tree.branch_pages);
  store_le(at + 16, tree.leaf_pages);
  store_le(at + 24, tree.overflow_pages);
  store_le(at + 32, tree.entries);
  store_le(at + 40, tree.root);
}

Status reaches_out(size_t slot) {
  return Status(Code::corrupt, "node " + std::to_string(slot) + " reaches out of its page");
}

uint32_t swapped(uint32_t value) {
  return value >> 24 | (value >> 8 & 0xFF00) | (value << 8 & 0xFF0000) | value << 24;
}

}  // namespace

bool looks_like_lmdb(Bytes head) {
  if (head.size() < kMagicAt + 4) return false;
  for (const size_t at : {kMagicAt, kMagic32At}) {
    const auto magic = load_le<uint32_t>(head.data() + at);
    if (magic == kMagic || magic == swapped(kMagic)) return true;
  }
  return false;
}

Result<LmdbTree> parse_lmdb_tree(Bytes record) {
  if (record.size() != kTreeBytes)
    return Status(Code::corrupt, "the record of a named database is cut short");
  return parse_tree(record.data());
}

Result<LmdbMeta> parse_lmdb_meta(Bytes page) {
  if (page.size() < kLmdbMetaBytes) return Status(Code::corrupt, "a meta page is cut short");
  const std::byte* at = page.data();
  if (load_le<uint32_t>(at + kMagicAt) != kMagic) {
    if (!looks_like_lmdb(page))
      return Status(Code::corrupt, "a meta page does not begin as those of LMDB do");
    return Status(Code::unsupported,
                  "was written by a machine of 32 bits or of the other byte order; there, `mdb_dump FOLDER` "
                  "writes a text that `mdb_load` reads here");
  }
  if ((load_le<uint16_t>(at + kKindAt) & kLmdbMeta) == 0) {
    return Status(Code::corrupt, "a meta page is not marked as one");
  }
  if (const auto version = load_le<uint32_t>(at + kVersionAt); version != kVersion) {
    return Status(Code::unsupported, "is of LMDB's data version " + std::to_string(version) +
                                         "; packtrain reads version 1, which LMDB 0.9 writes");
  }
  LmdbMeta meta{.page_bytes = load_le<uint32_t>(at + kFreeTreeAt),
                .map_bytes = load_le<uint64_t>(at + kMapAt),
                .tree = parse_tree(at + kTreeAt),
                .last_page = load_le<uint64_t>(at + kLastPageAt),
                .transaction = load_le<uint64_t>(at + kTransactionAt)};
  if (!std::has_single_bit(meta.page_bytes) || meta.page_bytes < kLmdbSmallestPage ||
      meta.page_bytes > kLmdbLargestPage) {
    return Status(Code::corrupt,
                  "a meta page says that pages have " + std::to_string(meta.page_bytes) + " bytes");
  }
  return meta;
}

void write_lmdb_meta(const LmdbMeta& meta, uint64_t number, std::byte* page) {
  std::memset(page, 0, kLmdbMetaBytes);
  store_le(page + kNumberAt, number);
  store_le(page + kKindAt, kLmdbMeta);
  store_le(page + kMagicAt, kMagic);
  store_le(page + kVersionAt, kVersion);
  store_le(page + kMapAt, meta.map_bytes);
  write_tree({.flags = kLmdbIntegerKeys}, meta.page_bytes, page + kFreeTreeAt);
  write_tree(meta.tree, 0, page + kTreeAt);
  store_le(page + kLastPageAt, meta.last_page);
  store_le(page + kTransactionAt, meta.transaction);
}

Result<size_t> check_lmdb_page(Bytes page, uint16_t kind, uint64_t number) {
  if (const auto found = load_le<uint64_t>(page.data() + kNumberAt); found != number) {
    return Status(Code::corrupt,
                  "page " + std::to_string(number) + " says that it is page " + std::to_string(found));
  }
  const auto found = load_le<uint16_t>(page.data() + kKindAt);
  if ((found & (kLmdbBranch | kLmdbLeaf | kLmdbOverflow | kLmdbMeta | kLmdbLeaf2)) != kind) {
    return Status(Code::corrupt, "page " + std::to_string(number) + " is no " +
                                     (kind == kLmdbLeaf ? "leaf" : "branch") + " of the tree");
  }
  const size_t end = load_le<uint16_t>(page.data() + kTableEndAt);
  if (end < kTableAt || end > page.size() || end % kLmdbSlotBytes != 0) {
    return Status(Code::corrupt, "page " + std::to_string(number) + " has no sound table of nodes");
  }
  return (end - kTableAt) / kLmdbSlotBytes;
}

Result<LmdbNode> parse_lmdb_node(Bytes page, uint16_t kind, size_t slot) {
  const size_t at = load_le<uint16_t>(page.data() + kTableAt + slot * kLmdbSlotBytes);
  const size_t table_end = load_le<uint16_t>(page.data() + kTableEndAt);
  if (at < table_end || at > page.size() || page.size() - at < kLmdbNodeHeadBytes) return reaches_out(slot);
  Bytes rest = page.subspan(at);
  const auto low = load_le<uint32_t>(rest.data());
  const auto flags = load_le<uint16_t>(rest.data() + 4);
  const size_t key_bytes = load_le<uint16_t>(rest.data() + 6);
  rest = rest.subspan(kLmdbNodeHeadBytes);
  if (key_bytes > rest.size()) return reaches_out(slot);
  LmdbNode node;
  node.key = {reinterpret_cast<const char*>(rest.data()), key_bytes};
  node.bytes = kLmdbNodeHeadBytes + key_bytes;
  if (kind == kLmdbBranch) {
    node.child = low | uint64_t{flags} << 32;
    return node;
  }
  rest = rest.subspan(key_bytes);
  node.flags = flags;
  node.value_bytes = low;
  node.value_at = page.size() - rest.size();
  const bool big = (flags & kLmdbBigValue) != 0;
  const uint64_t here = big ? sizeof node.child : node.value_bytes;
  if (here > rest.size()) return reaches_out(slot);
  node.bytes += here;
  if (big) node.child = load_le<uint64_t>(rest.data());
  return node;
}

}  // namespace packtrain
