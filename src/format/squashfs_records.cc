#include "format/squashfs_records.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/little_endian.h"

namespace packtrain {
namespace {

constexpr uint32_t kSquashfsMagic = 0x73717368, kSwappedMagic = 0x68737173;
constexpr uint16_t kMajor = 4;

}  // namespace

bool looks_like_squashfs(Bytes head) {
  if (head.size() < 4) return false;
  const auto magic = load_le<uint32_t>(head.data());
  return magic == kSquashfsMagic || magic == kSwappedMagic;
}

Result<SquashSuper> parse_squash_super(Bytes record) {
  const std::byte* at = record.data();
  if (record.size() < kSquashSuperBytes) return Status(Code::corrupt, "the superblock is cut short");
  if (!looks_like_squashfs(record)) return Status(Code::corrupt, "does not begin as a SquashFS image does");
  const auto major = load_le<uint16_t>(at + 28), minor = load_le<uint16_t>(at + 30);
  if (load_le<uint32_t>(at) != kSquashfsMagic || major < kMajor) {
    return Status(
        Code::unsupported,
        "is a SquashFS image of a version before 4.0; unpack it with unsquashfs and pack the files");
  }
  if (major != kMajor || minor != 0) {
    return Status(Code::corrupt,
                  "says that it is of version " + std::to_string(major) + "." + std::to_string(minor));
  }
  SquashSuper super{.inodes = load_le<uint32_t>(at + 4),
                    .block_bytes = load_le<uint32_t>(at + 12),
                    .fragments = load_le<uint32_t>(at + 16),
                    .codec = load_le<uint16_t>(at + 20),
                    .flags = load_le<uint16_t>(at + 24),
                    .owners = load_le<uint16_t>(at + 26),
                    .root = load_le<uint64_t>(at + 32),
                    .bytes = load_le<uint64_t>(at + 40),
                    .owner_table = load_le<uint64_t>(at + 48),
                    .xattr_table = load_le<uint64_t>(at + 56),
                    .inode_table = load_le<uint64_t>(at + 64),
                    .folder_table = load_le<uint64_t>(at + 72),
                    .fragment_table = load_le<uint64_t>(at + 80),
                    .export_table = load_le<uint64_t>(at + 88)};
  if (!std::has_single_bit(super.block_bytes) || super.block_bytes < kSquashSmallestBlock ||
      super.block_bytes > kSquashLargestBlock ||
      load_le<uint16_t>(at + 22) != std::countr_zero(super.block_bytes)) {
    return Status(Code::corrupt, "says that its blocks have " + std::to_string(super.block_bytes) + " bytes");
  }
  if (super.inode_table < kSquashSuperBytes || super.inode_table > super.folder_table ||
      super.folder_table > super.bytes) {
    return Status(Code::corrupt, "the tables do not follow each other");
  }
  return super;
}

void write_squash_super(const SquashSuper& super, std::byte* out) {
  store_le(out, kSquashfsMagic);
  store_le(out + 4, super.inodes);
  store_le(out + 8, uint32_t{0});  // the time
  store_le(out + 12, super.block_bytes);
  store_le(out + 16, super.fragments);
  store_le(out + 20, super.codec);
  store_le(out + 22, static_cast<uint16_t>(std::countr_zero(super.block_bytes)));
  store_le(out + 24, super.flags);
  store_le(out + 26, super.owners);
  store_le(out + 28, kMajor);
  store_le(out + 30, uint16_t{0});
  store_le(out + 32, super.root);
  store_le(out + 40, super.bytes);
  store_le(out + 48, super.owner_table);
  store_le(out + 56, super.xattr_table);
  store_le(out + 64, super.inode_table);
  store_le(out + 72, super.folder_table);
  store_le(out + 80, super.fragment_table);
  store_le(out + 88, super.export_table);
}

size_t squash_inode_bytes(Bytes head) {
  switch (static_cast<SquashKind>(load_le<uint16_t>(head.data()))) {
    case SquashKind::folder:
      return kSquashFolderBytes;
    case SquashKind::file:
      return kSquashFileBytes;
    case SquashKind::long_folder:
      return kSquashLongFolderBytes;
    case SquashKind::long_file:
      return kSquashLongFileBytes;
    default:
      return kSquashInodeHeadBytes;
  }
}

Result<SquashInode> parse_squash_inode(Bytes record) {
  const std::byte* at = record.data();
  SquashInode inode{.kind = static_cast<SquashKind>(load_le<uint16_t>(at)),
                    .number = load_le<uint32_t>(at + 12)};
  uint64_t folder_bytes = 0;
  switch (inode.kind) {
    case SquashKind::folder:
      inode.listing_block = load_le<uint32_t>(at + 16);
      folder_bytes = load_le<uint16_t>(at + 24);
      inode.listing_offset = load_le<uint16_t>(at + 26);
      break;
    case SquashKind::long_folder:
      folder_bytes = load_le<uint32_t>(at + 20);
      inode.listing_block = load_le<uint32_t>(at + 24);
      inode.listing_offset = load_le<uint16_t>(at + 34);
      break;
    case SquashKind::file:
      inode.start = load_le<uint32_t>(at + 16);
      inode.fragment = load_le<uint32_t>(at + 20);
      inode.fragment_offset = load_le<uint32_t>(at + 24);
      inode.size = load_le<uint32_t>(at + 28);
      return inode;
    case SquashKind::long_file:
      inode.start = load_le<uint64_t>(at + 16);
      inode.size = load_le<uint64_t>(at + 24);
      inode.fragment = load_le<uint32_t>(at + 44);
      inode.fragment_offset = load_le<uint32_t>(at + 48);
      return inode;
    default:
      if (load_le<uint16_t>(at) >= 1 && load_le<uint16_t>(at) <= 14) return inode;  // devices and the like
      return Status(Code::corrupt,
                    "an inode is of the unknown kind " + std::to_string(load_le<uint16_t>(at)));
  }
  if (folder_bytes < kSquashListingExtra && folder_bytes != 0) {
    return Status(Code::corrupt, "a folder says that it has " + std::to_string(folder_bytes) + " bytes");
  }
  inode.listing_bytes =
      static_cast<uint32_t>(folder_bytes < kSquashListingExtra ? 0 : folder_bytes - kSquashListingExtra);
  return inode;
}

std::byte* SquashStream::add(size_t bytes) {
  bytes_.resize(bytes_.size() + bytes);
  return bytes_.data() + bytes_.size() - bytes;
}

void SquashStream::add(Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

uint64_t SquashStream::disk_bytes() const {
  return bytes_.size() + (bytes_.size() + kSquashMetaBytes - 1) / kSquashMetaBytes * kSquashMetaHeadBytes;
}

std::vector<std::byte> SquashStream::to_disk() const {
  std::vector<std::byte> out;
  out.reserve(disk_bytes());
  for (size_t at = 0; at < bytes_.size(); at += kSquashMetaBytes) {
    const Bytes block = Bytes(bytes_).subspan(at, std::min(kSquashMetaBytes, bytes_.size() - at));
    std::byte head[kSquashMetaHeadBytes];
    store_le(head, static_cast<uint16_t>(block.size() | kSquashMetaRaw));
    out.insert(out.end(), head, head + sizeof head);
    out.insert(out.end(), block.begin(), block.end());
  }
  return out;
}

}  // namespace packtrain
