#include "format/npy_write.h"

#include <cstring>
#include <optional>
#include <vector>

#include "base/words.h"
#include "format/appender.h"
#include "format/array_writer.h"
#include "format/npy_header.h"

namespace packtrain {
namespace {

class NpyWriter final : public ContainerWriter {
 public:
  NpyWriter(Storage& storage, std::string_view path, const WriteSpec& spec, std::unique_ptr<Writer> file)
      : storage_(storage),
        path_(path),
        options_(spec.write),
        field_(spec.fields.empty() ? "" : spec.fields.front()) {
    const auto array = spec.arrays.find(field_);
    if (array != spec.arrays.end() && is_plain_number(array->second.type)) array_ = array->second;
    if (array_) set_header();
    file_.emplace(std::move(file), spec.expected_bytes);
  }

  Status add(const SampleToWrite& sample) override {
    const Status status = add_row(sample);
    return status.ok() ? status : status.at(printable(sample.key)).at(path_);
  }

  Status finish() override {
    if (!array_) {  // no sample: an array of nothing
      array_ = ArrayValue{"|u1", {}};
      set_header();
      PACKTRAIN_TRY(begin());
    }
    PACKTRAIN_TRY(file_->append(as_bytes(front_)));
    PACKTRAIN_TRY(file_->settle());
    PACKTRAIN_TRY(file_->overwrite(0, as_bytes(header_of(labels_.size()))));
    if (labelled_) PACKTRAIN_TRY(write_labels());
    return file_->commit();
  }

 private:
  std::string header_of(uint64_t rows) const {
    std::vector<uint64_t> shape = {rows};
    shape.insert(shape.end(), array_->shape.begin(), array_->shape.end());
    return make_npy_header(array_->type, shape);
  }
  // It keeps its length whatever the number of rows is.
  void set_header() { row_bytes_ = array_->bytes(); }
  Status begin() { return file_->append(as_bytes(header_of(0))); }

  Status add_row(const SampleToWrite& sample) {
    if (sample.fields.size() != 1 || sample.fields[0].name != field_)
      return Status(Code::invalid, "a .npy file holds one field of every sample, this one has " +
                                       counted(sample.fields.size(), "field") +
                                       "; use --format npz, zarr or hdf5");
    const Bytes bytes = sample.fields[0].bytes;
    if (labels_.empty()) {
      if (!array_) take_header(bytes);
      if (!array_) return no_array();
      PACKTRAIN_TRY(begin());
    }
    const bool fits = bytes.size() == front_.size() + row_bytes_ &&
                      (front_.empty() || std::memcmp(bytes.data(), front_.data(), front_.size()) == 0);
    if (!fits) return no_array();
    PACKTRAIN_TRY(file_->append(bytes.subspan(front_.size())));
    labels_.push_back(sample.label);
    labelled_ = labelled_ || sample.label != kNoLabel;
    return {};
  }

  // Values that are .npy files lose their headers, which are all the same and stand behind the array once.
  void take_header(Bytes bytes) {
    const auto header = stackable_header(bytes, bytes.size());
    if (!header) return;
    array_ = ArrayValue{header->type, {header->shape().begin(), header->shape().end()}};
    front_ = as_text(bytes.first(header->bytes));
    set_header();
  }

  Status no_array() const {
    return Status(Code::invalid, "the field " + printable(field_) +
                                     (array_ ? " is no array of the type and shape that the first one has"
                                             : " is no .npy file of plain numbers") +
                                     "; use --format npz, which takes any values");
  }

  Status write_labels() {
    const uint64_t count = labels_.size();
    std::string bytes = make_npy_header("<i8", {&count, 1});
    bytes.append(as_text(std::as_bytes(std::span(labels_))));
    WriteOptions options = options_;
    options.replace = true;  // a run that was killed may have left one
    const std::string folder = path_.substr(0, path_.rfind('/') + 1);
    return write_whole(storage_, folder + std::string(kNpyLabels), as_bytes(bytes), options);
  }

  Storage& storage_;
  const std::string path_;
  const WriteOptions options_;
  const std::string field_;
  std::optional<Appender> file_;
  std::optional<ArrayValue> array_;  // of one row; nothing until the first comes
  uint64_t row_bytes_ = 0;
  std::string front_;  // the header of every value
  std::vector<int64_t> labels_;
  bool labelled_ = false;
};

}  // namespace

Result<std::unique_ptr<ContainerWriter>> create_npy(Storage& storage, std::string_view path,
                                                    const WriteSpec& spec) {
  if (spec.compress != "none" && spec.compress != "auto")
    return Status(Code::unsupported, "npy is written with --compress none, not " + spec.compress);
  if (spec.fields.size() > 1) {
    return Status(Code::invalid, "a .npy file holds one field of every sample, these have " +
                                     names_in_words(spec.fields, spec.fields.size()) +
                                     "; use --format npz, zarr or hdf5")
        .at(path);
  }
  PACKTRAIN_ASSIGN(file, storage.create(path, spec.expected_bytes, spec.write));
  return std::unique_ptr<ContainerWriter>(new NpyWriter(storage, path, spec, std::move(file)));
}

}  // namespace packtrain
