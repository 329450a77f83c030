#include "samples.h"

#include <algorithm>

#include "gil.h"

namespace packtrain::bind {

namespace {

constexpr const char* kKeyName = "__key__";
constexpr std::string_view kLabelField = "cls";

nb::str interned(const std::string& name) {
  PyObject* text = to_text(name).release().ptr();
  PyUnicode_InternInPlace(&text);
  return nb::steal<nb::str>(text);
}

// Bytes whose content is still to be written; nobody else has seen them.
nb::bytes new_bytes(uint64_t length) {
  PyObject* bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(length));
  if (bytes == nullptr) throw nb::python_error();
  return nb::steal<nb::bytes>(bytes);
}

FieldRead read_into(uint64_t sample, uint32_t field, const nb::bytes& bytes, uint64_t length) {
  auto* memory = reinterpret_cast<std::byte*>(PyBytes_AsString(bytes.ptr()));
  return {.sample = sample, .field = field, .into = MutableBytes(memory, length), .status = {}};
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

}  // namespace

Result<Samples> Samples::of(std::shared_ptr<Dataset> dataset, std::string path,
                            std::optional<std::string> split) {
  const Manifest& manifest = dataset->manifest();
  Samples samples;
  samples.size_ = manifest.samples;
  if (split) {
    const SplitSpec* found = nullptr;
    std::vector<std::string> names;
    for (const SplitSpec& spec : manifest.splits) {
      if (spec.name == *split) found = &spec;
      names.push_back(spec.name);
    }
    if (found == nullptr) {
      return Status(Code::not_found,
                    "there is no split '" + *split + "'; " +
                        (names.empty() ? "the dataset has none" : "there are: " + joined(names)))
          .at(path);
    }
    samples.first_ = found->first;
    samples.size_ = found->count;
  }
  for (uint32_t field = 0; field < manifest.fields.size(); ++field) {
    samples.names_.push_back(interned(manifest.fields[field].name));
    samples.everything_.fields.push_back(field);
  }
  samples.key_name_ = interned(kKeyName);
  samples.label_field_ = manifest.field_id(kLabelField);
  samples.dataset_ = std::move(dataset);
  samples.path_ = std::move(path);
  samples.split_ = std::move(split);
  return samples;
}

uint64_t Samples::sample_at(int64_t position) const {
  const auto size = static_cast<int64_t>(size_);
  const int64_t at = position < 0 ? position + size : position;
  if (at < 0 || at >= size) {
    throw nb::index_error(
        ("there is no sample " + std::to_string(position) + ": there are " + std::to_string(size)).c_str());
  }
  return first_ + static_cast<uint64_t>(at);
}

uint64_t Samples::sample_with(nb::handle key) const {
  const std::string bytes = to_bytes(key);
  auto found = [&] {
    const WithoutGil free;
    return dataset_->find(bytes);
  }();
  if (found.status().code() == Code::not_found)
    raise(Status(Code::not_found,
                 "there is no sample with the key '" + bytes + "'; `keys` has those that are there")
              .at(path_));
  const uint64_t sample = value_or_raise(std::move(found));
  if (sample < first_ || sample - first_ >= size_)
    raise(Status(Code::not_found,
                 "the sample '" + bytes + "' is not in the split '" + split_.value_or("") + "'"));
  return sample;
}

bool Samples::has_key(nb::handle key) const {
  const std::string bytes = to_bytes(key);
  auto sample = [&] {
    const WithoutGil free;
    return dataset_->find(bytes);
  }();
  if (!sample.ok() && sample.status().code() != Code::not_found) raise(sample.status());
  return sample.ok() && *sample >= first_ && *sample - first_ < size_;
}

nb::str Samples::key(uint64_t sample) const {
  bind::check(dataset_->sound(IndexPart::names, kQuickToCompare));
  return to_text(value_or_raise(dataset_->key(sample)));
}

std::span<const int64_t> Samples::labels() const {
  bind::check(dataset_->sound(IndexPart::labels, kQuickToCompare));
  return dataset_->labels();
}

uint32_t Samples::field_id(nb::handle name) const {
  // Names that are written in a program are one object wherever they stand.
  for (uint32_t field = 0; field < names_.size(); ++field)
    if (names_[field].is(name)) return field;
  const std::string bytes = to_bytes(name);
  const uint32_t field = dataset_->manifest().field_id(bytes);
  if (field == UINT32_MAX) {
    std::vector<std::string> names;
    for (const FieldSpec& spec : dataset_->manifest().fields) names.push_back(spec.name);
    raise(
        Status(Code::not_found, "there is no field '" + bytes + "'; there are: " + joined(names)).at(path_));
  }
  return field;
}

Samples::Wanted Samples::wanted(nb::handle fields) const {
  Wanted wanted{.key = false, .fields = {}};
  if (nb::isinstance<nb::str>(fields)) throw nb::type_error("fields is a sequence of names, not one name");
  for (nb::handle name : fields) {
    if (name.equal(key_name_)) {
      wanted.key = true;
    } else {
      wanted.fields.push_back(field_id(name));
    }
  }
  return wanted;
}

std::vector<SampleDict> Samples::read(std::span<const uint64_t> samples, nb::handle fields,
                                      bool check) const {
  std::optional<Wanted> chosen;
  if (!fields.is_none()) chosen = wanted(fields);
  const Wanted& wanted = chosen ? *chosen : everything_;

  std::vector<SampleDict> dicts(samples.size());
  std::vector<FieldRead> reads;
  reads.reserve(samples.size() * wanted.fields.size());
  const bool wants_labels =
      std::find(wanted.fields.begin(), wanted.fields.end(), label_field_) != wanted.fields.end();
  const std::span<const int64_t> labels = wants_labels ? this->labels() : std::span<const int64_t>();
  for (size_t i = 0; i < samples.size(); ++i) {
    const uint64_t sample = samples[i];
    if (wanted.key) dicts[i][key_name_] = key(sample);
    for (const uint32_t field : wanted.fields) {
      // A label stands in the index: it is a number, and its bytes need not be read.
      if (field == label_field_ && labels[sample] != kNoLabel) {
        dicts[i][names_[field]] = labels[sample];
        continue;
      }
      const FieldLocation location = dataset_->locate(sample, field);
      if (!location.present) continue;
      const nb::bytes bytes = new_bytes(location.length);
      reads.push_back(read_into(sample, field, bytes, location.length));
      dicts[i][names_[field]] = bytes;
    }
  }
  {
    const WithoutGil free;
    read_fields(*dataset_, reads, check);
  }
  for (const FieldRead& read : reads) bind::check(read.status);
  return dicts;
}

nb::bytes Samples::read_field(uint64_t sample, uint32_t field, bool check) const {
  const FieldLocation location = dataset_->locate(sample, field);
  const bool is_at_hand = dataset_->is_at_hand(location);
  nb::bytes bytes = new_bytes(location.length);
  const FieldRead read = read_into(sample, field, bytes, location.length);
  // To give the lock away and get it back costs two threads more than such a copy takes. What is wrong with
  // one is for the usual way to say.
  if (is_at_hand && dataset_->read_plain(location, read.into).ok() &&
      (!check || matches(location.check_kind, location.check, read.into)))
    return bytes;
  bind::check([&] {
    const WithoutGil free;
    return packtrain::read_field(*dataset_, sample, field, location, read.into, check);
  }());
  return bytes;
}

}  // namespace packtrain::bind
