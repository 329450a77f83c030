#include "format/squashfs_tree.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/little_endian.h"
#include "base/words.h"
#include "packtrain/storage.h"

namespace packtrain {
namespace {

constexpr size_t kLongestPath = 4095;
constexpr uint32_t kLongestRun = 256;
constexpr uint16_t kFileMode = 0644, kFolderMode = 0755;
constexpr size_t kIndexHeadBytes = 12;

// By component, so that all that lies in a folder stands together.
bool before(std::string_view a, std::string_view b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    // No name holds a NUL, so a slash sorts in front of all that names do hold.
    const auto weight = [](char letter) {
      return letter == '/' ? 0 : int{static_cast<unsigned char>(letter)};
    };
    return weight(x) < weight(y);
  });
}

Status check_path(std::string_view path) {
  if (path.size() > kLongestPath) return Status(Code::invalid, "a path has at most 4095 bytes");
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view name = path.substr(at, end - at);
    if (name.empty() || name == "." || name == ".." || name.find('\0') != name.npos) {
      return Status(Code::invalid,
                    "cannot be the path of a file; rename the sample, or pack with --format webdataset");
    }
    if (name.size() > kSquashLongestName) {
      return Status(Code::invalid, "has a name of " + std::to_string(name.size()) +
                                       " bytes, a filesystem allows 255; pack with --format webdataset");
    }
    at = end + 1;
  }
  return {};
}

}  // namespace

Status SquashTree::add_file(std::string_view path, uint64_t start, uint64_t size,
                            std::vector<uint32_t> words) {
  PACKTRAIN_TRY(check_path(path));
  files_.push_back({paths_.size(), start, size, static_cast<uint32_t>(path.size()), 0, std::move(words)});
  paths_ += path;
  return {};
}

Status SquashTree::check_neighbours() const {
  for (size_t i = 1; i < files_.size(); ++i) {
    const std::string_view first = path_of(files_[i - 1]), second = path_of(files_[i]);
    if (first == second) return Status(Code::invalid, "was added twice").at(printable(first));
    if (second.starts_with(first) && second[first.size()] == '/') {
      return Status(Code::invalid, "is a file, and a folder of the same name is needed for " +
                                       printable(second) + "; rename one, or pack with --format webdataset")
          .at(printable(first));
    }
  }
  return {};
}

Status SquashTree::finish() {
  std::sort(files_.begin(), files_.end(),
            [&](const File& a, const File& b) { return before(path_of(a), path_of(b)); });
  PACKTRAIN_TRY(check_neighbours());
  // Numbers in the order in which inodes are met from the root down, so that every folder's parent has one.
  std::vector<Folder> open(1);
  uint32_t last_number = 1;
  open[0].number = last_number;
  const auto close = [&] {
    const Entry done = write_folder(open.back());
    open.pop_back();
    if (!open.empty()) {
      open.back().entries.push_back(done);
      ++open.back().folders;
    } else {
      root_ = uint64_t{done.block} << 16 | done.offset;
    }
  };
  // The root's parent is one number behind the last, which is known only at the end: its inode is written
  // last.
  for (File& file : files_) {
    const std::string_view path = path_of(file);
    while (!path.starts_with(open.back().path)) close();
    for (size_t slash = path.find('/', open.back().path.size()); slash != path.npos;
         slash = path.find('/', open.back().path.size())) {
      Folder inner;
      inner.path = path.substr(0, slash + 1);
      inner.number = ++last_number;
      inner.parent = open.back().number;
      open.push_back(std::move(inner));
    }
    file.number = ++last_number;
    Entry entry = write_file(file);
    entry.name = path.substr(open.back().path.size());
    open.back().entries.push_back(entry);
  }
  inode_count_ = last_number;
  open.front().parent = inode_count_ + 1;
  while (!open.empty()) close();
  if (inodes_.disk_bytes() <= UINT32_MAX && listings_.disk_bytes() <= UINT32_MAX) return {};
  return Status(Code::invalid,
                "a SquashFS image has at most 4 GiB of inodes and of listings; use more shards");
}

void SquashTree::add_head(std::byte* inode, SquashKind kind, uint16_t mode, uint32_t number) {
  store_le(inode, static_cast<uint16_t>(kind));
  store_le(inode + 2, mode);
  store_le(inode + 12, number);
}

SquashTree::Entry SquashTree::write_file(const File& file) {
  const bool is_long = file.start > UINT32_MAX || file.size > UINT32_MAX;
  Entry entry{.name = {},
              .block = inodes_.block(),
              .number = file.number,
              .offset = inodes_.offset(),
              .kind = SquashKind::file};
  std::byte* at = inodes_.add(is_long ? kSquashLongFileBytes : kSquashFileBytes);
  add_head(at, is_long ? SquashKind::long_file : SquashKind::file, kFileMode, file.number);
  if (is_long) {
    store_le(at + 16, file.start);
    store_le(at + 24, file.size);
    store_le(at + 40, uint32_t{1});  // links
    store_le(at + 44, kSquashNoFragment);
    store_le(at + 52, UINT32_MAX);  // no extended attributes
  } else {
    store_le(at + 16, static_cast<uint32_t>(file.start));
    store_le(at + 20, kSquashNoFragment);
    store_le(at + 28, static_cast<uint32_t>(file.size));
  }
  uint64_t left = file.size;
  for (size_t i = 0; left > 0; ++i) {
    const auto raw = static_cast<uint32_t>(std::min<uint64_t>(left, block_bytes_));
    store_le(inodes_.add(sizeof raw), file.words.empty() ? raw | kSquashRaw : file.words[i]);
    left -= raw;
  }
  return entry;
}

SquashTree::Entry SquashTree::write_folder(const Folder& folder) {
  struct IndexEntry {
    uint32_t listing_offset, block;
    std::string_view name;
  };
  const uint64_t start = listings_.position();
  const uint32_t block = listings_.block();
  const uint16_t offset = listings_.offset();
  std::vector<IndexEntry> index;
  uint32_t indexed_block = block;
  const std::vector<Entry>& entries = folder.entries;
  for (size_t first = 0; first < entries.size();) {
    // A run begins anew in every metadata block, so that a folder's index can lead to it.
    const uint64_t run_at = listings_.position();
    if (listings_.block() != indexed_block) {
      indexed_block = listings_.block();
      index.push_back({static_cast<uint32_t>(run_at - start), indexed_block, entries[first].name});
    }
    listings_.add(kSquashRunHeadBytes);
    size_t last = first;
    for (; last < entries.size() && last - first < kLongestRun; ++last) {
      const Entry& entry = entries[last];
      const int64_t ahead = int64_t{entry.number} - entries[first].number;
      if (entry.block != entries[first].block || std::llabs(ahead) > INT16_MAX) break;
      if (last > first && listings_.block() != indexed_block) break;
      std::byte* at = listings_.add(kSquashEntryHeadBytes);
      store_le(at, entry.offset);
      store_le(at + 2, static_cast<int16_t>(ahead));
      store_le(at + 4, static_cast<uint16_t>(entry.kind));
      store_le(at + 6, static_cast<uint16_t>(entry.name.size() - 1));
      listings_.add(as_bytes(entry.name));
    }
    std::byte* head = listings_.at(run_at);
    store_le(head, static_cast<uint32_t>(last - first - 1));
    store_le(head + 4, entries[first].block);
    store_le(head + 8, entries[first].number);
    first = last;
  }
  const uint64_t bytes = listings_.position() - start + kSquashListingExtra;
  const bool is_long = bytes > UINT16_MAX;
  Entry done{.name = folder.path,
             .block = inodes_.block(),
             .number = folder.number,
             .offset = inodes_.offset(),
             .kind = SquashKind::folder};
  if (!done.name.empty()) {
    done.name.remove_suffix(1);
    done.name.remove_prefix(done.name.rfind('/') + 1);
  }
  std::byte* at = inodes_.add(is_long ? kSquashLongFolderBytes : kSquashFolderBytes);
  add_head(at, is_long ? SquashKind::long_folder : SquashKind::folder, kFolderMode, folder.number);
  const uint32_t links = folder.folders + 2;
  if (!is_long) {
    store_le(at + 16, block);
    store_le(at + 20, links);
    store_le(at + 24, static_cast<uint16_t>(bytes));
    store_le(at + 26, offset);
    store_le(at + 28, folder.parent);
    return done;
  }
  const auto indexed = static_cast<uint16_t>(std::min<size_t>(index.size(), UINT16_MAX));
  store_le(at + 16, links);
  store_le(at + 20, static_cast<uint32_t>(bytes));
  store_le(at + 24, block);
  store_le(at + 28, folder.parent);
  store_le(at + 32, indexed);
  store_le(at + 34, offset);
  store_le(at + 36, UINT32_MAX);  // no extended attributes
  for (const IndexEntry& one : std::span(index).first(indexed)) {
    std::byte* into = inodes_.add(kIndexHeadBytes);
    store_le(into, one.listing_offset);
    store_le(into + 4, one.block);
    store_le(into + 8, static_cast<uint32_t>(one.name.size() - 1));
    inodes_.add(as_bytes(one.name));
  }
  return done;
}

}  // namespace packtrain
