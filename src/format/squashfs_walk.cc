#include "format/squashfs_walk.h"

#include <algorithm>

#include "base/little_endian.h"
#include "base/words.h"
#include "format/table.h"

namespace packtrain {
namespace {

constexpr size_t kLongestTreePath = 4096;
constexpr uint32_t kLongestFolderRun = 256;
constexpr size_t kFragmentsPerBlock = kSquashMetaBytes / kSquashFragmentBytes;
constexpr uint32_t kStoredMask = kSquashRaw - 1;
constexpr uint64_t kMostHoles = uint64_t{1} << 30;  // in one file
// Listings are compressed, and could be made to say much in few bytes. No sound image says so much.
constexpr uint64_t kPathBytesPerByte = 256;

Status outside() { return Status(Code::corrupt, "its bytes lie outside of the data of the image"); }

}  // namespace

bool SquashWalk::passes_over(const Status& failure) {
  if (!options_.recover || failure.code() != Code::corrupt) return false;
  if (options_.damage) options_.damage->push_back({0, 0, printable(path_) + ": " + failure.text()});
  return true;
}

Status SquashWalk::run() {
  PACKTRAIN_TRY(read_super());
  PACKTRAIN_TRY(read_fragments());
  return walk();
}

Status SquashWalk::read_super() {
  std::byte record[kSquashSuperBytes];
  if (file_.size() < sizeof record) return Status(Code::corrupt, "the superblock is cut short");
  PACKTRAIN_TRY(storage_.read(file_, 0, record));
  PACKTRAIN_ASSIGN(super, parse_squash_super(record));
  if (super.bytes > file_.size()) {
    return Status(Code::corrupt, "the image is cut short: it has " + std::to_string(file_.size()) + " of " +
                                     std::to_string(super.bytes) + " bytes");
  }
  super_ = super;
  coding_ = squash_coding(super.codec);
  inodes_.emplace(storage_, file_, super.folder_table, coding_);
  folders_.emplace(storage_, file_, super.bytes, coding_);
  return {};
}

Status SquashWalk::read_fragments() {
  if (super_.fragments == 0) return {};
  const uint64_t blocks = (uint64_t{super_.fragments} + kFragmentsPerBlock - 1) / kFragmentsPerBlock;
  if (super_.fragments > file_.size() || super_.fragment_table > super_.bytes ||
      blocks > (super_.bytes - super_.fragment_table) / sizeof(uint64_t)) {
    return Status(Code::corrupt, "the table of fragments does not fit into the image");
  }
  std::vector<std::byte> places(blocks * sizeof(uint64_t));
  PACKTRAIN_TRY(storage_.read(file_, super_.fragment_table, places));
  SquashTable table(storage_, file_, super_.fragment_table, coding_);
  uint64_t before = 0;
  SquashPlace at;
  for (uint64_t i = 0; i < super_.fragments; ++i) {
    if (i % kFragmentsPerBlock == 0) {
      at = {load_le<uint64_t>(places.data() + i / kFragmentsPerBlock * sizeof(uint64_t)), 0};
      if (at.block <= before) return Status(Code::corrupt, "the table of fragments is out of order");
      before = at.block;
    }
    std::byte record[kSquashFragmentBytes];
    PACKTRAIN_TRY(table.read(at, record));
    const auto word = load_le<uint32_t>(record + 8);
    SquashPart part{.offset = load_le<uint64_t>(record), .stored = word & kStoredMask};
    part.kind = (word & kSquashRaw) != 0 ? SquashPart::Kind::raw : SquashPart::Kind::compressed;
    if (part.kind == SquashPart::Kind::raw) part.raw = part.stored;
    if (part.stored == 0 || part.stored > super_.block_bytes || part.offset > super_.inode_table ||
        part.stored > super_.inode_table - part.offset) {
      return Status(Code::corrupt,
                    "fragment " + std::to_string(i) + " lies outside of the data of the image");
    }
    fragments_.push_back(part);
  }
  return {};
}

Status SquashWalk::walk() {
  std::vector<Folder> open;
  std::optional<Folder> inner;
  const SquashPlace root{super_.inode_table + (super_.root >> 16),
                         static_cast<uint32_t>(super_.root & 0xFFFF)};
  PACKTRAIN_TRY(take_entry(root, super_.root, inner));
  if (!inner) return Status(Code::corrupt, "the root is no folder");
  inner->path_bytes = 0;
  open.push_back(*inner);
  while (!open.empty()) {
    path_.resize(open.back().path_bytes);
    if (open.back().left == 0 && open.back().run_left == 0) {
      open.pop_back();
      continue;
    }
    inner.reset();
    if (Status status = step(open.back(), inner); !status.ok()) {
      // Where a listing cannot be followed, the rest of its folder is lost.
      if (!passes_over(status))
        return status.code() == Code::corrupt ? with_way_out(status.at(printable(path_))) : status;
      open.pop_back();
      continue;
    }
    if (inner) open.push_back(*inner);
    PACKTRAIN_TRY(
        pace_.tell({.phase = "index", .items = entries_, .items_total = super_.inodes, .unit = "files"}));
  }
  return {};
}

// The next entry of a folder's listing, or the head of a run of them.
Status SquashWalk::step(Folder& folder, std::optional<Folder>& inner) {
  const auto take = [&](MutableBytes into) -> Status {
    if (into.size() > folder.left) return Status(Code::corrupt, "a listing ends within an entry");
    folder.left -= static_cast<uint32_t>(into.size());
    listed_bytes_ += into.size();
    PACKTRAIN_TRY(folders_->read(folder.at, into));
    if (listed_bytes_ / kSquashMetaBytes <= folders_->blocks_seen()) return {};
    return Status(Code::corrupt, "folders share their listings");
  };
  if (folder.run_left == 0) {
    std::byte head[kSquashRunHeadBytes];
    PACKTRAIN_TRY(take(head));
    if (load_le<uint32_t>(head) >= kLongestFolderRun)
      return Status(Code::corrupt, "a listing has too long a run of entries");
    folder.run_left = load_le<uint32_t>(head) + 1;
    folder.run_block = load_le<uint32_t>(head + 4);
    return {};
  }
  std::byte head[kSquashEntryHeadBytes];
  PACKTRAIN_TRY(take(head));
  --folder.run_left;
  char name[kSquashLongestName + 1];
  const size_t name_bytes = size_t{load_le<uint16_t>(head + 6)} + 1;
  if (name_bytes > sizeof name) return Status(Code::corrupt, "a name in a listing is too long");
  PACKTRAIN_TRY(take(std::as_writable_bytes(std::span(name, name_bytes))));
  const std::string_view text(name, name_bytes);
  if (text == "." || text == ".." || text.find('/') != text.npos || text.find('\0') != text.npos) {
    return Status(Code::corrupt, "a listing holds the name " + printable(text));
  }
  if (path_.size() + name_bytes > kLongestTreePath)
    return Status(Code::corrupt, "folders lie too deep in each other");
  path_ += text;
  if (++entries_ > file_.size() || paths_.size() / kPathBytesPerByte > file_.size()) {
    return Status(Code::corrupt, "the listings hold more than an image of this size can");
  }
  const auto offset = load_le<uint16_t>(head);
  const Status status = take_entry({super_.inode_table + folder.run_block, offset},
                                   uint64_t{folder.run_block} << 16 | offset, inner);
  return status.ok() || passes_over(status) ? Status() : status;
}

// `inner` becomes what the entry opens, if it is a folder.
Status SquashWalk::take_entry(SquashPlace inode_at, uint64_t inode_id, std::optional<Folder>& inner) {
  std::byte record[kSquashLongFileBytes];
  PACKTRAIN_TRY(inodes_->read(inode_at, std::span(record).first(kSquashInodeHeadBytes)));
  const size_t bytes = squash_inode_bytes(record);
  PACKTRAIN_TRY(inodes_->read(inode_at, std::span(record).first(bytes).subspan(kSquashInodeHeadBytes)));
  PACKTRAIN_ASSIGN(inode, parse_squash_inode(std::span(record).first(bytes)));
  if (is_squash_folder(inode.kind)) {
    // The one way to come in a circle.
    if (!folders_seen_.insert(inode_id).second) return Status(Code::corrupt, "a folder is in two places");
    path_ += '/';
    inner = Folder{.at = {super_.folder_table + inode.listing_block, inode.listing_offset},
                   .left = inode.listing_bytes,
                   .path_bytes = path_.size()};
    return {};
  }
  if (is_squash_file(inode.kind)) return take_file(inode, inode_at);
  if (is_squash_symlink(inode.kind) && options_.links != nullptr) note_left_out(path_, *options_.links);
  return {};
}

Status SquashWalk::take_file(const SquashInode& inode, SquashPlace words_at) {
  const size_t parts_before = parts_.size();
  SquashFile file{.name_at = paths_.size(),
                  .name_bytes = static_cast<uint32_t>(path_.size()),
                  .first_part = parts_before,
                  .start = std::min(inode.start, super_.inode_table),
                  .size = inode.size};
  const auto fill = [&]() -> Status {
    const uint64_t whole = inode.size / super_.block_bytes, rest = inode.size % super_.block_bytes;
    const bool in_fragment = inode.fragment != kSquashNoFragment && rest > 0;
    const uint64_t blocks = whole + (rest > 0 && !in_fragment ? 1 : 0);
    uint64_t offset = inode.start, holes = 0;
    for (uint64_t i = 0; i < blocks; ++i) {
      std::byte word[sizeof(uint32_t)];
      PACKTRAIN_TRY(inodes_->read(words_at, word));
      PACKTRAIN_TRY(
          take_block(load_le<uint32_t>(word), i < whole ? super_.block_bytes : rest, offset, holes, file));
    }
    return in_fragment ? take_tail(inode, file) : Status();
  };
  if (Status status = fill(); !status.ok()) {
    parts_.resize(parts_before);
    return status;
  }
  paths_ += path_;
  files_.push_back(file);
  return {};
}

Status SquashWalk::take_block(uint32_t word, uint64_t raw, uint64_t& offset, uint64_t& holes,
                              SquashFile& file) {
  const uint64_t stored = word & kStoredMask;
  SquashPart part{.offset = offset, .stored = stored, .raw = raw, .kind = SquashPart::Kind::compressed};
  if ((word & ~(kStoredMask | kSquashRaw)) != 0) return Status(Code::corrupt, "a block has an unknown mark");
  if (stored == 0) {
    part = {.offset = 0, .stored = 0, .raw = raw, .kind = SquashPart::Kind::hole};
    holes += raw;
    if (holes > kMostHoles) {
      return Status(Code::unsupported,
                    "has more than 1 GiB of holes; unpack the image with unsquashfs and pack the files that "
                    "are samples");
    }
  } else {
    if (offset > super_.inode_table || stored > super_.inode_table - offset) return outside();
    if ((word & kSquashRaw) != 0) {
      part.kind = SquashPart::Kind::raw;
      if (stored != raw) return Status(Code::corrupt, "a raw block is not of the length it must have");
    } else {
      if (coding_.codec.empty()) return squash_codec_missing(coding_);
      if (raw / coding_.ratio > stored) {
        return Status(Code::corrupt, "cannot have " + std::to_string(raw) + " bytes in " +
                                         std::to_string(stored) + " stored ones");
      }
    }
    offset += stored;
  }
  const bool goes_on =
      file.parts > 0 && part.kind != SquashPart::Kind::compressed && parts_.back().kind == part.kind &&
      (part.kind == SquashPart::Kind::hole || parts_.back().offset + parts_.back().stored == part.offset);
  if (goes_on) {
    parts_.back().stored += part.stored;
    parts_.back().raw += part.raw;
  } else {
    parts_.push_back(part);
    ++file.parts;
  }
  return {};
}

Status SquashWalk::take_tail(const SquashInode& inode, SquashFile& file) {
  if (inode.fragment >= fragments_.size())
    return Status(Code::corrupt, "its tail is in a fragment that is not there");
  SquashPart& fragment = fragments_[inode.fragment];
  const uint64_t tail = inode.size % super_.block_bytes, end = inode.fragment_offset + tail;
  if (end > (fragment.kind == SquashPart::Kind::raw ? fragment.raw : super_.block_bytes)) {
    return Status(Code::corrupt, "its tail reaches out of its fragment");
  }
  if (fragment.kind == SquashPart::Kind::compressed) {
    if (coding_.codec.empty()) return squash_codec_missing(coding_);
    if (end / coding_.ratio > fragment.stored) return Status(Code::corrupt, "its fragment cannot be so long");
    fragment.raw = std::max(fragment.raw, end);
  }
  file.fragment = inode.fragment;
  file.fragment_offset = inode.fragment_offset;
  file.tail = static_cast<uint32_t>(tail);
  return {};
}

}  // namespace packtrain
