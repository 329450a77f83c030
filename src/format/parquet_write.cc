// Two layouts. Samples of one image each, as Hugging Face datasets keeps images: "image", a struct of bytes
// and path, and "label". Everything else: a column for each field, "label", and "__key__".
//
// Uncompressed plain pages. A large value has a page of its own, small ones share one; lists of all pages
// stand in front of the footer, so that the file can be indexed by many short reads at a time. The first
// column goes out as it comes; the others of a row group wait in memory until it is full.
#include "format/parquet_write.h"

#include <algorithm>
#include <limits>

#include "base/little_endian.h"
#include "base/words.h"
#include "format/appender.h"
#include "format/columns.h"
#include "format/parquet_records.h"
#include "format/thrift_compact.h"

namespace packtrain {
namespace {

constexpr uint64_t kSharedPageBytes = 4096;             // a page of several values is not much longer
constexpr uint64_t kGroupRows = 1000;                   // of a row group, at most
constexpr uint64_t kWaitingBytes = uint64_t{32} << 20;  // a row group is closed when so many wait
constexpr uint64_t kLongestParquetValue = std::numeric_limits<int32_t>::max() - 1024;
constexpr std::string_view kImageFeatures = R"({"info": {"features": {"image": {"_type": "Image"}}}})";
constexpr std::string_view kLabelledImageFeatures =
    R"({"info": {"features": {"image": {"_type": "Image"}, "label": {"dtype": "int64", "_type": "Value"}}}})";

struct Page {
  uint64_t offset = 0, bytes = 0, first_row = 0;  // offset in the chunk
};

// A column of the row group in the making.
struct ParquetColumn {
  std::vector<std::string> path;  // its names in the schema
  ParquetType type = ParquetType::byte_array;
  bool text = false;
  uint32_t definition = 1;

  // The page that is being filled:
  std::vector<uint8_t> levels;
  std::vector<std::byte> values;
  // The chunk:
  std::vector<Page> pages;
  uint64_t chunk_bytes = 0, rows = 0;
  std::vector<std::byte> waiting;  // what has not gone out
};

struct WrittenChunk {
  uint64_t offset = 0, bytes = 0;
  std::vector<std::byte> page_list;  // thrift
  uint64_t page_list_offset = 0;
};
struct WrittenGroup {
  uint64_t rows = 0;
  std::vector<WrittenChunk> chunks;  // one a column
};

class ParquetWriter : public ContainerWriter {
 public:
  ParquetWriter(std::unique_ptr<Writer> file, const WriteSpec& spec, std::string path)
      : file_(std::move(file), spec.expected_bytes),
        path_(std::move(path)),
        images_(is_image_set(spec)),
        fields_(spec.fields) {
    if (images_) {
      columns_.push_back({.path = {"image", "bytes"}, .definition = 2});
      columns_.push_back({.path = {"image", "path"}, .text = true, .definition = 2});
    } else {
      for (const std::string& field : spec.fields) columns_.push_back({.path = {field}});
    }
    if (spec.labels) {
      label_ = columns_.size();
      const bool taken = std::find(fields_.begin(), fields_.end(), "label") != fields_.end();
      columns_.push_back({.path = {taken ? "cls" : "label"}, .type = ParquetType::int64});
    }
    if (!images_) {
      key_ = columns_.size();
      columns_.push_back({.path = {std::string(kKeyColumn)}, .text = true});
    }
  }

  Status begin() { return file_.append(as_bytes(kParquetMagic)); }

  Status add(const SampleToWrite& sample) override {
    const Status status = add_row(sample);
    return status.ok() ? status : status.at(printable(sample.key)).at(path_);
  }

  Status finish() override {
    PACKTRAIN_TRY(end_group());
    for (WrittenGroup& group : groups_) {
      for (WrittenChunk& chunk : group.chunks) {
        if (chunk.page_list.empty()) continue;
        chunk.page_list_offset = file_.position();
        PACKTRAIN_TRY(file_.append(chunk.page_list));
      }
    }
    const Bytes footer = footer_bytes();
    if (footer.size() > std::numeric_limits<int32_t>::max())
      return Status(Code::unsupported,
                    "the footer would have more than 2 GiB; pack into more files with --shards")
          .at(path_);
    PACKTRAIN_TRY(file_.append(footer));
    std::byte tail[kParquetTailBytes];
    store_le(tail, static_cast<uint32_t>(footer.size()));
    std::copy_n(as_bytes(kParquetMagic).begin(), kParquetMagic.size(), tail + 4);
    PACKTRAIN_TRY(file_.append(tail));
    PACKTRAIN_TRY(file_.settle());
    return file_.commit();
  }

 private:
  Status add_row(const SampleToWrite& sample) {
    size_t known = 0;
    for (size_t i = 0; i < fields_.size(); ++i) {
      const auto field =
          std::find_if(sample.fields.begin(), sample.fields.end(),
                       [&](const SampleToWrite::Field& one) { return one.name == fields_[i]; });
      const bool there = field != sample.fields.end();
      known += there ? 1 : 0;
      if (images_ && !there) continue;
      if (images_ && known > 1) return Status(Code::invalid, "has more than one image");
      if (there && field->bytes.size() > kLongestParquetValue) {
        return Status(Code::unsupported, "a value of a Parquet file has at most 2 GiB, the field " +
                                             printable(field->name) + " has " +
                                             bytes_in_words(field->bytes.size()) +
                                             "; pack it with --format webdataset");
      }
      PACKTRAIN_TRY(add_value(images_ ? 0 : i, there ? std::optional(field->bytes) : std::nullopt));
      if (!images_) continue;
      name_.assign(sample.key).append(".").append(fields_[i]);
      PACKTRAIN_TRY(add_value(1, as_bytes(name_)));
    }
    if (images_ && known == 0) {
      PACKTRAIN_TRY(add_value(0, std::nullopt));
      PACKTRAIN_TRY(add_value(1, std::nullopt));
    }
    if (known != sample.fields.size()) return Status(Code::invalid, "has a field that was not announced");
    if (label_ != kNone) {
      std::byte number[sizeof(int64_t)];
      store_le(number, sample.label);
      PACKTRAIN_TRY(
          add_value(label_, sample.label == kNoLabel ? std::nullopt : std::optional<Bytes>(number)));
    }
    if (key_ != kNone) PACKTRAIN_TRY(add_value(key_, as_bytes(sample.key)));
    ++rows_;
    return rows_ == kGroupRows || waiting_bytes_ >= kWaitingBytes ? end_group() : Status();
  }

  // Nothing: null.
  Status add_value(size_t number, std::optional<Bytes> value) {
    ParquetColumn& column = columns_[number];
    const bool large = value && value->size() >= kSharedPageBytes;
    if (large || column.values.size() >= kSharedPageBytes) PACKTRAIN_TRY(end_page(number, {}));
    column.levels.push_back(value ? static_cast<uint8_t>(column.definition) : 0);
    if (!value) return {};
    if (column.type == ParquetType::byte_array) {
      std::byte length[sizeof(uint32_t)];
      store_le(length, static_cast<uint32_t>(value->size()));
      column.values.insert(column.values.end(), std::begin(length), std::end(length));
    }
    if (large) return end_page(number, *value);
    column.values.insert(column.values.end(), value->begin(), value->end());
    return {};
  }

  // `rest`: more values, behind those that were copied.
  Status end_page(size_t number, Bytes rest) {
    ParquetColumn& column = columns_[number];
    if (column.levels.empty()) return {};
    levels_.assign(sizeof(uint32_t), std::byte{0});
    for (size_t i = 0; i < column.levels.size();) {
      size_t end = i + 1;
      while (end < column.levels.size() && column.levels[end] == column.levels[i]) ++end;
      for (uint64_t run = (end - i) << 1; true; run >>= 7) {
        levels_.push_back(static_cast<std::byte>(run >= 0x80 ? run | 0x80 : run));
        if (run < 0x80) break;
      }
      levels_.push_back(std::byte{column.levels[i]});
      i = end;
    }
    store_le(levels_.data(), static_cast<uint32_t>(levels_.size() - sizeof(uint32_t)));
    const uint64_t body = levels_.size() + column.values.size() + rest.size();
    thrift_.clear();
    thrift_.begin_element();
    thrift_.integer(1, ThriftType::i32, static_cast<int64_t>(ParquetPageKind::data));
    thrift_.integer(2, ThriftType::i32, static_cast<int64_t>(body));
    thrift_.integer(3, ThriftType::i32, static_cast<int64_t>(body));
    thrift_.begin_structure(5);
    thrift_.integer(1, ThriftType::i32, static_cast<int64_t>(column.levels.size()));
    thrift_.integer(2, ThriftType::i32, kParquetPlain);
    thrift_.integer(3, ThriftType::i32, kParquetRle);
    thrift_.integer(4, ThriftType::i32, kParquetRle);
    thrift_.end_structure();
    thrift_.end_structure();
    const uint64_t bytes = thrift_.bytes().size() + body;
    column.pages.push_back({column.chunk_bytes, bytes, column.rows});
    column.chunk_bytes += bytes;
    column.rows += column.levels.size();
    for (const Bytes part : {thrift_.bytes(), Bytes(levels_), Bytes(column.values), rest})
      PACKTRAIN_TRY(put(number, part));
    column.levels.clear();
    column.values.clear();
    return {};
  }

  Status put(size_t number, Bytes data) {
    if (number == 0) {
      if (group_offset_ == 0) group_offset_ = file_.position();
      return file_.append(data);
    }
    std::vector<std::byte>& waiting = columns_[number].waiting;
    waiting.insert(waiting.end(), data.begin(), data.end());
    waiting_bytes_ += data.size();
    return {};
  }

  Status end_group() {
    if (rows_ == 0) return {};
    WrittenGroup group;
    group.rows = rows_;
    for (size_t i = 0; i < columns_.size(); ++i) {
      PACKTRAIN_TRY(end_page(i, {}));
      ParquetColumn& column = columns_[i];
      WrittenChunk chunk;
      chunk.offset = i == 0 ? group_offset_ : file_.position();
      chunk.bytes = column.chunk_bytes;
      PACKTRAIN_TRY(file_.append(column.waiting));
      chunk.page_list = page_list(column, chunk.offset);
      group.chunks.push_back(std::move(chunk));
      column.pages.clear();
      column.waiting.clear();
      column.chunk_bytes = column.rows = 0;
    }
    groups_.push_back(std::move(group));
    all_rows_ += rows_;
    rows_ = waiting_bytes_ = group_offset_ = 0;
    return {};
  }

  std::vector<std::byte> page_list(const ParquetColumn& column, uint64_t chunk_offset) {
    thrift_.clear();
    thrift_.begin_element();
    thrift_.begin_list(1, ThriftType::structure, column.pages.size());
    for (const Page& page : column.pages) {
      thrift_.begin_element();
      thrift_.integer(1, ThriftType::i64, static_cast<int64_t>(chunk_offset + page.offset));
      thrift_.integer(2, ThriftType::i32, static_cast<int64_t>(page.bytes));
      thrift_.integer(3, ThriftType::i64, static_cast<int64_t>(page.first_row));
      thrift_.end_structure();
    }
    thrift_.end_structure();
    return {thrift_.bytes().begin(), thrift_.bytes().end()};
  }

  void put_group_element(std::string_view name, size_t children, bool optional) {
    thrift_.begin_element();
    if (optional) thrift_.integer(3, ThriftType::i32, 1);
    thrift_.text(4, name);
    thrift_.integer(5, ThriftType::i32, static_cast<int64_t>(children));
    thrift_.end_structure();
  }

  void put_schema() {
    const size_t tops = images_ ? columns_.size() - 1 : columns_.size();
    thrift_.begin_list(2, ThriftType::structure, columns_.size() + (images_ ? 2 : 1));
    put_group_element("schema", tops, false);
    if (images_) put_group_element("image", 2, true);
    for (const ParquetColumn& column : columns_) {
      thrift_.begin_element();
      thrift_.integer(1, ThriftType::i32, static_cast<int64_t>(column.type));
      thrift_.integer(3, ThriftType::i32, 1);  // optional
      thrift_.text(4, column.path.back());
      if (column.text) {
        thrift_.integer(6, ThriftType::i32, 0);  // UTF-8, once as it was said of old and once as it is now
        thrift_.begin_structure(10);
        thrift_.begin_structure(1);
        thrift_.end_structure();
        thrift_.end_structure();
      }
      thrift_.end_structure();
    }
  }

  void put_chunk(const ParquetColumn& column, const WrittenChunk& chunk, uint64_t rows) {
    thrift_.begin_element();
    thrift_.integer(2, ThriftType::i64, static_cast<int64_t>(chunk.offset));
    thrift_.begin_structure(3);
    thrift_.integer(1, ThriftType::i32, static_cast<int64_t>(column.type));
    thrift_.begin_list(2, ThriftType::i32, 2);
    thrift_.integer_element(kParquetPlain);
    thrift_.integer_element(kParquetRle);
    thrift_.begin_list(3, ThriftType::binary, column.path.size());
    for (const std::string& name : column.path) thrift_.text_element(name);
    thrift_.integer(4, ThriftType::i32, kParquetUncompressed);
    thrift_.integer(5, ThriftType::i64, static_cast<int64_t>(rows));
    thrift_.integer(6, ThriftType::i64, static_cast<int64_t>(chunk.bytes));
    thrift_.integer(7, ThriftType::i64, static_cast<int64_t>(chunk.bytes));
    thrift_.integer(9, ThriftType::i64, static_cast<int64_t>(chunk.offset));
    thrift_.end_structure();
    thrift_.integer(4, ThriftType::i64, static_cast<int64_t>(chunk.page_list_offset));
    thrift_.integer(5, ThriftType::i32, static_cast<int64_t>(chunk.page_list.size()));
    thrift_.end_structure();
  }

  Bytes footer_bytes() {
    thrift_.clear();
    thrift_.begin_element();
    thrift_.integer(1, ThriftType::i32, 2);  // version
    put_schema();
    thrift_.integer(3, ThriftType::i64, static_cast<int64_t>(all_rows_));
    thrift_.begin_list(4, ThriftType::structure, groups_.size());
    for (const WrittenGroup& group : groups_) {
      uint64_t bytes = 0;
      for (const WrittenChunk& chunk : group.chunks) bytes += chunk.bytes;
      thrift_.begin_element();
      thrift_.begin_list(1, ThriftType::structure, columns_.size());
      for (size_t i = 0; i < columns_.size(); ++i) put_chunk(columns_[i], group.chunks[i], group.rows);
      thrift_.integer(2, ThriftType::i64, static_cast<int64_t>(bytes));
      thrift_.integer(3, ThriftType::i64, static_cast<int64_t>(group.rows));
      thrift_.end_structure();
    }
    if (images_) {
      thrift_.begin_list(5, ThriftType::structure, 1);
      thrift_.begin_element();
      thrift_.text(1, "huggingface");
      thrift_.text(2, label_ != kNone ? kLabelledImageFeatures : kImageFeatures);
      thrift_.end_structure();
    }
    thrift_.text(6, "packtrain");
    thrift_.end_structure();
    return thrift_.bytes();
  }

  static constexpr size_t kNone = SIZE_MAX;
  Appender file_;
  const std::string path_;
  const bool images_;
  const std::vector<std::string> fields_;
  std::vector<ParquetColumn> columns_;
  size_t label_ = kNone, key_ = kNone;
  uint64_t rows_ = 0, waiting_bytes_ = 0, group_offset_ = 0;  // of the row group in the making
  uint64_t all_rows_ = 0;                                     // of those before it
  std::vector<WrittenGroup> groups_;
  ThriftWriter thrift_;
  std::vector<std::byte> levels_;
  std::string name_;
};

}  // namespace

Result<std::unique_ptr<ContainerWriter>> create_parquet(Storage& storage, std::string_view path,
                                                        const WriteSpec& spec) {
  if (spec.compress != "none" && spec.compress != "auto") {
    return Status(Code::unsupported, "parquet is written with --compress none, not " + spec.compress +
                                         ", so that samples are read in place");
  }
  if (std::find(spec.fields.begin(), spec.fields.end(), kKeyColumn) != spec.fields.end()) {
    return Status(Code::unsupported,
                  "a field cannot be called " + std::string(kKeyColumn) +
                      " in a Parquet file, whose column of keys is; use --format webdataset");
  }
  PACKTRAIN_ASSIGN(file, storage.create(path, spec.expected_bytes, spec.write));
  auto writer = std::make_unique<ParquetWriter>(std::move(file), spec, std::string(path));
  PACKTRAIN_TRY(writer->begin());
  return std::unique_ptr<ContainerWriter>(std::move(writer));
}

}  // namespace packtrain
