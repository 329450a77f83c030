// The layout of variable length: values in heaps as they come, a group of references for each split.
#include <algorithm>
#include <array>
#include <limits>

#include "base/little_endian.h"
#include "base/words.h"
#include "format/columns.h"
#include "format/hdf5_heap.h"
#include "format/hdf5_output.h"
#include "format/hdf5_sets.h"
#include "format/hdf5_write.h"

namespace packtrain {
namespace {

// Readers load a whole collection for one value, so small samples share one that is not too large; a large
// one has its own, with all of its fields, so that one read brings them. libhdf5 takes none below 4096 bytes.
constexpr size_t kHeapBytes = size_t{64} << 10, kSmallestBytes = 4096;
constexpr size_t kMostObjectsInHeap = 65'535;
constexpr std::string_view kImages = "images", kTargets = "targets";

struct Reference {
  std::byte bytes[kHdf5ReferenceBytes] = {};
};
static_assert(sizeof(Reference) == kHdf5ReferenceBytes);

Reference reference(uint64_t items, uint64_t collection, uint64_t index) {
  Reference made;
  store_le<uint32_t>(made.bytes, static_cast<uint32_t>(items));
  store_le<uint64_t>(made.bytes + 4, collection);
  store_le<uint32_t>(made.bytes + 12, static_cast<uint32_t>(index));
  return made;
}

using Head = std::array<std::byte, kHdf5HeapHeadBytes>;

Head collection_head(uint64_t size) {
  Head head = {std::byte{'G'}, std::byte{'C'}, std::byte{'O'}, std::byte{'L'}, std::byte{1}};
  store_le<uint64_t>(head.data() + 8, size);
  return head;
}

Head object_head(uint64_t index, uint64_t size) {
  Head head = {};
  store_le<uint16_t>(head.data(), static_cast<uint16_t>(index));
  store_le<uint64_t>(head.data() + 8, size);
  return head;
}

size_t padding(size_t bytes) { return (8 - bytes % 8) % 8; }

// A collection that small values share until it is full; only then is known where it lies. One thread at a
// time.
class SharedCollection {
 public:
  // `needed`: sum of needed() of `objects` values.
  bool fits(size_t needed, size_t objects) const {
    return objects_.size() + needed <= kHeapBytes && waiting_.size() + objects <= kMostObjectsInHeap;
  }
  static bool is_small(size_t needed) { return needed <= kHeapBytes / 4; }
  // What a value takes in a collection; nothing if it is empty.
  static size_t needed(size_t bytes) { return bytes == 0 ? 0 : kHdf5HeapHeadBytes + bytes + padding(bytes); }

  // `into[row]` becomes the reference when the collection is written.
  void add(Bytes value, std::vector<Reference>& into, size_t row) {
    waiting_.push_back({&into, row, value.size()});
    const Head head = object_head(waiting_.size(), value.size());
    objects_.insert(objects_.end(), head.begin(), head.end());
    objects_.insert(objects_.end(), value.begin(), value.end());
    objects_.resize(objects_.size() + padding(value.size()));
  }

  Status write(Hdf5Output& output) {
    if (waiting_.empty()) return {};
    PACKTRAIN_TRY(output.align());
    const uint64_t address = output.address();
    const size_t used = kHdf5HeapHeadBytes + objects_.size();
    const size_t size = std::max(used, kSmallestBytes);
    if (size - used >= kHdf5HeapHeadBytes) {
      const Head rest = object_head(0, size - used);
      objects_.insert(objects_.end(), rest.begin(), rest.end());
    }
    objects_.resize(size - kHdf5HeapHeadBytes);
    PACKTRAIN_TRY(output.append(collection_head(size)));
    PACKTRAIN_TRY(output.append(objects_));
    for (size_t i = 0; i < waiting_.size(); ++i) {
      const Waiting& one = waiting_[i];
      (*one.into)[one.row] = reference(one.bytes, address, i + 1);
    }
    objects_.clear();
    waiting_.clear();
    return {};
  }

 private:
  struct Waiting {
    std::vector<Reference>* into;
    size_t row, bytes;
  };

  std::vector<std::byte> objects_;
  std::vector<Waiting> waiting_;
};

class VlenWriter : public ContainerWriter {
 public:
  VlenWriter(Hdf5Output output, Hdf5Names names, const WriteSpec& spec)
      : output_(std::move(output)),
        names_(std::move(names)),
        images_(is_image_set(spec)),
        labels_wanted_(spec.labels) {
    // Images of all kinds share the one dataset of the course's layout.
    if (images_) columns_.push_back({std::string(kImages), {}, {}, true});
    for (const std::string& field : spec.fields) {
      if (!images_) columns_.push_back({field, {}, {}, true});
    }
  }

  Status begin_split(std::string_view name) override {
    if (split_ == name && in_split_) return {};
    if (name.empty() && !in_split_) return {};  // the root
    if (in_split_ || !labels_.empty()) PACKTRAIN_TRY(finish_split());
    const bool known = std::any_of(root_.groups.begin(), root_.groups.end(),
                                   [&](const Hdf5GroupToWrite& group) { return group.name == name; });
    if (known || !root_.datasets.empty()) {
      return Status(Code::invalid, "the split '" + printable(name) + "' comes in pieces").at(output_.path());
    }
    if (name.empty() || name == "." || name.find('/') != std::string_view::npos) {
      return Status(Code::invalid, "a group of HDF5 cannot be named '" + printable(name) + "'")
          .at(output_.path());
    }
    split_ = name;
    in_split_ = true;
    return {};
  }

  Status add(const SampleToWrite& sample) override {
    Status status = add_sample(sample);
    return status.ok() ? status : status.at(printable(sample.key)).at(output_.path());
  }

  Status finish() override {
    if (in_split_ || root_.groups.empty()) PACKTRAIN_TRY(finish_split());
    return output_.finish(root_);
  }

 private:
  struct Column {
    std::string name;
    std::vector<Reference> references;
    std::vector<uint8_t> present;
    bool complete = true;  // every sample has it
  };

  // A value on its way into a heap; `into[row]` becomes the reference to it.
  struct Value {
    Bytes bytes;
    std::vector<Reference>* into;
  };

  Status add_sample(const SampleToWrite& sample) {
    const size_t row = labels_.size();
    new_values_.clear();
    for (const SampleToWrite::Field& field : sample.fields) {
      const size_t position = names_.position(field.name);
      if (position == SIZE_MAX) return Status(Code::invalid, "the field was not announced").at(field.name);
      Column& column = columns_[images_ ? 0 : position];
      if (column.present.size() > row)
        return Status(Code::invalid, images_ ? "has more than one image" : "a field comes twice")
            .at(field.name);
      if (field.bytes.size() > std::numeric_limits<uint32_t>::max()) {
        return Status(Code::invalid, "values of variable length have less than 4 GiB; write format hdf5")
            .at(field.name);
      }
      column.present.push_back(1);
      column.references.emplace_back();
      new_values_.push_back({field.bytes, &column.references});
    }
    PACKTRAIN_TRY(add_values(row, values_));
    labels_.push_back(label_to_write(sample));
    for (Column& column : columns_) {
      if (column.present.size() > row) continue;
      column.complete = false;
      column.present.push_back(0);
      column.references.emplace_back();
    }
    if (images_) return {};
    // Keys share collections of their own, so that an indexer reads them without the payload between.
    keys_.emplace_back();
    new_values_.assign({{as_bytes(sample.key), &keys_}});
    return add_values(row, key_values_);
  }

  // Those of one sample. The reference of an empty one stays all zero.
  Status add_values(size_t row, SharedCollection& shared) {
    std::erase_if(new_values_, [](const Value& value) { return value.bytes.empty(); });
    size_t needed = 0;
    for (const Value& value : new_values_) needed += SharedCollection::needed(value.bytes.size());
    if (needed == 0) return {};
    if (SharedCollection::is_small(needed)) {
      if (!shared.fits(needed, new_values_.size())) PACKTRAIN_TRY(shared.write(output_));
      for (const Value& value : new_values_) shared.add(value.bytes, *value.into, row);
      return {};
    }
    // The small ones first: then one short read shows an indexer the heads of all.
    std::stable_sort(new_values_.begin(), new_values_.end(),
                     [](const Value& a, const Value& b) { return a.bytes.size() < b.bytes.size(); });
    PACKTRAIN_TRY(output_.align());
    const uint64_t address = output_.address();
    PACKTRAIN_TRY(output_.append(collection_head(kHdf5HeapHeadBytes + needed)));
    for (size_t i = 0; i < new_values_.size(); ++i) {
      const Value& value = new_values_[i];
      (*value.into)[row] = reference(value.bytes.size(), address, i + 1);
      PACKTRAIN_TRY(output_.append(object_head(i + 1, value.bytes.size())));
      PACKTRAIN_TRY(output_.append(value.bytes));
      PACKTRAIN_TRY(output_.align());
    }
    return {};
  }

  Status finish_split() {
    PACKTRAIN_TRY(values_.write(output_));
    PACKTRAIN_TRY(key_values_.write(output_));
    Hdf5GroupToWrite group;
    group.name = split_;
    for (Column& column : columns_) {
      PACKTRAIN_TRY(add_dataset(column.name, Hdf5Element::bytes, column.references, group));
      if (!column.complete) {
        PACKTRAIN_TRY(
            add_dataset(column.name + std::string(kPresentSuffix), Hdf5Element::u8, column.present, group));
      }
      column.references.clear();
      column.present.clear();
      column.complete = true;
    }
    if (!images_) PACKTRAIN_TRY(add_dataset(kKeyColumn, Hdf5Element::string, keys_, group));
    keys_.clear();
    PACKTRAIN_TRY(add_labels(group));
    labels_.clear();
    if (in_split_) {
      root_.groups.push_back(std::move(group));
    } else {
      root_ = std::move(group);
    }
    in_split_ = false;
    return {};
  }

  // As narrow as they may be, but for the course's 16 bits.
  Status add_labels(Hdf5GroupToWrite& group) {
    const bool any =
        std::any_of(labels_.begin(), labels_.end(), [](int64_t label) { return label != kNoLabel; });
    if (!any && !(labels_wanted_ && labels_.empty())) return {};
    const auto [least, most] = std::minmax_element(labels_.begin(), labels_.end());
    const int64_t low = labels_.empty() ? 0 : *least, high = labels_.empty() ? 0 : *most;
    if (low >= INT16_MIN && high <= INT16_MAX) {
      return add_dataset(kTargets, Hdf5Element::i16, std::vector<int16_t>(labels_.begin(), labels_.end()),
                         group);
    }
    if (low >= INT32_MIN && high <= INT32_MAX) {
      return add_dataset(kTargets, Hdf5Element::i32, std::vector<int32_t>(labels_.begin(), labels_.end()),
                         group);
    }
    return add_dataset(kTargets, Hdf5Element::i64, labels_, group);
  }

  template <class T>
  Status add_dataset(std::string_view name, Hdf5Element element, const std::vector<T>& rows,
                     Hdf5GroupToWrite& group) {
    PACKTRAIN_TRY(output_.align());
    const Bytes data = std::as_bytes(std::span(rows));
    group.datasets.push_back({.name = std::string(name),
                              .element = element,
                              .rows = rows.size(),
                              .address = output_.address(),
                              .bytes = data.size()});
    return output_.append(data);
  }

  Hdf5Output output_;
  Hdf5Names names_;
  const bool images_;  // the course's layout: no keys, one dataset named "images"
  const bool labels_wanted_;
  Hdf5GroupToWrite root_;
  std::string split_;
  bool in_split_ = false;
  std::vector<Column> columns_;
  std::vector<Reference> keys_;
  std::vector<int64_t> labels_;
  std::vector<Value> new_values_;
  SharedCollection values_, key_values_;
};

}  // namespace

Result<std::unique_ptr<ContainerWriter>> create_hdf5_vlen(Storage& storage, std::string_view path,
                                                          const WriteSpec& spec) {
  auto names = Hdf5Names::make(spec.fields, {"", kPresentSuffix}, {kTargets, kKeyColumn});
  if (!names.ok()) return names.status().at(path);
  PACKTRAIN_ASSIGN(output, Hdf5Output::create(storage, path, spec));
  return std::unique_ptr<ContainerWriter>(new VlenWriter(std::move(output), std::move(*names), spec));
}

}  // namespace packtrain
