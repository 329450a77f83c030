// Parquet: the indexer. Values in uncompressed plain pages become plain extents: footer, heads of pages,
// labels and keys are read, other values are not. Values in compressed pages and in dictionaries become
// slices of what those decode to. Everything else that Parquet can do is refused with advice.
#include <algorithm>
#include <atomic>

#include "base/little_endian.h"
#include "base/threads.h"
#include "base/words.h"
#include "format/grouping.h"
#include "format/pace.h"
#include "format/parquet_pages.h"
#include "format/parquet_records.h"
#include "format/parquet_write.h"
#include "format/table.h"
#include "format/table_columns.h"
#include "io/grant.h"
#include "packtrain/codec.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

constexpr uint64_t kFooterGuess = uint64_t{64} << 10;  // the footer of a file with few row groups
constexpr uint64_t kBytesOfNames = 64;                 // of a value, to see what it is
// Row groups that threads read at a time, and the rows of all of them.
constexpr size_t kGroupsAtOnce = 8;
constexpr uint64_t kRowsAtOnce = uint64_t{1} << 17;
constexpr uint32_t kMostGroupReaders = 4;

// The footer of a file.
struct FooterOfFile {
  std::vector<std::byte> metadata;
  ParquetFooter footer;  // views into `metadata`
  uint64_t at = 0;
};

Result<FooterOfFile> read_parquet_footer(Storage& storage, const File& file) {
  FooterOfFile found;
  const uint64_t size = file.size();
  if (size < kParquetMagic.size() + kParquetTailBytes) return Status(Code::corrupt, "the file is cut short");
  const uint64_t tail_bytes = std::min(size, kFooterGuess);
  std::vector<std::byte> tail(static_cast<size_t>(tail_bytes));
  PACKTRAIN_TRY(storage.read(file, size - tail_bytes, tail));
  if (as_text(tail).ends_with("PARE"))
    return Status(Code::unsupported, "has an encrypted footer; read it with its key and write it again");
  if (!as_text(tail).ends_with(kParquetMagic)) {
    return Status(Code::corrupt,
                  "no footer: the file is cut short, and without it a Parquet file cannot be read; "
                  "get or make it again")
        .at("@ " + std::to_string(size));
  }
  const uint64_t bytes = load_le<uint32_t>(tail.data() + tail.size() - kParquetTailBytes);
  if (bytes > size - kParquetMagic.size() - kParquetTailBytes)
    return Status(Code::corrupt, "a footer of " + std::to_string(bytes) + " bytes does not fit the file");
  found.at = size - kParquetTailBytes - bytes;
  if (bytes + kParquetTailBytes <= tail.size()) {
    found.metadata.assign(tail.end() - static_cast<ptrdiff_t>(bytes + kParquetTailBytes),
                          tail.end() - static_cast<ptrdiff_t>(kParquetTailBytes));
  } else {
    found.metadata.resize(static_cast<size_t>(bytes));
    PACKTRAIN_TRY(storage.read(file, found.at, found.metadata));
  }
  auto footer = parse_parquet_footer(found.metadata);
  if (!footer.ok()) return footer.status().at("footer @ " + std::to_string(found.at));
  found.footer = std::move(*footer);
  return found;
}

// The blocks of a column in one row group, as the index numbers them: those that samples use.
struct ParquetBlocks {
  const std::vector<ParquetBlock>* of = nullptr;
  std::vector<uint64_t> ids = {};  // + 1; 0: not added yet

  uint64_t id(uint32_t block, uint32_t shard, IndexBuilder& out) {
    ids.resize(of->size());
    const ParquetBlock& coded = (*of)[block];
    if (ids[block] == 0) {
      ids[block] = 1 + out.add_block({.shard = shard,
                                      .pipeline = out.add_pipeline(coded.pipeline),
                                      .check_kind = coded.crc ? CheckKind::crc32 : CheckKind::none,
                                      .offset = coded.offset,
                                      .stored = coded.stored,
                                      .raw = coded.raw,
                                      .check = coded.crc.value_or(0)});
    }
    return ids[block] - 1;
  }
};

// Indexes one file. One thread at a time; several read row groups. Memory: the footer, and about 40 bytes for
// each value of a row group, or of a few small ones; what it decodes on the way.
class ParquetIndexer {
 public:
  ParquetIndexer(Storage& storage, std::string_view path, const File& file, const IndexOptions& options,
                 IndexBuilder& out)
      : storage_(storage), path_(path), file_(file), options_(options), out_(out), pace_(options.progress) {}

  Status run() {
    PACKTRAIN_ASSIGN(found, read_parquet_footer(storage_, file_));
    metadata_ = std::move(found.metadata);  // its bytes stay where they are
    footer_ = std::move(found.footer);
    footer_at_ = found.at;
    for (const ParquetColumn& column : footer_.columns) columns_.push_back({column.name, column.kind});
    roles_ = table_roles(columns_, footer_.huggingface);
    note_columns(columns_, roles_, options_);
    TableFieldNames names(columns_, roles_);
    PACKTRAIN_TRY(check_groups());
    if (!roles_.classes.empty() && options_.classes == nullptr) out_.set_classes(roles_.classes);
    shard_ = out_.add_shard(shard_spec(kParquet, path_, file_, options_));
    std::vector<bool> with_bytes(roles_.fields.size());
    std::vector<GroupValues> read;
    for (size_t first = 0; first < footer_.groups.size(); first += read.size()) {
      read_groups(first, read);
      for (size_t i = first; i < first + read.size(); ++i) {
        const Status status = add_group(footer_.groups[i], read[i - first], names, with_bytes);
        read[i - first] = {};
        if (!status.ok()) PACKTRAIN_TRY(pass_over(i, status));
        PACKTRAIN_TRY(pace_.tell_now(
            {.phase = "index", .items = i + 1, .items_total = footer_.groups.size(), .unit = "row groups"}));
      }
    }
    for (size_t i = 0; i < with_bytes.size(); ++i) {
      const ParquetColumn& column = footer_.columns[roles_.fields[i]];
      if (with_bytes[i] || !column.in_struct || !column.path || rows_ == 0) continue;
      return Status(
          Code::unsupported,
          "column " + printable(column.name) +
              " holds the paths of files and not their bytes; pack the files: packtrain pack FOLDER OUT");
    }
    return {};
  }

 private:
  // What is read of one row group.
  struct GroupValues {
    std::vector<ParquetValues> values, paths;  // as roles_.fields
    size_t fields_read = 0;
    std::vector<int64_t> numbers;  // labels
    ParquetValues keys;
    Status status;
  };

  // That the row groups claim no more than the file can hold.
  Status check_groups() const {
    // Rows that repeat each other take next to nothing.
    const uint64_t most_rows = 1024 + 64 * std::min(file_.size(), uint64_t{1} << 50);
    uint64_t rows = 0, bytes = 0;
    for (const ParquetGroup& group : footer_.groups) {
      rows += std::min(group.rows, most_rows + 1);
      if (rows > most_rows) return Status(Code::corrupt, "the footer has more rows than the file could hold");
    }
    for (const ParquetChunk& chunk : footer_.chunks) {
      bytes += chunk.bytes < 0 ? 0 : std::min(static_cast<uint64_t>(chunk.bytes), file_.size() + 1);
      if (bytes > file_.size()) return Status(Code::corrupt, "the columns are longer than the file");
    }
    return rows > 0 && roles_.fields.empty() ? no_fields(columns_) : Status();
  }

  Status pass_over(size_t number, const Status& damage) const {
    Status placed = damage.at("row group " + std::to_string(number));
    if (damage.code() != Code::corrupt) return placed;
    if (!options_.recover) return with_way_out(placed);
    const ParquetGroup& group = footer_.groups[number];
    const bool any = !footer_.leaves.empty();
    const int64_t offset = any ? footer_.chunks[group.first_chunk].data_page : 0;
    if (options_.damage)
      options_.damage->push_back({static_cast<uint64_t>(std::max<int64_t>(offset, 0)), 0,
                                  "row group " + std::to_string(number) + ": " + damage.message()});
    return {};
  }

  Status read(const ParquetGroup& group, size_t leaf, Bring bring, ParquetValues& into) const {
    ParquetPages pages(storage_, file_, footer_at_);
    return pages.read(footer_.leaves[leaf], footer_.chunks[group.first_chunk + leaf], group.rows, bring,
                      kLabelBytes, into);
  }

  Status read_column(const ParquetGroup& group, size_t column, Bring bring, ParquetValues& into) const {
    Status status = read(group, footer_.columns[column].value, bring, into);
    if (status.code() == Code::unsupported) status = with_advice(status);
    return status.ok() ? status : status.at("column " + printable(footer_.columns[column].name));
  }

  // What pyarrow reads can be had, as an Arrow file of the same columns.
  Status with_advice(const Status& status) const {
    std::string stem(path_);
    if (stem.ends_with(kParquet.suffix)) stem.resize(stem.size() - kParquet.suffix.size());
    const auto quoted = [](const std::string& path) { return "'" + printable(path) + "'"; };
    return Status(status.code(), status.message() +
                                     ", which packtrain does not read; pyarrow does: python -c \"import "
                                     "packtrain; packtrain.arrow_from_parquet(" +
                                     quoted(std::string(path_)) + ", " + quoted(stem + ".arrow") +
                                     ")\" makes " + printable(stem) +
                                     ".arrow of it, which can be used instead");
  }

  // Where a value lies, as the index has it.
  void add_value(const std::string& name, const ParquetValues::Value& value, ParquetBlocks& blocks,
                 std::string_view path) {
    if (value.block == ParquetValues::kPlain) {
      out_.add_field(name, shard_, value.offset, value.bytes, CheckKind::none, 0, path);
      return;
    }
    const Slice slice{blocks.id(value.block, shard_, out_), value.offset, value.bytes};
    out_.add_field(name, std::span(&slice, 1), path);
  }

  // A page is decoded for each sample that is taken out of it, unless it was a moment ago.
  void note_large_pages(size_t column, const ParquetValues& values) const {
    constexpr uint64_t kLargePage = uint64_t{4} << 20;
    uint64_t largest = 0;
    for (const ParquetBlock& block : values.blocks) largest = std::max(largest, block.raw);
    if (largest < kLargePage || values.rows.size() < 2) return;
    add_note(options_, "column " + printable(footer_.columns[column].name) +
                           " is compressed in pages of many megabytes, of which each sample costs decoding "
                           "one; before training from it, pack it: packtrain pack " +
                           printable(path_) + " OUT");
  }

  // The groups from `first` on: as many small ones as threads can share, or one large one.
  void read_groups(size_t first, std::vector<GroupValues>& into) const {
    const uint32_t threads = std::clamp<uint32_t>(affinity_cores(), 1, kMostGroupReaders);
    size_t count = 0;
    uint64_t rows = 0;
    do {
      rows += std::min(footer_.groups[first + count].rows, kRowsAtOnce);
      ++count;
    } while (threads > 1 && count < kGroupsAtOnce && first + count < footer_.groups.size() &&
             footer_.groups[first + count].rows <= kRowsAtOnce - std::min(rows, kRowsAtOnce));
    into.resize(count);
    std::atomic<size_t> next = 0;
    run_on("read groups", static_cast<uint32_t>(std::min<size_t>(threads, count)), [&](uint32_t) {
      for (size_t i = next++; i < count; i = next++)
        into[i].status = read_group(footer_.groups[first + i], into[i]);
    });
  }

  Status read_group(const ParquetGroup& group, GroupValues& into) const {
    into = {};
    if (group.rows == 0) return {};
    const size_t fields = roles_.fields.size();
    into.values.resize(fields);
    into.paths.resize(fields);
    for (size_t& i = into.fields_read; i < fields; ++i) {
      const size_t column = roles_.fields[i];
      const Bring bring = column == roles_.label_text ? Bring::short_values : Bring::nothing;
      PACKTRAIN_TRY(read_column(group, column, bring, into.values[i]));
      if (footer_.columns[column].path) {
        Status status = read(group, *footer_.columns[column].path, Bring::all, into.paths[i]);
        // A path is only a name: the bytes are there without it, and the key's will do.
        if (status.code() == Code::unsupported) into.paths[i] = {};
        if (!status.ok() && status.code() != Code::unsupported) return status;
      }
    }
    if (roles_.label != TableRoles::kNone) {
      ParquetValues labels;
      PACKTRAIN_TRY(read_column(group, roles_.label, Bring::all, labels));
      PACKTRAIN_TRY(take_labels(labels, into.numbers));
    }
    if (roles_.key != TableRoles::kNone) PACKTRAIN_TRY(read_column(group, roles_.key, Bring::all, into.keys));
    return {};
  }

  Status add_group(const ParquetGroup& group, const GroupValues& read, TableFieldNames& names,
                   std::vector<bool>& with_bytes) {
    for (size_t i = 0; i < read.fields_read; ++i) note_large_pages(roles_.fields[i], read.values[i]);
    PACKTRAIN_TRY(read.status);
    if (group.rows == 0) return {};
    const auto& [values, paths, fields, numbers, keys, status] = read;
    std::vector<ParquetBlocks> blocks(fields);
    for (size_t i = 0; i < fields; ++i) blocks[i].of = &values[i].blocks;
    PACKTRAIN_TRY(settle_names(values, names));

    std::string key, path;
    for (size_t row = 0; row < group.rows; ++row) {
      key = text(keys, row);
      if (key.empty()) key = number_key(out_.samples());
      out_.begin_sample(key);
      for (size_t i = 0; i < fields; ++i) {
        const ParquetValues::Value& value = values[i].rows[row];
        if (!value.present) continue;
        with_bytes[i] = true;
        path = text(paths[i], row);
        if (path.empty()) path.assign(key).append(".").append(names.name(i));
        add_value(names.name(i), value, blocks[i], path);
        if (roles_.fields[i] != roles_.label_text) continue;
        std::optional<int64_t> label;
        if (value.bytes <= kLabelBytes) label = parse_label(as_bytes(text(values[i], row)));
        if (label) out_.set_label(*label);
        if (!label && options_.without_number != nullptr) note_left_out(key, *options_.without_number);
      }
      if (!numbers.empty()) out_.set_label(numbers[row]);
      PACKTRAIN_TRY(out_.end_sample());
    }
    rows_ += group.rows;
    return {};
  }

  static std::string_view text(const ParquetValues& values, size_t row) {
    if (values.starts.empty()) return {};
    const uint64_t start = values.starts[row];
    const uint64_t end = row + 1 < values.starts.size() ? values.starts[row + 1] : values.brought.size();
    return std::string_view(values.brought).substr(start, end - start);
  }

  Status take_labels(const ParquetValues& labels, std::vector<int64_t>& numbers) const {
    const ParquetLeaf& leaf = footer_.leaves[footer_.columns[roles_.label].value];
    numbers.reserve(labels.rows.size());
    for (size_t row = 0; row < labels.rows.size(); ++row) {
      if (!labels.rows[row].present) {
        numbers.push_back(kNoLabel);
        continue;
      }
      const char* at = labels.brought.data() + labels.starts[row];
      const int64_t number = leaf.width == 8    ? load_le<int64_t>(at)
                             : leaf.is_unsigned ? int64_t{load_le<uint32_t>(at)}
                                                : int64_t{load_le<int32_t>(at)};
      if (leaf.is_unsigned && number < 0) return Status(Code::corrupt, "a label has more than 63 bits");
      PACKTRAIN_ASSIGN(label, named_label(number, roles_.classes));
      numbers.push_back(label);
    }
    return {};
  }

  // Names the columns that go by their content, by the first value of the row group that is not empty.
  Status settle_names(const std::vector<ParquetValues>& values, TableFieldNames& names) const {
    for (size_t i = 0; i < values.size(); ++i) {
      if (!names.waits(i)) continue;
      const auto& rows = values[i].rows;
      auto first = std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.bytes > 0; });
      if (first == rows.end()) {
        if (std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.present; }))
          names.settle(i, {});
        continue;
      }
      const uint64_t length = std::min<uint64_t>(first->bytes, kBytesOfNames);
      std::vector<std::byte> bytes;
      if (first->block == ParquetValues::kPlain) {
        bytes.resize(length);
        PACKTRAIN_TRY(storage_.read(file_, first->offset, bytes));
      } else {
        const ParquetBlock& block = values[i].blocks[first->block];
        std::vector<std::byte> stored(block.stored);
        PACKTRAIN_TRY(storage_.read(file_, block.offset, stored));
        bytes.resize(block.raw);
        PACKTRAIN_TRY(decode(block.pipeline, stored, bytes));
        bytes.erase(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(first->offset));
        bytes.resize(length);
      }
      names.settle(i, bytes);
    }
    return {};
  }

  Storage& storage_;
  const std::string_view path_;
  const File& file_;
  const IndexOptions& options_;
  IndexBuilder& out_;
  Pace pace_;
  std::vector<std::byte> metadata_;
  ParquetFooter footer_;  // views into metadata_
  uint64_t footer_at_ = 0;
  std::vector<TableColumn> columns_;
  TableRoles roles_;
  uint32_t shard_ = 0;
  uint64_t rows_ = 0;
};

bool recognise_parquet(Storage& storage, std::string_view path) {
  const auto file = storage.open(path);
  std::byte head[kParquetMagic.size()];
  if (!file.ok() || (*file)->size() < sizeof head || !storage.read(**file, 0, head).ok()) return false;
  return as_text(head) == kParquetMagic;
}

Status index_parquet(Storage& storage, std::string_view path, const IndexOptions& options,
                     IndexBuilder& out) {
  PACKTRAIN_ASSIGN(file, storage.open(path));
  const Status status = ParquetIndexer(storage, path, *file, options, out).run();
  return status.ok() ? status : status.at(path);
}

// The CRC-32 of pages, of all columns that become fields.
Status parquet_own_checks(Storage& storage, std::string_view path, std::vector<CheckedStretch>& out) {
  PACKTRAIN_ASSIGN(file, storage.open(path));
  PACKTRAIN_ASSIGN(found, read_parquet_footer(storage, *file));
  ParquetPages pages(storage, *file, found.at);
  for (const ParquetGroup& group : found.footer.groups) {
    if (group.rows == 0) continue;
    for (const ParquetColumn& column : found.footer.columns) {
      PACKTRAIN_TRY(pages.own_checks(found.footer.chunks[group.first_chunk + column.value],
                                     printable(column.name), out));
    }
  }
  return {};
}

}  // namespace

const Format kParquet = {
    .name = "parquet",
    .suffix = ".parquet",
    .summary = "Parquet files: byte arrays in plain and compressed pages and in dictionaries",
    .recognise = recognise_parquet,
    .index = index_parquet,
    .layout = nullptr,
    .create = create_parquet,
    .cut = Cut::splits,
    .label_column = true,
    .own_checks = parquet_own_checks,
};

}  // namespace packtrain
