// Parquet: the indexer. Values in uncompressed plain pages become plain extents; footer, heads of pages,
// labels and keys are read, other values are not. Everything else that Parquet can do is refused with advice.
#include <algorithm>

#include "base/little_endian.h"
#include "base/words.h"
#include "format/grouping.h"
#include "format/pace.h"
#include "format/parquet_pages.h"
#include "format/parquet_records.h"
#include "format/parquet_write.h"
#include "format/table.h"
#include "format/table_columns.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

constexpr uint64_t kFooterGuess = uint64_t{64} << 10;  // the footer of a file with few row groups
constexpr uint64_t kBytesOfNames = 64;                 // of a value, to see what it is

// Indexes one file. One thread at a time. Memory: the footer, and about 40 bytes for each value of a row
// group.
class ParquetIndexer {
 public:
  ParquetIndexer(Storage& storage, std::string_view path, const File& file, const IndexOptions& options,
                 IndexBuilder& out)
      : storage_(storage), path_(path), file_(file), options_(options), out_(out), pace_(options.progress) {}

  Status run() {
    PACKTRAIN_TRY(read_footer());
    for (const ParquetColumn& column : footer_.columns) columns_.push_back({column.name, column.kind});
    roles_ = table_roles(columns_, footer_.huggingface);
    note_columns(roles_, options_);
    TableFieldNames names(columns_, roles_);
    PACKTRAIN_TRY(check_groups());
    if (!roles_.classes.empty() && options_.classes == nullptr) out_.set_classes(roles_.classes);
    shard_ = out_.add_shard(shard_spec(kParquet, path_, file_, options_));
    std::vector<bool> with_bytes(roles_.fields.size());
    for (size_t i = 0; i < footer_.groups.size(); ++i) {
      const Status status = add_group(footer_.groups[i], names, with_bytes);
      if (!status.ok()) PACKTRAIN_TRY(pass_over(i, status));
      PACKTRAIN_TRY(pace_.tell_now(
          {.phase = "index", .items = i + 1, .items_total = footer_.groups.size(), .unit = "row groups"}));
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
  Status read_footer() {
    const uint64_t size = file_.size();
    if (size < kParquetMagic.size() + kParquetTailBytes)
      return Status(Code::corrupt, "the file is cut short");
    const uint64_t tail_bytes = std::min(size, kFooterGuess);
    std::vector<std::byte> tail(static_cast<size_t>(tail_bytes));
    PACKTRAIN_TRY(storage_.read(file_, size - tail_bytes, tail));
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
    footer_at_ = size - kParquetTailBytes - bytes;
    if (bytes + kParquetTailBytes <= tail.size()) {
      metadata_.assign(tail.end() - static_cast<ptrdiff_t>(bytes + kParquetTailBytes),
                       tail.end() - static_cast<ptrdiff_t>(kParquetTailBytes));
    } else {
      metadata_.resize(static_cast<size_t>(bytes));
      PACKTRAIN_TRY(storage_.read(file_, footer_at_, metadata_));
    }
    auto footer = parse_parquet_footer(metadata_);
    if (!footer.ok()) return footer.status().at("footer @ " + std::to_string(footer_at_));
    footer_ = std::move(*footer);
    return {};
  }

  // That the row groups claim no more than the file can hold.
  Status check_groups() const {
    uint64_t rows = 0, bytes = 0;
    for (const ParquetGroup& group : footer_.groups) {
      rows += std::min(group.rows, file_.size() + 1);
      if (rows > file_.size()) return Status(Code::corrupt, "the footer has more rows than the file bytes");
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

  Status read(const ParquetGroup& group, size_t leaf, Bring bring, ParquetValues& into) {
    ParquetPages pages(storage_, file_, footer_at_);
    return pages.read(footer_.leaves[leaf], footer_.chunks[group.first_chunk + leaf], group.rows, bring,
                      kLabelBytes, into);
  }

  Status read_column(const ParquetGroup& group, size_t column, Bring bring, ParquetValues& into) {
    const Status status = read(group, footer_.columns[column].value, bring, into);
    return status.ok() ? status : status.at("column " + printable(footer_.columns[column].name));
  }

  Status add_group(const ParquetGroup& group, TableFieldNames& names, std::vector<bool>& with_bytes) {
    if (group.rows == 0) return {};
    const size_t fields = roles_.fields.size();
    std::vector<ParquetValues> values(fields), paths(fields);
    ParquetValues labels, keys;
    for (size_t i = 0; i < fields; ++i) {
      const size_t column = roles_.fields[i];
      const Bring bring = column == roles_.label_text ? Bring::short_values : Bring::nothing;
      PACKTRAIN_TRY(read_column(group, column, bring, values[i]));
      if (footer_.columns[column].path) {
        Status status = read(group, *footer_.columns[column].path, Bring::all, paths[i]);
        // A path is only a name: the bytes are there without it.
        if (status.code() == Code::unsupported) paths[i] = {};
        if (!status.ok() && status.code() != Code::unsupported) return status;
      }
    }
    std::vector<int64_t> numbers;
    if (roles_.label != TableRoles::kNone) {
      PACKTRAIN_TRY(read_column(group, roles_.label, Bring::all, labels));
      PACKTRAIN_TRY(take_labels(labels, numbers));
    }
    if (roles_.key != TableRoles::kNone) PACKTRAIN_TRY(read_column(group, roles_.key, Bring::all, keys));
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
        out_.add_field(names.name(i), shard_, value.offset, value.bytes, CheckKind::none, 0, path);
        if (roles_.fields[i] == roles_.label_text && value.bytes <= kLabelBytes)
          out_.set_label(parse_label(as_bytes(text(values[i], row))).value_or(kNoLabel));
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
      std::vector<std::byte> bytes(std::min<size_t>(first->bytes, kBytesOfNames));
      PACKTRAIN_TRY(storage_.read(file_, first->offset, bytes));
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

}  // namespace

const Format kParquet = {
    .name = "parquet",
    .suffix = ".parquet",
    .summary = "Parquet files with uncompressed plain pages",
    .recognise = recognise_parquet,
    .index = index_parquet,
    .layout = nullptr,
    .create = create_parquet,
    .cut = Cut::splits,
    .label_column = true,
};

}  // namespace packtrain
