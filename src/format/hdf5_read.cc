// HDF5: the indexer of both formats, which differ in what packtrain writes. Values of variable length, slices
// of flat bytes and rows of arrays become plain extents. Read are metadata, references and offsets, labels
// and keys; of payload only a few bytes, which tell what a column named "images" holds.
#include <algorithm>
#include <set>

#include "base/words.h"
#include "format/columns.h"
#include "format/hdf5_chunks.h"
#include "format/hdf5_elements.h"
#include "format/hdf5_file.h"
#include "format/hdf5_heap.h"
#include "format/hdf5_sets.h"
#include "format/hdf5_write.h"
#include "format/pace.h"
#include "format/table.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

constexpr size_t kFirstBytes = 64;      // of a value, to tell what it is
constexpr uint64_t kLongestKey = 4096;  // longer ones are no keys

Status corrupt_dataset(std::string what) { return Status(Code::corrupt, std::move(what)); }

int64_t integer_at(Bytes element, const Hdf5Type& type) {
  uint64_t value = 0;
  for (size_t i = 0; i < element.size(); ++i) {
    const size_t at = type.big_endian ? element.size() - 1 - i : i;
    value |= uint64_t{std::to_integer<uint8_t>(element[at])} << (8 * i);
  }
  const size_t unused = 64 - 8 * element.size();
  return type.is_signed ? static_cast<int64_t>(value << unused) >> unused : static_cast<int64_t>(value);
}

Result<std::vector<int64_t>> read_integers(Hdf5File& file, const Hdf5Object& dataset) {
  PACKTRAIN_ASSIGN(bytes, read_hdf5_elements(file, dataset));
  const size_t size = dataset.type.size;
  std::vector<int64_t> integers(bytes.size() / size);
  for (size_t i = 0; i < integers.size(); ++i) {
    integers[i] = integer_at(Bytes(bytes).subspan(i * size, size), dataset.type);
  }
  return integers;
}

// A field of a set with all that says where its values lie.
struct Loaded {
  const Hdf5Column* column = nullptr;
  std::string field;
  size_t first_value = 0;  // of kind values: into the indexer's
  Hdf5Elements elements;   // of the other kinds
  uint64_t row_bytes = 0;
  std::vector<int64_t> offsets;  // in bytes
  std::vector<std::byte> present;
};

struct LoadedSet {
  const Hdf5Set* set = nullptr;
  std::vector<Loaded> fields;
  std::vector<int64_t> labels;
  TextRow keys;
  bool keys_wanted = false;  // values from first_key on
  size_t first_key = 0;
};

// Reads the structure of one file. One thread at a time. Memory: about 30 bytes a value, and the keys.
class Hdf5Indexer {
 public:
  Hdf5Indexer(Hdf5File& file, const IndexOptions& options)
      : file_(file), options_(options), pace_(options.progress) {}

  Status run(const std::vector<Hdf5Set>& sets) {
    for (const Hdf5Set& set : sets) {
      Status status = load(set);
      if (!status.ok()) return set.split.empty() ? status : status.at(printable(set.split));
    }
    PACKTRAIN_TRY(find_hdf5_values(file_, values_, pace_));
    for (LoadedSet& set : sets_) {
      if (set.keys_wanted) PACKTRAIN_TRY(load_keys(set));
      PACKTRAIN_TRY(name_fields(set));
    }
    return {};
  }

  Status add_samples(uint32_t shard, IndexBuilder& out) {
    uint64_t number = 0;
    for (LoadedSet& set : sets_) {
      if (!set.set->split.empty()) out.begin_split(set.set->split);
      for (const Loaded& field : set.fields) {
        const Hdf5Object& data = field.column->data;
        std::string word = data.type.numpy_word();
        if (field.column->kind != Hdf5Column::Kind::rows || word.empty()) continue;
        out.set_array(field.field, {std::move(word), {data.shape.begin() + 1, data.shape.end()}});
      }
      for (uint64_t i = 0; i < set.set->samples; ++i, ++number) {
        PACKTRAIN_TRY(add_sample(set, i, number, shard, out));
        PACKTRAIN_TRY(pace_.tell({.phase = "index", .items = number}));
      }
    }
    return {};
  }

 private:
  void note_column(const std::string& name) const {
    if (options_.columns == nullptr) return;
    const auto& known = options_.columns->names;
    if (std::find(known.begin(), known.end(), name) == known.end()) note_left_out(name, *options_.columns);
  }

  Status load(const Hdf5Set& set) {
    LoadedSet loaded;
    loaded.set = &set;
    for (const std::string& name : set.left_out) note_column(name);
    if (set.labels) {
      auto labels = read_integers(file_, *set.labels);
      if (!labels.ok()) return labels.status().at("labels");
      const Hdf5Type& type = set.labels->type;
      if (type.size == sizeof(uint64_t) && !type.is_signed &&
          std::any_of(labels->begin(), labels->end(), [](int64_t label) { return label < 0; })) {
        return Status(Code::unsupported, "holds numbers of more than 63 bits; save it as int64").at("labels");
      }
      loaded.labels = std::move(*labels);
    }
    if (set.keys && set.keys->type.variable()) {
      loaded.keys_wanted = true;
      loaded.first_key = values_.size();
      Status status = add_values(*set.keys);
      if (!status.ok()) return status.at("keys");
    } else if (set.keys) {
      auto bytes = read_hdf5_elements(file_, *set.keys);
      if (!bytes.ok()) return bytes.status().at("keys");
      const size_t size = set.keys->type.size;
      for (size_t i = 0; i < bytes->size(); i += size) {
        std::string_view text = as_text(Bytes(*bytes).subspan(i, size));
        const size_t last = text.find_last_not_of('\0');
        loaded.keys.add(text.substr(0, last == std::string_view::npos ? 0 : last + 1));
      }
    }
    for (const Hdf5Column& column : set.fields) {
      Loaded field;
      field.column = &column;
      Status status = load(column, set.samples, field);
      // A number beside the payload that cannot be read is no reason to refuse all.
      const bool minor = column.kind == Hdf5Column::Kind::rows && column.data.shape.size() == 1;
      if (status.code() == Code::unsupported && minor && set.fields.size() > 1) {
        note_column(column.name);
        continue;
      }
      if (!status.ok()) return status.at(printable(column.name));
      loaded.fields.push_back(std::move(field));
    }
    if (!set.labels && set.samples > 0) note_labels(set);
    for (const Hdf5Column& column : set.fields) {
      const Hdf5Object& data = column.data;
      const bool one_each = data.shape.size() == 1 || (data.shape.size() == 2 && data.shape[1] == 1);
      if (set.labels && is_label_name(column.name) && column.kind == Hdf5Column::Kind::rows && one_each &&
          data.type.kind == Hdf5Type::Kind::integer)
        note_other_labels(options_, set.label_name, column.name);
    }
    sets_.push_back(std::move(loaded));
    return {};
  }

  void note_labels(const Hdf5Set& set) const {
    for (const Hdf5Column& column : set.fields) {
      if (!is_label_name(column.name)) continue;
      const Hdf5Type& type = column.data.type;
      const bool texts = type.kind == Hdf5Type::Kind::text || type.variable();
      note_no_labels(options_, column.name,
                     texts                                  ? "texts"
                     : type.kind == Hdf5Type::Kind::integer ? "several numbers for each"
                                                            : "numbers that are not whole");
    }
  }

  Status load(const Hdf5Column& column, uint64_t samples, Loaded& field) {
    field.field = column.name;
    if (column.present) {
      PACKTRAIN_ASSIGN(present, read_hdf5_elements(file_, *column.present));
      field.present = std::move(present);
    }
    if (column.kind == Hdf5Column::Kind::values) {
      field.first_value = values_.size();
      return add_values(column.data);
    }
    PACKTRAIN_ASSIGN(elements, Hdf5Elements::find(file_, column.data));
    field.elements = std::move(elements);
    field.row_bytes = hdf5_row_bytes(column.data);
    if (column.kind == Hdf5Column::Kind::rows) return {};
    PACKTRAIN_ASSIGN(offsets, read_integers(file_, *column.offsets));
    field.offsets = std::move(offsets);
    // In bytes from here on; rising, and within the data.
    const auto most = static_cast<int64_t>(std::min<uint64_t>(hdf5_rows(column.data), INT64_MAX));
    int64_t before = 0;
    for (uint64_t i = 0; i <= samples; ++i) {
      int64_t& offset = field.offsets[i];
      if (offset < before || offset > most) {
        return corrupt_dataset("offset " + std::to_string(i) + " is " + std::to_string(offset) +
                               ", which is " +
                               (offset < before ? "less than the one before it" : "beyond the last byte"));
      }
      before = offset;
      offset *= static_cast<int64_t>(column.data.type.size);
    }
    return {};
  }

  Status add_values(const Hdf5Object& dataset) {
    if (dataset.type.item_size == 0 || dataset.type.big_endian || dataset.type.size != kHdf5ReferenceBytes) {
      return Status(Code::unsupported, "holds sequences of something else than little-endian numbers");
    }
    PACKTRAIN_ASSIGN(references, read_hdf5_elements(file_, dataset));
    for (size_t i = 0; i < references.size(); i += kHdf5ReferenceBytes) {
      values_.push_back(
          parse_hdf5_reference(Bytes(references).subspan(i, kHdf5ReferenceBytes), dataset.type.item_size));
    }
    return {};
  }

  Status load_keys(LoadedSet& set) {
    std::span<Hdf5Value> keys = std::span(values_).subspan(set.first_key, set.set->samples);
    for (const Hdf5Value& key : keys) {
      if (key.bytes > kLongestKey)
        return corrupt_dataset("a key has " + std::to_string(key.bytes) + " bytes");
    }
    PACKTRAIN_ASSIGN(texts, read_hdf5_texts(file_, keys));
    set.keys = std::move(texts);
    return {};
  }

  // A column may be named after what it is for, not after what it holds.
  Status name_fields(LoadedSet& set) {
    if (set.set->named) return {};
    std::set<std::string> names;
    for (const Loaded& field : set.fields) names.insert(field.field);
    for (Loaded& field : set.fields) {
      std::byte first[kFirstBytes];
      PACKTRAIN_ASSIGN(bytes, read_first(field, set.set->samples, first));
      std::string better = field_of_column(field.column->name, std::span(first).first(bytes));
      if (names.insert(better).second) field.field = std::move(better);
    }
    return {};
  }

  // The first bytes of the first value that has any.
  Result<size_t> read_first(const Loaded& field, uint64_t samples, MutableBytes into) {
    if (field.column->kind == Hdf5Column::Kind::rows) return size_t{0};  // numbers, which say nothing
    for (uint64_t i = 0; i < samples; ++i) {
      if (field.column->kind == Hdf5Column::Kind::values) {
        const Hdf5Value& value = values_[field.first_value + i];
        if (value.state != Hdf5Value::State::found || value.bytes == 0) continue;
        into = into.first(static_cast<size_t>(std::min<uint64_t>(value.bytes, into.size())));
        PACKTRAIN_TRY(file_.storage().read(file_.file(), value.place, into));
        return into.size();
      }
      const auto begin = static_cast<uint64_t>(field.offsets[i]);
      const auto length = static_cast<uint64_t>(field.offsets[i + 1]) - begin;
      if (length == 0) continue;
      return field.elements.read(file_, begin,
                                 into.first(static_cast<size_t>(std::min<uint64_t>(length, into.size()))));
    }
    return size_t{0};
  }

  // Why a sample cannot be used, if it cannot.
  Status damage_of(const LoadedSet& set, uint64_t i) const {
    if (set.keys_wanted) {
      const Hdf5Value& key = values_[set.first_key + i];
      if (key.state != Hdf5Value::State::found) return damage_of("its key", key);
    }
    for (const Loaded& field : set.fields) {
      if (field.column->kind != Hdf5Column::Kind::values) continue;
      const Hdf5Value& value = values_[field.first_value + i];
      if (value.state != Hdf5Value::State::found) return damage_of(printable(field.column->name), value);
    }
    return {};
  }

  Status damage_of(const std::string& what, const Hdf5Value& value) const {
    const bool known = value.state == Hdf5Value::State::short_object;  // then its place is an offset
    return corrupt_dataset(std::string(hdf5_value_trouble(value.state)))
        .at(what + " @ " + std::to_string(known ? value.place : file_.offset(value.place)));
  }

  Status add_sample(LoadedSet& set, uint64_t i, uint64_t number, uint32_t shard, IndexBuilder& out) {
    if (Status damage = damage_of(set, i); !damage.ok()) {
      const std::string which = (set.set->split.empty() ? "" : set.set->split + "/") + std::to_string(i);
      damage = damage.at("sample " + printable(which));
      if (!options_.recover) return with_way_out(damage);
      if (options_.damage) options_.damage->push_back({0, 0, damage.text()});
      return {};
    }
    const bool numbered = set.keys.empty();
    if (numbered) {
      key_ = number_key(number);
    } else {
      key_ = set.keys[i];
    }
    out.begin_sample(key_);
    if (!set.labels.empty()) out.set_label(set.labels[i]);
    uint64_t near = 0;
    for (Loaded& field : set.fields) {
      if (!field.present.empty() && field.present[i] == std::byte{0}) continue;
      path_.assign(key_).append(".").append(field.field);
      switch (field.column->kind) {
        case Hdf5Column::Kind::values: {
          const Hdf5Value& value = values_[field.first_value + i];
          // A value without bytes lies nowhere: let it lie where the sample is.
          if (value.bytes > 0) near = value.place;
          out.add_field(field.field, shard, near, value.bytes, CheckKind::none, 0, path_);
          break;
        }
        case Hdf5Column::Kind::slices: {
          const auto begin = static_cast<uint64_t>(field.offsets[i]);
          const auto end = static_cast<uint64_t>(field.offsets[i + 1]);
          field.elements.add_field(out, shard, field.field, begin, end - begin, path_);
          break;
        }
        case Hdf5Column::Kind::rows:
          field.elements.add_field(out, shard, field.field, i * field.row_bytes, field.row_bytes, path_);
          break;
      }
    }
    return out.end_sample();
  }

  Hdf5File& file_;
  const IndexOptions& options_;
  Pace pace_;
  std::vector<LoadedSet> sets_;
  std::vector<Hdf5Value> values_;  // of all sets, so that each heap is walked once
  std::string key_, path_;
};

Status index_hdf5(const Format& format, Storage& storage, std::string_view path, const IndexOptions& options,
                  IndexBuilder& out) {
  PACKTRAIN_ASSIGN(file, storage.open(path));
  const auto run = [&]() -> Status {
    PACKTRAIN_ASSIGN(opened, Hdf5File::open(storage, *file));
    PACKTRAIN_ASSIGN(sets, find_hdf5_sets(opened));
    Hdf5Indexer indexer(opened, options);
    PACKTRAIN_TRY(indexer.run(sets));
    return indexer.add_samples(out.add_shard(shard_spec(format, path, *file, options)), out);
  };
  const Status status = run();
  return status.ok() ? status : status.at(path);
}

// Whether it is an HDF5 file; `variable`: of which kind.
bool is_hdf5(Storage& storage, std::string_view path, bool variable) {
  auto file = storage.open(path);
  if (!file.ok()) return false;
  auto base = find_hdf5_signature(storage, **file);
  if (!base.ok() || !*base) return false;
  // What cannot be understood is the plain kind's, which says why.
  auto opened = Hdf5File::open(storage, **file);
  if (!opened.ok()) return !variable;
  auto sets = find_hdf5_sets(*opened);
  return variable == (sets.ok() && has_variable_length(*sets));
}

}  // namespace

const Format kHdf5 = {
    .name = "hdf5",
    .suffix = ".h5",
    .summary = "HDF5 files of flat bytes with offsets, and of arrays",
    .recognise = [](Storage& storage, std::string_view path) { return is_hdf5(storage, path, false); },
    .index = [](Storage& storage, std::string_view path, const IndexOptions& options,
                IndexBuilder& out) { return index_hdf5(kHdf5, storage, path, options, out); },
    .layout = nullptr,
    .create = create_hdf5,
    .label_column = true,
};

const Format kHdf5Vlen = {
    .name = "hdf5-vlen",
    .suffix = ".h5",
    .summary = "HDF5 files of values of variable length, a group per split",
    .recognise = [](Storage& storage, std::string_view path) { return is_hdf5(storage, path, true); },
    .index = [](Storage& storage, std::string_view path, const IndexOptions& options,
                IndexBuilder& out) { return index_hdf5(kHdf5Vlen, storage, path, options, out); },
    .layout = nullptr,
    .create = create_hdf5_vlen,
    .cut = Cut::one_for_all,
    .label_column = true,
};

}  // namespace packtrain
