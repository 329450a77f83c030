#include "format/array_writer.h"

#include <algorithm>
#include <cstring>

#include "base/words.h"
#include "format/array_table.h"
#include "format/columns.h"
#include "format/grouping.h"

namespace packtrain {
namespace {

constexpr uint64_t kDirectBytes = uint64_t{4} << 20;  // a column of this size is written as it comes
constexpr size_t kMostStackedAxes = 8;
constexpr uint64_t kWidthSlack = uint64_t{64} << 10;

class ArrayWriter final : public ContainerWriter {
 public:
  ArrayWriter(Storage& storage, std::string_view path, const WriteSpec& spec, std::unique_ptr<ArraySink> sink)
      : path_(path),
        sink_(std::move(sink)),
        spool_(storage, path, spec.write, spec.fields.size()),
        fields_(spec.fields.size()) {
    for (size_t i = 0; i < fields_.size(); ++i) {
      fields_[i].name = spec.fields[i];
      const auto array = spec.arrays.find(spec.fields[i]);
      if (array != spec.arrays.end()) fields_[i].array = array->second;
    }
  }

  Status add(const SampleToWrite& sample) override {
    int64_t label = sample.label;
    size_t next = 0;
    for (const SampleToWrite::Field& given : sample.fields) {
      const size_t number = field_number(given.name, next);
      if (number == fields_.size())
        return Status(Code::invalid, "the field " + printable(given.name) + " was not announced").at(path_);
      next = number + 1;
      PACKTRAIN_TRY(add_field(number, given.bytes));
      if (label == kNoLabel && given.name == "cls" && given.bytes.size() <= kLabelBytes)
        label = parse_label(given.bytes).value_or(kNoLabel);
    }
    ++samples_;
    labelled_ = labelled_ || label != kNoLabel;
    labels_.push_back(label);
    keys_.append(sample.key);
    key_ends_.push_back(keys_.size());
    return {};
  }

  Status finish() override {
    if (direct_) {
      PACKTRAIN_TRY(sink_->end_bytes());
      PACKTRAIN_TRY(add_helpers(fields_[*direct_]));
    }
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (direct_ == i || fields_[i].ends.empty()) continue;
      if (fields_[i].stacked && fields_[i].stacked_rows == samples_) {
        PACKTRAIN_TRY(add_stacked(i));
      } else {
        PACKTRAIN_TRY(add_flat(i));
        PACKTRAIN_TRY(add_helpers(fields_[i]));
      }
    }
    if (labelled_) PACKTRAIN_TRY(add_values(kLabelColumn, "<i8", labels_));
    PACKTRAIN_TRY(add_keys());
    return sink_->finish();
  }

 private:
  struct Field {
    std::string name;
    std::vector<uint64_t> ends;    // behind each sample that has it, headers of .npy included
    std::vector<uint64_t> absent;  // samples without it, in order
    // The first rows are .npy files with one and the same header; the spool holds their numbers alone.
    bool stacked = false;
    uint64_t stacked_rows = 0, row_bytes = 0;
    std::string header;
    std::string type;
    std::vector<uint64_t> shape;      // of one
    std::optional<ArrayValue> array;  // what the rows are, where they have no header
  };

  // Fields of a sample mostly come in their order.
  size_t field_number(std::string_view name, size_t next) const {
    for (; next < fields_.size() && fields_[next].name <= name; ++next) {
      if (fields_[next].name == name) return next;
    }
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].name == name) return i;
    }
    return fields_.size();
  }

  Status add_field(size_t number, Bytes bytes) {
    Field& field = fields_[number];
    const uint64_t count = field.ends.size() + field.absent.size();
    if (count > samples_) return Status(Code::invalid, "the field " + field.name + " comes twice").at(path_);
    for (uint64_t i = count; i < samples_; ++i) field.absent.push_back(i);
    if (samples_ == 0) begin_stack(field, bytes);
    const bool fits = field.stacked && field.stacked_rows == samples_ &&
                      bytes.size() == field.header.size() + field.row_bytes &&
                      std::memcmp(bytes.data(), field.header.data(), field.header.size()) == 0;
    field.ends.push_back((field.ends.empty() ? 0 : field.ends.back()) + bytes.size());
    if (fits) {
      ++field.stacked_rows;
      return spool_.append(number, bytes.subspan(field.header.size()));
    }
    if (direct_ == number) return sink_->append_bytes(bytes);
    PACKTRAIN_TRY(spool_.append(number, bytes));
    if (direct_ || field.stacked || spool_.bytes(number) < kDirectBytes) return {};
    direct_ = number;
    PACKTRAIN_TRY(sink_->begin_bytes(field.name));
    return spool_.take(number, [&](Bytes piece) { return sink_->append_bytes(piece); });
  }

  static void begin_stack(Field& field, Bytes bytes) {
    if (field.array && is_plain_number(field.array->type) && field.array->shape.size() <= kMostStackedAxes &&
        field.array->bytes() == bytes.size()) {
      field.stacked = true;
      field.row_bytes = bytes.size();
      field.type = field.array->type;
      field.shape = field.array->shape;
      return;
    }
    const auto header = stackable_header(bytes, bytes.size());
    if (!header) return;
    field.stacked = true;
    field.header = as_text(bytes.first(header->bytes));
    field.row_bytes = bytes.size() - header->bytes;
    field.type = header->type;
    field.shape.assign(header->shape().begin(), header->shape().end());
  }

  Status add_stacked(size_t number) {
    const Field& field = fields_[number];
    std::vector<uint64_t> shape = {samples_};
    shape.insert(shape.end(), field.shape.begin(), field.shape.end());
    PACKTRAIN_TRY(sink_->add({.name = field.name,
                              .type = field.type,
                              .shape = shape,
                              .samples = true,
                              .pour = [&](const auto& each) { return spool_.take(number, each); }}));
    if (field.header.empty()) return {};
    return add_bytes(field.name + std::string(kHeaderSuffix), as_bytes(field.header));
  }

  // The bytes of all samples, one behind the other; what was held without its header gets it back.
  Status add_flat(size_t number) {
    const Field& field = fields_[number];
    const uint64_t length = field.ends.back();
    const auto pour = [&](const std::function<Status(Bytes)>& each) -> Status {
      uint64_t rows = field.stacked ? field.stacked_rows : 0, in_row = 0;
      return spool_.take(number, [&](Bytes piece) -> Status {
        while (rows > 0 && !piece.empty()) {
          if (in_row == 0) PACKTRAIN_TRY(each(as_bytes(field.header)));
          const uint64_t now = std::min<uint64_t>(piece.size(), field.row_bytes - in_row);
          PACKTRAIN_TRY(each(piece.first(now)));
          piece = piece.subspan(now);
          in_row += now;
          if (in_row < field.row_bytes) continue;
          in_row = 0;
          --rows;
        }
        return piece.empty() ? Status() : each(piece);
      });
    };
    return sink_->add(
        {.name = field.name, .type = "|u1", .shape = {&length, 1}, .samples = false, .pour = pour});
  }

  // Offsets, and where some samples lack the field, which have it.
  Status add_helpers(const Field& field) {
    std::vector<int64_t> offsets;
    offsets.reserve(samples_ + 1);
    offsets.push_back(0);
    std::vector<uint8_t> present(samples_, 1);
    for (const uint64_t sample : field.absent) present[sample] = 0;
    const uint64_t count = field.ends.size() + field.absent.size();
    for (uint64_t sample = count; sample < samples_; ++sample) present[sample] = 0;
    size_t next = 0;
    for (const uint8_t has : present)
      offsets.push_back(has ? static_cast<int64_t>(field.ends[next++]) : offsets.back());
    PACKTRAIN_TRY(add_values(field.name + std::string(kOffsetsSuffix), "<i8", offsets));
    if (field.ends.size() == samples_) return {};
    return add_values(field.name + std::string(kPresentSuffix), "|b1", present);
  }

  // Texts of one width, as NumPy has them; where a few long keys would make all the others long, bytes with
  // offsets.
  Status add_keys() {
    const std::string name(sink_->key_column());
    uint64_t width = 1;
    bool plain = true, utf8 = true;
    for (uint64_t i = 0; i < samples_; ++i) {
      const std::string_view one = key(i);
      width = std::max<uint64_t>(width, one.size());
      plain = plain && !one.ends_with('\0');
      utf8 = utf8 && is_utf8(one);
    }
    if (sink_->takes_texts() && utf8)
      return sink_->add_texts(name, samples_, [&](uint64_t sample) { return key(sample); });
    if (sink_->takes_texts() || !plain || width * samples_ > 4 * keys_.size() + kWidthSlack) {
      PACKTRAIN_TRY(add_bytes(name, as_bytes(keys_)));
      std::vector<uint64_t> offsets = {0};
      offsets.insert(offsets.end(), key_ends_.begin(), key_ends_.end());
      return add_values(name + std::string(kOffsetsSuffix), "<i8", offsets);
    }
    const std::string type = "|S" + std::to_string(width);
    const auto pour = [&](const std::function<Status(Bytes)>& each) -> Status {
      std::vector<std::byte> piece;
      for (uint64_t i = 0; i < samples_; ++i) {
        const Bytes one = as_bytes(key(i));
        piece.insert(piece.end(), one.begin(), one.end());
        piece.resize(piece.size() + width - one.size());
        if (piece.size() < kDirectBytes && i + 1 < samples_) continue;
        PACKTRAIN_TRY(each(piece));
        piece.clear();
      }
      return {};
    };
    return sink_->add({.name = name, .type = type, .shape = {&samples_, 1}, .samples = false, .pour = pour});
  }

  std::string_view key(uint64_t sample) const {
    const uint64_t begin = sample == 0 ? 0 : key_ends_[sample - 1];
    return std::string_view(keys_).substr(begin, key_ends_[sample] - begin);
  }

  template <class T>
  Status add_values(std::string_view name, std::string_view type, const std::vector<T>& values) {
    const uint64_t count = values.size();
    return sink_->add(
        {.name = name, .type = type, .shape = {&count, 1}, .samples = false, .pour = [&](const auto& each) {
           return each(std::as_bytes(std::span(values)));
         }});
  }
  Status add_bytes(std::string_view name, Bytes bytes) {
    const uint64_t count = bytes.size();
    return sink_->add(
        {.name = name, .type = "|u1", .shape = {&count, 1}, .samples = false, .pour = [&](const auto& each) {
           return each(bytes);
         }});
  }

  const std::string path_;
  std::unique_ptr<ArraySink> sink_;
  ColumnSpool spool_;
  std::vector<Field> fields_;
  std::optional<size_t> direct_;  // the field that goes to the sink as it comes
  uint64_t samples_ = 0;
  std::vector<int64_t> labels_;
  bool labelled_ = false;
  std::string keys_;
  std::vector<uint64_t> key_ends_;
};

}  // namespace

bool is_plain_number(std::string_view type) {
  static constexpr std::string_view kTypes[] = {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4",
                                                "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

std::optional<NpyHeader> stackable_header(Bytes head, uint64_t file_bytes) {
  if (!starts_npy(head)) return std::nullopt;
  const auto header = parse_npy_header(head);
  if (!header.ok() || header->records || header->axes > kMostStackedAxes) return std::nullopt;
  if (header->fortran && header->axes > 1) return std::nullopt;
  if (!is_plain_number(header->type)) return std::nullopt;
  const std::vector<uint64_t> shape(header->shape().begin(), header->shape().end());
  const auto bytes = checked_array_bytes(shape, std::stoul(header->type.substr(2)));
  if (!bytes || *bytes == 0 || file_bytes - header->bytes != *bytes) return std::nullopt;
  return *header;
}

Result<std::unique_ptr<ContainerWriter>> make_array_writer(Storage& storage, std::string_view path,
                                                           const WriteSpec& spec,
                                                           std::unique_ptr<ArraySink> sink) {
  const auto among = [&](std::string_view name) {
    return std::find(spec.fields.begin(), spec.fields.end(), name) != spec.fields.end();
  };
  for (const std::string& field : spec.fields) {
    bool taken = field == kLabelColumn || field == sink->key_column();
    for (std::string_view suffix : {kOffsetsSuffix, kHeaderSuffix, kPresentSuffix}) {
      if (!field.ends_with(suffix)) continue;
      const std::string_view of = std::string_view(field).substr(0, field.size() - suffix.size());
      taken = taken || among(of) || of == sink->key_column();
    }
    if (taken) {
      return Status(Code::invalid,
                    "the field " + printable(field) +
                        " has a name that this format uses itself; rename it, or choose another "
                        "format")
          .at(path);
    }
  }
  return std::unique_ptr<ContainerWriter>(new ArrayWriter(storage, path, spec, std::move(sink)));
}

}  // namespace packtrain
