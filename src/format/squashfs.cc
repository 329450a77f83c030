// SquashFS images: the indexer. Files stored raw become plain extents, compressed blocks and shared fragments
// blocks of the index. Inodes, listings and the table of fragments are read, data are not, but for labels.
#include <algorithm>

#include "base/words.h"
#include "format/grouping.h"
#include "format/merged_reads.h"
#include "format/squashfs_walk.h"
#include "format/squashfs_write.h"
#include "format/table.h"
#include "packtrain/codec.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

using PartKind = SquashPart::Kind;

// Where a label is.
struct Label {
  const SquashPart* part;
  uint64_t start;  // in what the part decodes to
  size_t file;
};

// The labels of all samples. Compressed parts that hold several are decoded once. One thread at a time;
// several look at the labels.
class Labels {
 public:
  Labels(Storage& storage, const File& file, const SquashWalk& walk)
      : storage_(storage), file_(file), walk_(walk) {}

  // Files that may be labels are short, and so in one part or one fragment.
  Status read() {
    labels_.assign(walk_.files().size(), kNoLabel);
    std::vector<Label> wanted;
    for (size_t i = 0; i < walk_.files().size(); ++i) {
      const SquashFile& file = walk_.files()[i];
      if (file.size == 0 || file.size > kLabelBytes || !is_label_member(walk_.path(file))) continue;
      if (file.parts == 1 && walk_.parts(file)[0].kind != PartKind::hole)
        wanted.push_back({&walk_.parts(file)[0], 0, i});
      if (file.parts == 0) wanted.push_back({&walk_.fragments()[file.fragment], file.fragment_offset, i});
    }
    std::sort(wanted.begin(), wanted.end(),
              [](const Label& a, const Label& b) { return a.part->offset < b.part->offset; });
    std::vector<Stretch> stretches;
    std::vector<size_t> first;  // of the labels of each stretch
    for (size_t i = 0; i < wanted.size(); ++i) {
      const SquashPart& part = *wanted[i].part;
      if (part.kind == PartKind::raw) {
        stretches.push_back({part.offset + wanted[i].start, walk_.files()[wanted[i].file].size});
      } else if (i > 0 && same(*wanted[i - 1].part, part)) {
        continue;
      } else {
        stretches.push_back({part.offset, part.stored});
      }
      first.push_back(i);
    }
    first.push_back(wanted.size());
    const auto take_all = [&](size_t position, Bytes stored) {
      return take(std::span(wanted).subspan(first[position], first[position + 1] - first[position]), stored);
    };
    return read_merged(storage_, file_, stretches, take_all, EachCall::side_by_side);
  }

  int64_t operator[](size_t file) const { return labels_.empty() ? kNoLabel : labels_[file]; }

 private:
  static bool same(const SquashPart& a, const SquashPart& b) {
    return a.kind == b.kind && a.offset == b.offset && a.stored == b.stored && a.raw == b.raw;
  }

  Status take(std::span<const Label> labels, Bytes stored) {
    const SquashPart& part = *labels.front().part;
    Bytes raw = stored;
    std::vector<std::byte> decoded;
    if (part.kind == PartKind::compressed) {
      decoded.resize(part.raw);
      Status status = decode({{std::string(walk_.coding().codec)}}, stored, decoded);
      if (!status.ok()) return status.at("@ " + std::to_string(part.offset));
      raw = decoded;
    }
    for (const Label& label : labels) {
      const uint64_t start = part.kind == PartKind::compressed ? label.start : 0;
      const Bytes text = raw.subspan(start, walk_.files()[label.file].size);
      labels_[label.file] = parse_label(text).value_or(kNoLabel);
    }
    return {};
  }

  Storage& storage_;
  const File& file_;
  const SquashWalk& walk_;
  std::vector<int64_t> labels_;
};

// Adds what the walk found to an index, whose shard `shard` is the image.
class Members {
 public:
  Members(const SquashWalk& walk, uint32_t shard, IndexBuilder& out)
      : walk_(walk), shard_(shard), out_(out), fragment_blocks_(walk.fragments().size(), UINT64_MAX) {}

  void add(const SquashFile& file, int64_t label, MemberList& members) {
    const std::string_view path = walk_.path(file);
    const std::span<const SquashPart> parts = walk_.parts(file);
    const SquashPart* fragment =
        file.fragment == kSquashNoFragment ? nullptr : &walk_.fragments()[file.fragment];
    if (file.size == 0 || (parts.size() == 1 && fragment == nullptr && parts[0].kind == PartKind::raw)) {
      members.add(path, {.offset = file.start, .stored = file.size, .raw = file.size, .label = label});
      return;
    }
    if (parts.empty() && fragment != nullptr && fragment->kind == PartKind::raw) {
      members.add(path, {.offset = fragment->offset + file.fragment_offset,
                         .stored = file.size,
                         .raw = file.size,
                         .label = label});
      return;
    }
    slices_.clear();
    for (const SquashPart& part : parts) slices_.push_back({out_.add_block(block_of(part)), 0, part.raw});
    if (fragment != nullptr) {
      uint64_t& block = fragment_blocks_[file.fragment];
      if (block == UINT64_MAX) block = out_.add_block(block_of(*fragment));
      slices_.push_back({block, file.fragment_offset, file.tail});
    }
    members.add(path, slices_, label);
  }

 private:
  Block block_of(const SquashPart& part) {
    Block block{.shard = shard_, .offset = part.offset, .stored = part.stored, .raw = part.raw};
    if (part.kind == PartKind::hole) block.hole = true;
    if (part.kind == PartKind::compressed)
      block.pipeline = out_.add_pipeline({{std::string(walk_.coding().codec)}});
    return block;
  }

  const SquashWalk& walk_;
  const uint32_t shard_;
  IndexBuilder& out_;
  std::vector<uint64_t> fragment_blocks_;  // UINT64_MAX: not added yet
  std::vector<Slice> slices_;
};

bool recognise_squashfs(Storage& storage, std::string_view path) {
  auto file = storage.open(path);
  std::byte head[kSquashSuperBytes];
  if (!file.ok() || (*file)->size() < sizeof head || !storage.read(**file, 0, head).ok()) return false;
  return looks_like_squashfs(head);
}

Status index_squashfs(Storage& storage, std::string_view path, const IndexOptions& options,
                      IndexBuilder& out) {
  PACKTRAIN_ASSIGN(file, storage.open(path));
  SquashWalk walk(storage, *file, options);
  Labels labels(storage, *file, walk);
  Status status = walk.run();
  if (status.ok() && !options.each_member) status = labels.read();
  if (!status.ok()) return status.at(path);
  const uint32_t shard = out.add_shard(shard_spec(kSquashfs, path, *file, options));
  MemberList members;
  members.reserve(walk.files().size());
  Members adding(walk, shard, out);
  for (size_t i = 0; i < walk.files().size(); ++i) adding.add(walk.files()[i], labels[i], members);
  status = members.add_samples(Adjacency::irrelevant, shard, options, out);
  return status.ok() ? status : status.at(path);
}

}  // namespace

const Format kSquashfs = {
    .name = "squashfs",
    .suffix = ".squashfs",
    .summary = "SquashFS images, raw or compressed by block",
    .recognise = recognise_squashfs,
    .index = index_squashfs,
    .layout = nullptr,
    .create = create_squashfs,
    .keeps_order = false,
    .codecs = kSquashfsCodecs,
};

}  // namespace packtrain
