// Two layouts. Samples of one image each: the columns "image_data" and "label" and a batch for every sample,
// which is what courses' loaders count on. Everything else: a column for each field, "label", and "__key__".
//
// A row's values lie near each other, so that one read brings a sample: large rows have a batch of their own,
// small ones share one of some kilobytes. A batch's body begins with what is small and read to index the file
// (validity, offsets, labels, keys); the fields' values follow.
#include "format/arrow_write.h"

#include <algorithm>
#include <limits>

#include "base/words.h"
#include "format/appender.h"
#include "format/arrow_records.h"
#include "format/columns.h"
#include "format/flatbuffer.h"

namespace packtrain {
namespace {

using namespace arrow_slots;
using Slots = std::initializer_list<FlatWriter::Slot>;

constexpr uint64_t kAlignment = 8;
constexpr uint64_t kSharedBytes = 4096;  // a batch of several rows is not longer
constexpr uint64_t kMostFooterBytes = std::numeric_limits<int32_t>::max() - (1 << 20);
constexpr uint64_t kLongestValue = std::numeric_limits<int32_t>::max();

uint64_t padded(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Column {
  std::string name;
  ArrowType type = ArrowType::binary;
  // Of the rows that wait for their batch:
  std::vector<int32_t> offsets;
  std::vector<std::byte> values, validity;
  Bytes lent;  // values of the only row, where they are not copied
  uint64_t nulls = 0;

  bool has_offsets() const { return type != ArrowType::integer; }
  Bytes all_values() const { return lent.empty() ? Bytes(values) : lent; }
  void clear() {
    offsets.assign(has_offsets() ? 1 : 0, 0);
    values.clear();
    validity.clear();
    lent = {};
    nulls = 0;
  }
};

class ArrowWriter : public ContainerWriter {
 public:
  ArrowWriter(std::unique_ptr<Writer> file, const WriteSpec& spec, std::string path)
      : file_(std::move(file), spec.expected_bytes), path_(std::move(path)), one_row_(is_image_set(spec)) {
    // Images of all kinds share the one column of the course's layout.
    if (one_row_) columns_.push_back({"image_data"});
    for (const std::string& field : spec.fields) {
      if (!one_row_) columns_.push_back({field});
    }
    const size_t values = columns_.size();
    if (spec.labels) {
      label_ = columns_.size();
      const bool taken = std::find(spec.fields.begin(), spec.fields.end(), "label") != spec.fields.end();
      columns_.push_back({taken ? "cls" : "label", ArrowType::integer});
    }
    if (!one_row_) {
      key_ = columns_.size();
      columns_.push_back({std::string(kKeyColumn), ArrowType::utf8});
    }
    fields_ = spec.fields;
    for (size_t i = values; i < columns_.size(); ++i) values_order_.push_back(i);
    for (size_t i = 0; i < values; ++i) values_order_.push_back(i);
    for (Column& column : columns_) column.clear();
  }

  // The schema stands in front, and says how wide labels are: it is written once more at the end.
  Status begin() {
    std::byte head[kArrowHeadBytes] = {};
    std::copy_n(as_bytes(kArrowMagic).begin(), kArrowMagic.size(), head);
    PACKTRAIN_TRY(file_.append(head));
    return file_.append(schema_message());
  }

  Status add(const SampleToWrite& sample) override {
    const Status status = add_row(sample);
    return status.ok() ? status : status.at(printable(sample.key)).at(path_);
  }

  Status finish() override {
    PACKTRAIN_TRY(write_batch());
    std::byte end[8] = {};
    store_le(end, kArrowContinuation);
    PACKTRAIN_TRY(file_.append(end));
    const uint64_t footer_at = file_.position();
    PACKTRAIN_TRY(file_.append(footer()));
    std::byte tail[kArrowTailBytes];
    store_le(tail, static_cast<int32_t>(file_.position() - footer_at));
    std::copy_n(as_bytes(kArrowMagic).begin(), kArrowMagic.size(), tail + 4);
    PACKTRAIN_TRY(file_.append(tail));
    PACKTRAIN_TRY(file_.settle());
    if (one_row_ && wide_labels_) PACKTRAIN_TRY(file_.overwrite(kArrowHeadBytes, schema_message()));
    return file_.commit();
  }

 private:
  Status add_row(const SampleToWrite& sample) {
    uint64_t bytes = padded(sample.key.size());
    for (const SampleToWrite::Field& field : sample.fields) {
      if (field.bytes.size() > kLongestValue) {
        return Status(Code::unsupported, "a value of an Arrow file has at most 2 GiB, the field " +
                                             printable(field.name) + " has " +
                                             bytes_in_words(field.bytes.size()) +
                                             "; pack it with --format webdataset");
      }
      bytes += padded(field.bytes.size());
    }
    const bool alone = one_row_ || bytes > kSharedBytes;
    if (rows_ > 0 && (alone || waiting_bytes_ + bytes > kSharedBytes)) PACKTRAIN_TRY(write_batch());
    size_t known = 0;
    for (size_t i = 0; i < fields_.size(); ++i) {
      const auto field =
          std::find_if(sample.fields.begin(), sample.fields.end(),
                       [&](const SampleToWrite::Field& one) { return one.name == fields_[i]; });
      if (field != sample.fields.end()) {
        if (one_row_ && known > 0) return Status(Code::invalid, "has more than one image");
        add_value(columns_[one_row_ ? 0 : i], field->bytes, alone);
        ++known;
      } else if (!one_row_) {
        add_null(columns_[i]);
      }
    }
    if (one_row_ && known == 0) add_null(columns_[0]);
    if (known != sample.fields.size()) return Status(Code::invalid, "has a field that was not announced");
    if (label_ != kNone) add_label(columns_[label_], sample.label);
    if (key_ != kNone) add_value(columns_[key_], as_bytes(sample.key), false);
    ++rows_;
    // Offsets and the like take some bytes of a row too.
    waiting_bytes_ += bytes + columns_.size() * sizeof(int64_t);
    return alone ? write_batch() : Status();
  }

  void mark(Column& column, bool valid) {
    if (rows_ % 8 == 0) column.validity.push_back(std::byte{0});
    if (valid) column.validity.back() |= std::byte{1} << rows_ % 8;
    column.nulls += valid ? 0 : 1;
  }

  void add_null(Column& column) {
    mark(column, false);
    column.offsets.push_back(column.offsets.back());
  }

  void add_value(Column& column, Bytes value, bool lend) {
    mark(column, true);
    if (lend) {
      column.lent = value;
    } else {
      column.values.insert(column.values.end(), value.begin(), value.end());
    }
    column.offsets.push_back(column.offsets.back() + static_cast<int32_t>(value.size()));
  }

  // Always eight bytes. In a batch of one row the first two of them are the label as a uint16 too, where it
  // fits: what the column's type is can be decided at the end.
  void add_label(Column& column, int64_t label) {
    mark(column, label != kNoLabel);
    if (label == kNoLabel) label = 0;
    wide_labels_ |= label < 0 || label > std::numeric_limits<uint16_t>::max();
    const size_t at = column.values.size();
    column.values.resize(at + sizeof label);
    store_le(column.values.data() + at, label);
  }

  // Places a buffer of so many bytes in the body.
  static ArrowBuffer place(uint64_t bytes, uint64_t& body_bytes) {
    const ArrowBuffer buffer{body_bytes, bytes};
    body_bytes += padded(bytes);
    return buffer;
  }

  Status write_batch() {
    if (rows_ == 0) return {};
    if ((blocks_.size() + ArrowBlock::kBytes) > kMostFooterBytes) {
      return Status(Code::unsupported, "an Arrow file holds at most " +
                                           count_in_words(kMostFooterBytes / ArrowBlock::kBytes) +
                                           " batches; pack into more of them with --shards");
    }
    uint64_t body_bytes = 0;
    buffers_.assign(columns_.size() * 3, {});
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      buffers_[3 * i] = place(column.nulls > 0 ? column.validity.size() : 0, body_bytes);
      if (column.has_offsets())
        buffers_[3 * i + 1] = place(column.offsets.size() * sizeof(int32_t), body_bytes);
    }
    for (const size_t i : values_order_)
      buffers_[3 * i + 2] = place(columns_[i].all_values().size(), body_bytes);

    const uint64_t offset = file_.position();
    PACKTRAIN_TRY(file_.append(batch_message(body_bytes)));
    const uint64_t metadata_bytes = file_.position() - offset;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      if (column.nulls > 0) PACKTRAIN_TRY(put(column.validity));
      if (column.has_offsets()) PACKTRAIN_TRY(put(std::as_bytes(std::span(column.offsets))));
    }
    for (const size_t i : values_order_) PACKTRAIN_TRY(put(columns_[i].all_values()));
    std::byte block[ArrowBlock::kBytes] = {};
    store_le(block, static_cast<int64_t>(offset));
    store_le(block + 8, static_cast<int32_t>(metadata_bytes));
    store_le(block + 16, static_cast<int64_t>(body_bytes));
    blocks_.insert(blocks_.end(), std::begin(block), std::end(block));
    for (Column& column : columns_) column.clear();
    rows_ = waiting_bytes_ = 0;
    return {};
  }

  Status put(Bytes buffer) {
    PACKTRAIN_TRY(file_.append(buffer));
    return file_.append_zeros(padded(buffer.size()) - buffer.size());
  }

  // The message with its prefix; valid until the next one is made.
  Bytes message(Bytes metadata) {
    message_.resize(8);
    store_le(message_.data(), kArrowContinuation);
    store_le(message_.data() + 4, static_cast<int32_t>(metadata.size()));
    message_.insert(message_.end(), metadata.begin(), metadata.end());
    return message_;
  }

  size_t begin_message(ArrowMessageKind kind, uint64_t body_bytes) {
    return flat_.root(Slots{{kMessageBody, 8, body_bytes},
                            {kMessageHeader, FlatWriter::kReference},
                            {kMessageVersion, 2, static_cast<uint64_t>(kArrowVersion5)},
                            {kMessageKind, 1, static_cast<uint64_t>(kind)}});
  }

  Bytes batch_message(uint64_t body_bytes) {
    numbers_.clear();
    for (const Column& column : columns_) numbers_.insert(numbers_.end(), {rows_, column.nulls});
    const size_t root = begin_message(ArrowMessageKind::batch, body_bytes);
    const size_t batch = flat_.table(root, kMessageHeader,
                                     Slots{{kBatchRows, 8, rows_},
                                           {kBatchNodes, FlatWriter::kReference},
                                           {kBatchBuffers, FlatWriter::kReference}});
    flat_.structs(batch, kBatchNodes, std::as_bytes(std::span(numbers_)), 16);
    numbers_.clear();
    for (size_t i = 0; i < columns_.size(); ++i) {
      for (size_t part = 0; part < 3; ++part) {
        if (part == 1 && !columns_[i].has_offsets()) continue;
        const ArrowBuffer& buffer = buffers_[3 * i + part];
        numbers_.insert(numbers_.end(), {buffer.offset, buffer.bytes});
      }
    }
    flat_.structs(batch, kBatchBuffers, std::as_bytes(std::span(numbers_)), 16);
    return message(flat_.finish());
  }

  Bytes schema_message() {
    const size_t root = begin_message(ArrowMessageKind::schema, 0);
    write_schema(flat_.table(root, kMessageHeader, Slots{{kSchemaFields, FlatWriter::kReference}}));
    return message(flat_.finish());
  }

  void write_schema(size_t schema) {
    const size_t fields = flat_.tables(schema, kSchemaFields, columns_.size());
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      const size_t field = flat_.element(fields, i,
                                         Slots{{kFieldName, FlatWriter::kReference},
                                               {kFieldType, FlatWriter::kReference},
                                               {kFieldChildren, FlatWriter::kReference},
                                               {kFieldTypeKind, 1, static_cast<uint64_t>(column.type)},
                                               {kFieldNullable, 1, 1}});
      flat_.text(field, kFieldName, column.name);
      if (column.type == ArrowType::integer) {
        flat_.table(field, kFieldType,
                    Slots{{0, 4, wide_labels() ? 64u : 16u}, {1, 1, wide_labels() ? 1u : 0u}});
      } else {
        flat_.table(field, kFieldType, Slots{});
      }
      flat_.tables(field, kFieldChildren, 0);
    }
  }

  bool wide_labels() const { return wide_labels_ || !one_row_; }

  Bytes footer() {
    const size_t root = flat_.root(Slots{{kFooterSchema, FlatWriter::kReference},
                                         {kFooterDictionaries, FlatWriter::kReference},
                                         {kFooterBatches, FlatWriter::kReference},
                                         {kFooterVersion, 2, static_cast<uint64_t>(kArrowVersion5)}});
    write_schema(flat_.table(root, kFooterSchema, Slots{{kSchemaFields, FlatWriter::kReference}}));
    flat_.structs(root, kFooterDictionaries, {}, ArrowBlock::kBytes);
    flat_.structs(root, kFooterBatches, blocks_, ArrowBlock::kBytes);
    return flat_.finish();
  }

  static constexpr size_t kNone = SIZE_MAX;
  Appender file_;
  const std::string path_;
  const bool one_row_;
  std::vector<std::string> fields_;
  std::vector<Column> columns_;       // the fields first
  std::vector<size_t> values_order_;  // labels and keys in front of the fields
  size_t label_ = kNone, key_ = kNone;
  bool wide_labels_ = false;
  uint64_t rows_ = 0, waiting_bytes_ = 0;  // of the batch in the making
  std::vector<std::byte> blocks_;          // the footer's, 24 bytes a batch
  std::vector<ArrowBuffer> buffers_;       // three a column: validity, offsets, values
  std::vector<uint64_t> numbers_;
  std::vector<std::byte> message_;
  FlatWriter flat_;
};

}  // namespace

Result<std::unique_ptr<ContainerWriter>> create_arrow(Storage& storage, std::string_view path,
                                                      const WriteSpec& spec) {
  if (spec.compress != "none" && spec.compress != "auto") {
    return Status(Code::unsupported, "arrow is written with --compress none, not " + spec.compress +
                                         ", so that samples are read in place");
  }
  if (std::find(spec.fields.begin(), spec.fields.end(), kKeyColumn) != spec.fields.end()) {
    return Status(Code::unsupported,
                  "a field cannot be called " + std::string(kKeyColumn) +
                      " in an Arrow file, whose column of keys is; use --format webdataset");
  }
  PACKTRAIN_ASSIGN(file, storage.create(path, spec.expected_bytes, spec.write));
  auto writer = std::make_unique<ArrowWriter>(std::move(file), spec, std::string(path));
  PACKTRAIN_TRY(writer->begin());
  return std::unique_ptr<ContainerWriter>(std::move(writer));
}

}  // namespace packtrain
