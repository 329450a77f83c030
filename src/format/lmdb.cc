// LMDB: the indexer. Walks the tree from its root, level by level, without liblmdb: no memory map, no lock
// file, and bytes that lead in circles are found out. Every value is one plain extent, in a leaf or in pages
// of its own; of the latter no byte is read.
#include <algorithm>

#include "base/big_vector.h"
#include "base/little_endian.h"
#include "base/words.h"
#include "format/columns.h"
#include "format/grouping.h"
#include "format/lmdb_records.h"
#include "format/lmdb_write.h"
#include "format/merged_reads.h"
#include "format/pace.h"
#include "format/table.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

constexpr std::string_view kCounterKey = "num-samples", kNumberedImage = "image";
constexpr std::string_view kDataFile = "data.mdb";
constexpr size_t kValuesLookedAt = 8;  // to learn what values without a name of their own are
constexpr size_t kMetaHeadBytes = 64;  // of each: every kind of media shows by then

// Letters, digits and marks of ASCII alone, as nearly all keys are. Without a way out of the loop, so that
// the compiler looks at many at once.
bool is_plain_ascii(std::string_view text) {
  bool plain = true;
  for (const char letter : text) plain &= letter >= 0x20 && letter < 0x7F;
  return plain;
}

// A key as a name: text as it is, numbers in digits, all else in hexadecimal digits.
void append_name(std::string_view key, bool integers, HugeString& names) {
  if (integers && (key.size() == 4 || key.size() == 8)) {
    names += std::to_string(key.size() == 4 ? load_le<uint32_t>(key.data()) : load_le<uint64_t>(key.data()));
    return;
  }
  if (is_plain_ascii(key)) {
    names += key;
    return;
  }
  const bool controls = std::any_of(key.begin(), key.end(), [](char letter) {
    return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F;
  });
  if (!controls && is_utf8(key)) {
    names += key;
    return;
  }
  for (const char letter : key) {
    names += "0123456789abcdef"[static_cast<unsigned char>(letter) >> 4];
    names += "0123456789abcdef"[static_cast<unsigned char>(letter) & 15];
  }
}

// Reads the structure of one file. One thread at a time. Memory: about 40 bytes and the name for each entry,
// a bit for each page, and what read_merged needs.
class LmdbIndexer {
 public:
  LmdbIndexer(Storage& storage, const File& file, const IndexOptions& options)
      : storage_(storage), file_(file), options_(options), pace_(options.progress) {}

  Status run() {
    PACKTRAIN_TRY(read_meta());
    PACKTRAIN_TRY(walk(tree_));
    if (named_.empty()) return {};
    if (named_.size() > 1 || !entries_.empty()) {
      return Status(
          Code::unsupported,
          "holds the named database " + printable(named_.front().first) +
              " beside other entries, packtrain reads one database of a file; put the entries of all "
              "into one, under keys such as KEY.jpg and KEY.cls");
    }
    // The only one there is may have a name.
    tree_ = named_.front().second;
    PACKTRAIN_TRY(walk(tree_));
    if (named_.size() == 1) return {};
    return Status(Code::corrupt,
                  "the named database " + printable(named_.front().first) + " holds another one");
  }

  // In the order of the tree, which is that of the keys.
  Status add_members(MemberList& members) const {
    std::string extension;
    if (!options_.each_member) PACKTRAIN_TRY(find_extension(extension));
    if (!options_.each_member && numbers_parts()) return add_numbered(members);
    std::string longer;
    members.reserve(entries_.size());
    for (const Leaf& leaf : leaves_) {
      for (size_t i = leaf.first; i < leaf.first + leaf.count; ++i) {
        const Entry& entry = entries_[i];
        std::string_view name = name_of(entry);
        if (!extension.empty() && lacks_extension(name)) {
          longer.assign(name).append(name.ends_with('.') ? "" : ".").append(extension);
          name = longer;
        }
        members.add(
            name, {.offset = entry.offset, .stored = entry.bytes, .raw = entry.bytes, .label = entry.label});
      }
    }
    return {};
  }

 private:
  struct Entry {
    uint64_t offset, name_at;
    int64_t label;
    uint32_t bytes, name_bytes;
  };
  struct Leaf {
    size_t first = 0, count = 0;  // into entries_
  };

  std::string_view name_of(const Entry& entry) const {
    return std::string_view(names_).substr(entry.name_at, entry.name_bytes);
  }

  // "image-000000001" divided into "image" and the number; nothing for other names.
  static std::optional<MemberName> divide_numbered(std::string_view name) {
    const size_t dash = name.rfind('-');
    if (dash == std::string_view::npos || dash == 0 || dash + 1 == name.size()) return std::nullopt;
    if (name.find_first_not_of("0123456789", dash + 1) != std::string_view::npos) return std::nullopt;
    if (name.find_first_of("./") != std::string_view::npos) return std::nullopt;
    return MemberName{.key = name.substr(dash + 1), .field = name.substr(0, dash)};
  }

  // The layout of text recognition: image-N and label-N for each sample, and their number.
  bool numbers_parts() const {
    bool counter = false, image = false;
    for (const Entry& entry : entries_) {
      const auto parts = divide_numbered(name_of(entry));
      if (!parts && name_of(entry) != kCounterKey) return false;
      counter = counter || !parts;
      image = image || (parts && parts->field == kNumberedImage);
    }
    return counter && image;
  }

  Status add_numbered(MemberList& members) const {
    std::string image, longer;
    PACKTRAIN_TRY(name_images(image));
    for (const Leaf& leaf : leaves_) {
      for (size_t i = leaf.first; i < leaf.first + leaf.count; ++i) {
        const Entry& entry = entries_[i];
        const auto parts = divide_numbered(name_of(entry));
        if (!parts) continue;
        longer.assign(parts->key).append(".").append(parts->field == kNumberedImage ? image : parts->field);
        members.add(longer, {.offset = entry.offset, .stored = entry.bytes, .raw = entry.bytes});
      }
    }
    add_note(options_, "values with one number in their keys (image-N, label-N) are one sample; " +
                           std::string(kCounterKey) + ", which counts them, is left out");
    return {};
  }

  // As of a column called "image": by what the values are, if some of them agree on it.
  Status name_images(std::string& field) const {
    std::vector<size_t> images;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const auto parts = divide_numbered(name_of(entries_[i]));
      if (parts && parts->field == kNumberedImage) images.push_back(i);
    }
    return name_by_content(images, kNumberedImage, field);
  }

  // Whether the walk goes on behind this failure; if so, it is noted.
  bool passes_over(const Status& failure, uint64_t offset, uint64_t bytes) {
    if (!options_.recover || failure.code() != Code::corrupt) return false;
    if (options_.damage) options_.damage->push_back({offset, bytes, failure.message()});
    return true;
  }

  // What becomes of the failure to understand these bytes.
  Status settled(const Status& failure, uint64_t offset, uint64_t bytes) {
    if (failure.ok() || passes_over(failure, offset, bytes)) return {};
    const Status placed = failure.at("@ " + std::to_string(offset));
    return failure.code() == Code::corrupt ? with_way_out(placed) : placed;
  }

  Result<LmdbMeta> read_meta_at(uint64_t offset) {
    if (offset > file_.size() || file_.size() - offset < kLmdbMetaBytes) {
      return Status(Code::corrupt, "the file is cut short: it ends before its second meta page does");
    }
    std::byte page[kLmdbMetaBytes];
    PACKTRAIN_TRY(storage_.read(file_, offset, page));
    return parse_lmdb_meta(page);
  }

  // LMDB opens no file of which one meta page is damaged: the other may be of an older state.
  Status read_meta() {
    auto first = read_meta_at(0);
    if (!first.ok()) {
      PACKTRAIN_TRY(settled(first.status(), 0, kLmdbMetaBytes));
      for (uint32_t bytes = kLmdbSmallestPage; bytes <= kLmdbLargestPage; bytes *= 2) {
        auto second = read_meta_at(bytes);
        if (second.ok() && second->page_bytes == bytes) return take_meta(*second);
        if (!second.ok() && second.status().code() != Code::corrupt) return second.status();
      }
      return first.status();
    }
    auto second = read_meta_at(first->page_bytes);
    if (second.ok() && second->page_bytes != first->page_bytes) {
      second = Status(Code::corrupt, "the two meta pages differ in the size of pages");
    }
    if (!second.ok()) {
      PACKTRAIN_TRY(settled(second.status(), first->page_bytes, kLmdbMetaBytes));
      return take_meta(*first);
    }
    return take_meta(first->transaction < second->transaction ? *second : *first);
  }

  Status take_meta(const LmdbMeta& meta) {
    page_bytes_ = meta.page_bytes;
    tree_ = meta.tree;
    // A file may be longer than its last page in use, and shorter where that page was given back unwritten.
    const uint64_t in_file = (file_.size() + meta.page_bytes - 1) / meta.page_bytes;
    claimed_.resize(static_cast<size_t>(std::min(in_file - 1, meta.last_page) + 1));
    return {};
  }

  // Every page belongs to one parent or one value; this finds circles, and values that share bytes.
  Status claim(uint64_t page, uint64_t count) {
    if (page < 2 || page >= claimed_.size() || count > claimed_.size() - page) {
      return Status(Code::corrupt, "page " + std::to_string(page) + " lies outside of the file");
    }
    for (uint64_t at = page; at < page + count; ++at) {
      if (claimed_[at]) return Status(Code::corrupt, "page " + std::to_string(at) + " is used twice");
      claimed_[at] = true;
    }
    return {};
  }

  Status claim_tree_page(uint64_t page) {
    PACKTRAIN_TRY(claim(page, 1));
    if (file_.size() / page_bytes_ > page) return {};
    return Status(Code::corrupt, "page " + std::to_string(page) + " is cut short");
  }

  Status walk(const LmdbTree& tree) {
    if (tree.depth > kLmdbDeepestTree || (tree.depth == 0) != (tree.root == kLmdbNoPage)) {
      return Status(Code::corrupt, "a tree of depth " + std::to_string(tree.depth) +
                                       " cannot have its root at page " + std::to_string(tree.root));
    }
    const uint64_t before = entries_.size() + named_.size();
    if (tree.depth > 0) {
      PACKTRAIN_TRY(claim_tree_page(tree.root));
      std::vector<uint64_t> level = {tree.root};
      for (uint32_t depth = tree.depth; depth > 1; --depth) {
        PACKTRAIN_ASSIGN(below, read_branches(level));
        level = std::move(below);
      }
      PACKTRAIN_TRY(read_leaves(level));
    }
    const uint64_t found = entries_.size() + named_.size() - before;
    if (found == tree.entries || options_.recover) return {};
    return Status(Code::corrupt, "the tree holds " + std::to_string(found) + " entries where " +
                                     std::to_string(tree.entries) + " are recorded");
  }

  Status read_pages(std::span<const uint64_t> numbers,
                    const std::function<Status(size_t position, Bytes page)>& each) {
    std::vector<Stretch> pages;
    pages.reserve(numbers.size());
    for (const uint64_t number : numbers) pages.push_back({number * page_bytes_, page_bytes_});
    return read_merged(storage_, file_, pages, each);
  }

  // The pages below these, in the order of the tree.
  Result<std::vector<uint64_t>> read_branches(std::span<const uint64_t> level) {
    std::vector<std::vector<uint64_t>> children(level.size());
    PACKTRAIN_TRY(read_pages(level, [&](size_t position, Bytes page) {
      return settled(take_branch(level[position], page, children[position]), level[position] * page_bytes_,
                     page_bytes_);
    }));
    std::vector<uint64_t> below;
    for (const std::vector<uint64_t>& some : children) below.insert(below.end(), some.begin(), some.end());
    return below;
  }

  Status take_branch(uint64_t number, Bytes page, std::vector<uint64_t>& children) {
    PACKTRAIN_ASSIGN(nodes, check_lmdb_page(page, kLmdbBranch, number));
    for (size_t i = 0; i < nodes; ++i) {
      PACKTRAIN_ASSIGN(node, parse_lmdb_node(page, kLmdbBranch, i));
      Status status = claim_tree_page(node.child);
      if (status.ok()) {
        children.push_back(node.child);
      } else if (!passes_over(status, number * page_bytes_, page_bytes_)) {
        return status;
      }
    }
    return {};
  }

  Status read_leaves(std::span<const uint64_t> level) {
    leaves_.resize(level.size());
    uint64_t done = 0;
    return read_pages(level, [&](size_t position, Bytes page) {
      leaves_[position].first = entries_.size();
      Status status = take_leaf(level[position], page);
      leaves_[position].count = entries_.size() - leaves_[position].first;
      PACKTRAIN_TRY(settled(status, level[position] * page_bytes_, page_bytes_));
      return pace_.tell({.phase = "index", .items = ++done, .items_total = level.size(), .unit = "pages"});
    });
  }

  Status take_leaf(uint64_t number, Bytes page) {
    PACKTRAIN_ASSIGN(nodes, check_lmdb_page(page, kLmdbLeaf, number));
    size_t room = page.size() - kLmdbPageHeadBytes - nodes * kLmdbSlotBytes;
    for (size_t i = 0; i < nodes; ++i) {
      PACKTRAIN_ASSIGN(node, parse_lmdb_node(page, kLmdbLeaf, i));
      // Nodes that share bytes would make more entries of a page than it can hold.
      if (node.bytes > room) return Status(Code::corrupt, "nodes of a page overlap");
      room -= node.bytes;
      PACKTRAIN_TRY(check_kind(node));
      if ((node.flags & kLmdbTree) != 0) {
        PACKTRAIN_ASSIGN(tree, parse_lmdb_tree(page.subspan(node.value_at, node.value_bytes)));
        named_.emplace_back(node.key, tree);
        continue;
      }
      Entry entry{.offset = number * page_bytes_ + node.value_at,
                  .name_at = names_.size(),
                  .label = kNoLabel,
                  .bytes = static_cast<uint32_t>(node.value_bytes),
                  .name_bytes = 0};
      Bytes value = page.subspan(node.value_at);
      if ((node.flags & kLmdbBigValue) != 0) {
        value = {};
        if (Status status = place_big(node, entry); !status.ok()) {
          if (!passes_over(status, number * page_bytes_, page_bytes_)) return status.at(printable(node.key));
          continue;
        }
      }
      append_name(node.key, (tree_.flags & kLmdbIntegerKeys) != 0, names_);
      entry.name_bytes = static_cast<uint32_t>(names_.size() - entry.name_at);
      if (entry.bytes <= kLabelBytes && is_label_member(name_of(entry))) {
        PACKTRAIN_TRY(read_label(value, entry));
      }
      entries_.push_back(entry);
    }
    return {};
  }

  static Status check_kind(const LmdbNode& node) {
    if (node.key.empty()) return Status(Code::corrupt, "a key is empty");
    if ((node.flags & kLmdbDuplicates) != 0) {
      return Status(Code::unsupported,
                    "the key " + printable(node.key) +
                        " has several values (dupsort), packtrain reads one for each; copy "
                        "them under keys of their own");
    }
    if ((node.flags & kLmdbTree) != 0 && (node.flags & kLmdbBigValue) != 0) {
      return Status(Code::corrupt, "the record of a named database is not in its leaf");
    }
    return {};
  }

  // A value in pages of its own, all of whose bytes must be there.
  Status place_big(const LmdbNode& node, Entry& entry) {
    PACKTRAIN_TRY(claim(node.child, lmdb_overflow_pages(node.value_bytes, page_bytes_)));
    entry.offset = node.child * page_bytes_ + kLmdbPageHeadBytes;
    if (entry.offset <= file_.size() && entry.bytes <= file_.size() - entry.offset) return {};
    return Status(Code::corrupt, "the value is cut short");
  }

  // `value`: from its first byte on, if it lies in the leaf.
  Status read_label(Bytes value, Entry& entry) const {
    std::byte apart[kLabelBytes];
    if (value.size() < entry.bytes) {
      PACKTRAIN_TRY(storage_.read(file_, entry.offset, std::span(apart).first(entry.bytes)));
      value = apart;
    }
    entry.label = parse_label(value.first(entry.bytes)).value_or(kNoLabel);
    return {};
  }

  // Where most keys have no extension, each value is a sample of its own, with one field; its name, if some
  // of the values agree on what they are, says that.
  Status find_extension(std::string& extension) const {
    std::vector<size_t> lacking;
    size_t named = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (lacks_extension(name_of(entries_[i]))) {
        lacking.push_back(i);
      } else if (split_member_name(name_of(entries_[i]))) {
        ++named;
      }
    }
    if (lacking.size() <= named) return {};
    return name_by_content(lacking, "data", extension);
  }

  // `column`: the name where they do not agree.
  Status name_by_content(const std::vector<size_t>& some, std::string_view column,
                         std::string& field_name) const {
    const size_t looks = std::min(kValuesLookedAt, some.size());
    for (size_t look = 0; look < looks; ++look) {
      const Entry& entry = entries_[some[look * some.size() / looks]];
      std::byte head[kMetaHeadBytes];
      const MutableBytes first = std::span(head).first(std::min<size_t>(entry.bytes, sizeof head));
      PACKTRAIN_TRY(storage_.read(file_, entry.offset, first));
      std::string field = field_of_column(column, first);
      if (look > 0 && field != field_name) field = column;
      field_name = std::move(field);
      if (field_name == column) break;
    }
    return {};
  }

  Storage& storage_;
  const File& file_;
  const IndexOptions& options_;
  Pace pace_;
  uint32_t page_bytes_ = 0;
  LmdbTree tree_;  // the one being walked
  std::vector<std::pair<std::string, LmdbTree>> named_;
  std::vector<bool> claimed_;  // by page
  HugeVector<Entry> entries_;  // as their leaves arrived
  HugeVector<Leaf> leaves_;    // in the order of the tree
  HugeString names_;
};

std::string inner_path(std::string_view folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.remove_suffix(1);
  return std::string(folder).append("/").append(kDataFile);
}

// The file of a container that is a folder, or the file itself.
Result<std::string> data_file(Storage& storage, std::string_view path) {
  PACKTRAIN_ASSIGN(info, storage.stat(path));
  return info.kind == FileKind::folder ? inner_path(path) : std::string(path);
}

bool recognise_lmdb(Storage& storage, std::string_view path) {
  auto data = data_file(storage, path);
  if (!data.ok() || !storage.stat(*data).ok()) return false;  // a folder is asked often, and rarely is one
  auto file = storage.open(*data);
  std::byte head[kLmdbMetaBytes];
  if (!file.ok() || (*file)->size() < sizeof head || !storage.read(**file, 0, head).ok()) return false;
  return looks_like_lmdb(head);
}

Status index_lmdb(Storage& storage, std::string_view path, const IndexOptions& options, IndexBuilder& out) {
  PACKTRAIN_ASSIGN(data, data_file(storage, path));
  PACKTRAIN_ASSIGN(file, storage.open(data));
  LmdbIndexer indexer(storage, *file, options);
  MemberList members;
  Status status = indexer.run();
  if (status.ok()) status = indexer.add_members(members);
  if (!status.ok()) return status.at(data);
  ShardSpec spec = shard_spec(kLmdb, data, *file, options);
  if (!options.shard_path.empty() && data != path) spec.path = inner_path(options.shard_path);
  const uint32_t shard = out.add_shard(std::move(spec));
  status = members.add_samples(Adjacency::irrelevant, shard, options, out);
  return status.ok() ? status : status.at(data);
}

}  // namespace

const Format kLmdb = {
    .name = "lmdb",
    .suffix = ".lmdb",
    .summary = "LMDB databases, a value for each field",
    .recognise = recognise_lmdb,
    .index = index_lmdb,
    .layout = nullptr,
    .create = create_lmdb,
    .keeps_order = false,
    .folder = true,
    .inner_file = kDataFile,
};

}  // namespace packtrain
