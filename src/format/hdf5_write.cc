// The flat layout: the bytes of each field one behind the other, and where each sample's begin.
#include "format/hdf5_write.h"

#include <algorithm>
#include <optional>

#include "base/words.h"
#include "format/columns.h"
#include "format/hdf5_output.h"
#include "format/hdf5_sets.h"

namespace packtrain {
namespace {

constexpr size_t kHeldBlockBytes = size_t{1} << 20;
constexpr size_t kMostHdf5Axes = 32;
constexpr uint64_t kHeldBytes = uint64_t{32} << 20;  // until a column goes to the file as it comes

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

// A column must lie in one piece, and how long it gets is known at the end only. So the largest one goes to
// the file as it comes; the others, mostly small texts and numbers beside it, wait in memory.
class FlatHdf5Writer : public ContainerWriter {
 public:
  FlatHdf5Writer(Hdf5Output output, Hdf5Names names, const WriteSpec& spec)
      : output_(std::move(output)), names_(std::move(names)), columns_(spec.fields.size()) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      columns_[i].name = spec.fields[i];
      const auto array = spec.arrays.find(spec.fields[i]);
      const bool fits = array != spec.arrays.end() && is_hdf5_number(array->second.type) &&
                        array->second.shape.size() < kMostHdf5Axes;
      if (fits) columns_[i].array = array->second;
    }
    direct_ = columns_.size() == 1 ? 0 : kNone;
  }

  Status add(const SampleToWrite& sample) override {
    Status status = add_sample(sample);
    return status.ok() ? status : status.at(printable(sample.key)).at(output_.path());
  }

  Status finish() override {
    Hdf5GroupToWrite root;
    if (direct_ != kNone) PACKTRAIN_TRY(finish_column(columns_[direct_], root));
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i != direct_) PACKTRAIN_TRY(finish_column(columns_[i], root));
    }
    if (std::any_of(labels_.begin(), labels_.end(), [](int64_t label) { return label != kNoLabel; })) {
      PACKTRAIN_TRY(add_dataset(kLabelColumn, Hdf5Element::i64, labels_.size(), bytes_of(labels_), root));
    }
    PACKTRAIN_TRY(add_keys(root));
    return output_.finish(root);
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  struct Column {
    std::string name;
    std::vector<int64_t> offsets = {0};
    std::vector<uint8_t> present;
    bool complete = true;             // every sample has it
    std::optional<ArrayValue> array;  // what the rows are, if they are arrays of one type and shape
    uint64_t address = 0;             // of the column that goes to the file as it comes
    std::vector<std::vector<std::byte>> blocks;  // what waits
  };

  Status add_sample(const SampleToWrite& sample) {
    if (sample.key.find('\0') != std::string_view::npos)
      return Status(Code::invalid, "a key holds a NUL byte");
    for (const SampleToWrite::Field& field : sample.fields) {
      const size_t position = names_.position(field.name);
      if (position == SIZE_MAX) return Status(Code::invalid, "the field was not announced").at(field.name);
      Column& column = columns_[position];
      if (column.present.size() > labels_.size())
        return Status(Code::invalid, "a field comes twice").at(field.name);
      column.present.push_back(1);
      column.offsets.push_back(column.offsets.back() + static_cast<int64_t>(field.bytes.size()));
      if (position == direct_) {
        if (column.address == 0) column.address = output_.address();
        PACKTRAIN_TRY(output_.append(field.bytes));
      } else {
        hold(column, field.bytes);
      }
    }
    labels_.push_back(label_to_write(sample));
    keys_.append(sample.key);
    key_ends_.push_back(keys_.size());
    longest_key_ = std::max(longest_key_, sample.key.size());
    for (Column& column : columns_) {
      if (column.present.size() == labels_.size()) continue;
      column.complete = false;
      column.present.push_back(0);
      column.offsets.push_back(column.offsets.back());
    }
    return direct_ == kNone && held_ > kHeldBytes ? choose_direct() : Status();
  }

  void hold(Column& column, Bytes bytes) {
    held_ += bytes.size();
    while (!bytes.empty()) {
      if (column.blocks.empty() || column.blocks.back().size() == kHeldBlockBytes) {
        column.blocks.emplace_back();
        // Small columns keep to what they need.
        if (column.blocks.size() > 1) column.blocks.back().reserve(kHeldBlockBytes);
      }
      std::vector<std::byte>& block = column.blocks.back();
      const size_t part = std::min(bytes.size(), kHeldBlockBytes - block.size());
      block.insert(block.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(part));
      bytes = bytes.subspan(part);
    }
  }

  Status choose_direct() {
    const auto largest = std::max_element(
        columns_.begin(), columns_.end(),
        [](const Column& a, const Column& b) { return a.offsets.back() < b.offsets.back(); });
    direct_ = static_cast<size_t>(largest - columns_.begin());
    largest->address = output_.address();
    return write_blocks(*largest);
  }

  Status write_blocks(Column& column) {
    for (const std::vector<std::byte>& block : column.blocks) PACKTRAIN_TRY(output_.append(block));
    column.blocks = {};
    return {};
  }

  Status finish_column(Column& column, Hdf5GroupToWrite& root) {
    if (column.address == 0) {
      PACKTRAIN_TRY(output_.align());
      column.address = output_.address();
    }
    PACKTRAIN_TRY(write_blocks(column));
    const auto bytes = static_cast<uint64_t>(column.offsets.back());
    if (has_rows(column)) {
      root.datasets.push_back({.name = column.name,
                               .element = Hdf5Element::number,
                               .number = column.array->type,
                               .rows = column.present.size(),
                               .row_shape = column.array->shape,
                               .address = column.address,
                               .bytes = bytes});
      return {};
    }
    root.datasets.push_back({.name = column.name, .rows = bytes, .address = column.address, .bytes = bytes});
    PACKTRAIN_TRY(add_dataset(column.name + std::string(kOffsetsSuffix), Hdf5Element::i64,
                              column.offsets.size(), bytes_of(column.offsets), root));
    if (column.complete) return {};
    return add_dataset(column.name + std::string(kPresentSuffix), Hdf5Element::u8, column.present.size(),
                       bytes_of(column.present), root);
  }

  // Whether the column is one array with a row for each sample.
  static bool has_rows(const Column& column) {
    if (!column.array || !column.complete || column.present.empty()) return false;
    const auto row = static_cast<int64_t>(column.array->bytes());
    for (size_t i = 1; i < column.offsets.size(); ++i) {
      if (column.offsets[i] - column.offsets[i - 1] != row) return false;
    }
    return true;
  }

  Status add_dataset(std::string_view name, Hdf5Element element, uint64_t rows, Bytes data,
                     Hdf5GroupToWrite& root) {
    PACKTRAIN_TRY(output_.align());
    root.datasets.push_back({.name = std::string(name),
                             .element = element,
                             .rows = rows,
                             .address = output_.address(),
                             .bytes = data.size()});
    return output_.append(data);
  }

  // Texts of one length, the longest one's, filled with zeros.
  Status add_keys(Hdf5GroupToWrite& root) {
    PACKTRAIN_TRY(output_.align());
    const size_t size = std::max<size_t>(1, longest_key_);
    root.datasets.push_back({.name = std::string(kKeyColumn),
                             .element = Hdf5Element::text,
                             .text_bytes = static_cast<uint32_t>(size),
                             .rows = key_ends_.size(),
                             .address = output_.address(),
                             .bytes = size * key_ends_.size()});
    std::vector<std::byte> text(size);
    size_t begin = 0;
    for (size_t end : key_ends_) {
      std::fill(text.begin(), text.end(), std::byte{0});
      std::copy_n(as_bytes(keys_).begin() + static_cast<std::ptrdiff_t>(begin), end - begin, text.begin());
      PACKTRAIN_TRY(output_.append(text));
      begin = end;
    }
    return {};
  }

  Hdf5Output output_;
  Hdf5Names names_;
  std::vector<Column> columns_;
  size_t direct_ = kNone;  // the column that goes to the file as it comes
  uint64_t held_ = 0;
  std::vector<int64_t> labels_;
  std::string keys_;
  std::vector<size_t> key_ends_;
  size_t longest_key_ = 0;
};

}  // namespace

Result<std::unique_ptr<ContainerWriter>> create_hdf5(Storage& storage, std::string_view path,
                                                     const WriteSpec& spec) {
  auto names = Hdf5Names::make(spec.fields, {"", kOffsetsSuffix, kPresentSuffix}, {kLabelColumn, kKeyColumn});
  if (!names.ok()) return names.status().at(path);
  PACKTRAIN_ASSIGN(output, Hdf5Output::create(storage, path, spec));
  return std::unique_ptr<ContainerWriter>(new FlatHdf5Writer(std::move(output), std::move(*names), spec));
}

}  // namespace packtrain
