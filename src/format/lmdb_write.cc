// A bulk loader: values that have pages of their own go out as they come, all else follows once every key is
// known: leaves in the order of the keys, then each level of branches above them, the meta pages last. Needs
// no liblmdb, no memory map and no guess of its size, and the same samples give the same bytes.
#include "format/lmdb_write.h"

#include <algorithm>
#include <utility>

#include "base/little_endian.h"
#include "base/words.h"
#include "format/appender.h"
#include "format/lmdb_records.h"

namespace packtrain {
namespace {

constexpr uint32_t kWrittenPageBytes =
    4096;                           // read by LMDB everywhere, whatever the pages of the machine are
constexpr uint64_t kFirstPage = 2;  // behind the meta pages
constexpr uint64_t kSmallestMap = uint64_t{10} << 20;

size_t even(size_t bytes) { return bytes + bytes % 2; }

// A page of nodes in the making: the table grows from the front, the nodes from the back, as LMDB fills it.
class PageBuilder {
 public:
  bool fits(size_t node_bytes) const { return even(node_bytes) + kLmdbSlotBytes <= upper_ - lower_; }
  bool empty() const { return lower_ == kLmdbPageHeadBytes; }

  // Room for a node, whose bytes are zero.
  std::byte* add(size_t node_bytes) {
    upper_ -= even(node_bytes);
    store_le(page_.data() + lower_, static_cast<uint16_t>(upper_));
    lower_ += kLmdbSlotBytes;
    return page_.data() + upper_;
  }

  // The page as it goes to disk; a new one begins.
  Status append_to(Appender& file, uint16_t kind) {
    store_le(page_.data(), file.position() / kWrittenPageBytes);
    store_le(page_.data() + 10, kind);
    store_le(page_.data() + 12, static_cast<uint16_t>(lower_));
    store_le(page_.data() + 14, static_cast<uint16_t>(upper_));
    PACKTRAIN_TRY(file.append(page_));
    *this = PageBuilder();
    return {};
  }

 private:
  std::vector<std::byte> page_ = std::vector<std::byte>(kWrittenPageBytes);
  size_t lower_ = kLmdbPageHeadBytes, upper_ = kWrittenPageBytes;
};

void write_node_head(uint64_t low48, std::string_view key, std::byte* node) {
  store_le(node, low48);  // the upper 16 bits are those of the key's length
  store_le(node + 6, static_cast<uint16_t>(key.size()));
  std::copy_n(as_bytes(key).begin(), key.size(), node + kLmdbNodeHeadBytes);
}

// Memory: names and small values, and 24 bytes for each. One thread at a time.
class LmdbWriter : public ContainerWriter {
 public:
  LmdbWriter(std::unique_ptr<Writer> writer, uint64_t size, std::string path)
      : file_(std::move(writer), size, kFirstPage * kWrittenPageBytes), path_(std::move(path)) {}

  Status add(const SampleToWrite& sample) override {
    for (const SampleToWrite::Field& field : sample.fields) {
      name_.assign(sample.key).append(".").append(field.name);
      Status status = add_value(field.bytes);
      if (!status.ok()) return status.at(printable(name_)).at(path_);
    }
    return {};
  }

  Status finish() override {
    std::sort(entries_.begin(), entries_.end(),
              [&](const Entry& a, const Entry& b) { return name_of(a) < name_of(b); });
    for (size_t i = 1; i < entries_.size(); ++i) {
      if (name_of(entries_[i - 1]) != name_of(entries_[i])) continue;
      return Status(Code::invalid, "was added twice; LMDB keeps one value for each key")
          .at(printable(name_of(entries_[i])))
          .at(path_);
    }
    if (!entries_.empty()) {
      PACKTRAIN_TRY(write_leaves());
      for (tree_.depth = 1; level_.size() > 1; ++tree_.depth) PACKTRAIN_TRY(write_branches());
      tree_.root = level_.front().page;
    }
    tree_.entries = entries_.size();
    PACKTRAIN_TRY(file_.settle());
    PACKTRAIN_TRY(write_metas());
    return file_.commit();
  }

 private:
  struct Entry {
    uint64_t name_at, value_at;  // into names_; into small_, or the first page if it is big
    uint32_t value_bytes;
    uint16_t name_bytes;
    bool big;
  };
  struct Child {
    uint64_t page;
    size_t first;  // entry below it, into entries_
  };

  std::string_view name_of(const Entry& entry) const {
    return std::string_view(names_).substr(entry.name_at, entry.name_bytes);
  }

  Status add_value(Bytes value) {
    if (name_.size() > kLmdbLongestKey) {
      return Status(Code::invalid,
                    "has " + std::to_string(name_.size()) +
                        " bytes as a key, LMDB allows 511; pack with --format zip or webdataset");
    }
    if (value.size() > kLmdbLongestValue) {
      return Status(Code::invalid,
                    "has " + bytes_in_words(value.size()) +
                        ", LMDB allows 4 GiB for a value; pack with --format zip or webdataset");
    }
    Entry entry{.name_at = names_.size(),
                .value_at = small_.size(),
                .value_bytes = static_cast<uint32_t>(value.size()),
                .name_bytes = static_cast<uint16_t>(name_.size()),
                .big = lmdb_is_big(name_.size(), value.size(), kWrittenPageBytes)};
    if (entry.big) {
      entry.value_at = file_.position() / kWrittenPageBytes;
      PACKTRAIN_TRY(append_overflow(value));
    } else {
      small_.insert(small_.end(), value.begin(), value.end());
    }
    names_ += name_;
    entries_.push_back(entry);
    return {};
  }

  Status append_overflow(Bytes value) {
    const uint64_t pages = lmdb_overflow_pages(value.size(), kWrittenPageBytes);
    std::byte head[kLmdbPageHeadBytes] = {};
    store_le(head, file_.position() / kWrittenPageBytes);
    store_le(head + 10, kLmdbOverflow);
    store_le(head + 12, static_cast<uint32_t>(pages));
    PACKTRAIN_TRY(file_.append(head));
    PACKTRAIN_TRY(file_.append(value));
    tree_.overflow_pages += pages;
    return file_.append_zeros(pages * kWrittenPageBytes - sizeof head - value.size());
  }

  Status write_leaves() {
    PageBuilder page;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Entry& entry = entries_[i];
      const size_t value_bytes = entry.big ? sizeof(uint64_t) : entry.value_bytes;
      const size_t bytes = kLmdbNodeHeadBytes + entry.name_bytes + value_bytes;
      if (!page.fits(bytes)) PACKTRAIN_TRY(append_page(page, kLmdbLeaf));
      if (page.empty()) level_.push_back({file_.position() / kWrittenPageBytes, i});
      std::byte* node = page.add(bytes);
      const uint64_t flags = entry.big ? kLmdbBigValue : 0;
      write_node_head(entry.value_bytes | flags << 32, name_of(entry), node);
      std::byte* value = node + kLmdbNodeHeadBytes + entry.name_bytes;
      if (entry.big) {
        store_le(value, entry.value_at);
      } else {
        std::copy_n(small_.begin() + static_cast<ptrdiff_t>(entry.value_at), value_bytes, value);
      }
    }
    return append_page(page, kLmdbLeaf);
  }

  // The level above the one written last. No branch has a single child: LMDB holds that for damage.
  Status write_branches() {
    std::vector<Child> above;
    PageBuilder page;
    size_t in_page = 0;
    for (size_t i = 0; i < level_.size(); ++i) {
      // The key of the first child is never looked at, and left out.
      std::string_view key = page.empty() ? std::string_view() : name_of(entries_[level_[i].first]);
      const bool leaves_one_over = i + 2 == level_.size() && in_page >= 2 && !two_fit(page, i);
      if (!page.fits(kLmdbNodeHeadBytes + key.size()) || leaves_one_over) {
        PACKTRAIN_TRY(append_page(page, kLmdbBranch));
        in_page = 0;
        key = {};
      }
      if (page.empty()) above.push_back({file_.position() / kWrittenPageBytes, level_[i].first});
      write_node_head(level_[i].page, key, page.add(kLmdbNodeHeadBytes + key.size()));
      ++in_page;
    }
    PACKTRAIN_TRY(append_page(page, kLmdbBranch));
    level_ = std::move(above);
    return {};
  }

  bool two_fit(const PageBuilder& page, size_t child) const {
    const auto node_bytes = [&](size_t i) {
      return even(kLmdbNodeHeadBytes + entries_[level_[i].first].name_bytes) + kLmdbSlotBytes;
    };
    return page.fits(node_bytes(child) + node_bytes(child + 1) - kLmdbSlotBytes);
  }

  Status append_page(PageBuilder& page, uint16_t kind) {
    ++(kind == kLmdbLeaf ? tree_.leaf_pages : tree_.branch_pages);
    return page.append_to(file_, kind);
  }

  // Both pages name the one state there is, so that either serves; LMDB takes the second, and its next writer
  // overwrites the first.
  Status write_metas() {
    const uint64_t bytes = file_.position();
    LmdbMeta meta{
        .page_bytes = kWrittenPageBytes,
        .map_bytes = std::max(kSmallestMap, (bytes + bytes / 4) / kWrittenPageBytes * kWrittenPageBytes),
        .tree = tree_,
        .last_page = bytes / kWrittenPageBytes - 1};
    std::vector<std::byte> pages(kFirstPage * kWrittenPageBytes);
    for (uint64_t number = 0; number < kFirstPage; ++number) {
      meta.transaction = number;
      write_lmdb_meta(meta, number, pages.data() + number * kWrittenPageBytes);
    }
    return file_.overwrite(0, pages);
  }

  Appender file_;
  const std::string path_;
  std::string name_, names_;
  std::vector<std::byte> small_;
  std::vector<Entry> entries_;
  std::vector<Child> level_;  // the pages of the level written last
  LmdbTree tree_;
};

}  // namespace

Result<std::unique_ptr<ContainerWriter>> create_lmdb(Storage& storage, std::string_view path,
                                                     const WriteSpec& spec) {
  if (spec.compress != "none" && spec.compress != "auto") {
    return Status(Code::unsupported, "lmdb keeps values as they are: --compress none, not " + spec.compress);
  }
  PACKTRAIN_ASSIGN(writer, storage.create(path, spec.expected_bytes, spec.write));
  return std::unique_ptr<ContainerWriter>(
      new LmdbWriter(std::move(writer), spec.expected_bytes, std::string(path)));
}

}  // namespace packtrain
