#include "format/array_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/little_endian.h"
#include "base/words.h"
#include "format/array_groups.h"
#include "format/columns.h"
#include "format/pace.h"
#include "format/table.h"

namespace packtrain {
namespace {

constexpr uint64_t kMostArrayBytes = uint64_t{1} << 60;
// Every sample takes some room: who claims more of them for each byte stored wants memory, not samples.
constexpr uint64_t kMostSamplesPerByte = 64, kSamplesForNothing = 1024;

int64_t integer_at(const ArrayType& type, const std::byte* at, bool& fits) {
  const bool is_signed = type.kind == ArrayType::Kind::signed_integer;
  switch (type.item_bytes) {
    case 1:
      return is_signed ? int64_t{load_le<int8_t>(at)} : int64_t{load_le<uint8_t>(at)};
    case 2:
      return is_signed ? int64_t{load_le<int16_t>(at)} : int64_t{load_le<uint16_t>(at)};
    case 4:
      return is_signed ? int64_t{load_le<int32_t>(at)} : int64_t{load_le<uint32_t>(at)};
    default:
      fits = fits && (is_signed || load_le<uint64_t>(at) <= uint64_t{INT64_MAX});
      return load_le<int64_t>(at);
  }
}

Result<std::vector<int64_t>> read_integers(Storage& storage, const ArrayTable& table,
                                           const ArrayColumn& column) {
  PACKTRAIN_ASSIGN(bytes, read_array(storage, table, column));
  std::vector<int64_t> values(bytes.size() / column.type.item_bytes);
  bool fits = true;
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = integer_at(column.type, bytes.data() + i * column.type.item_bytes, fits);
  if (!fits) {
    return Status(Code::unsupported, "holds numbers of more than 63 bits; save it as int64")
        .at(printable(column.name));
  }
  return values;
}

// UTF-32, little-endian, to UTF-8; zeros at the end are padding.
Result<std::string> text_of_utf32(Bytes item) {
  while (item.size() >= 4 && load_le<uint32_t>(item.data() + item.size() - 4) == 0)
    item = item.first(item.size() - 4);
  std::string text;
  for (size_t i = 0; i + 4 <= item.size(); i += 4) {
    const auto code = load_le<uint32_t>(item.data() + i);
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      return Status(Code::corrupt, "holds a text that is no Unicode");
    if (code < 0x80) {
      text += static_cast<char>(code);
      continue;
    }
    constexpr uint32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    text += static_cast<char>(kLead[more] | code >> (6 * more));
    for (int byte = more - 1; byte >= 0; --byte)
      text += static_cast<char>(0x80 | (code >> (6 * byte) & 0x3F));
  }
  return text;
}

// Adds the samples of one group.
class TableIndexer {
 public:
  TableIndexer(Storage& storage, const ArrayTable& table, const IndexOptions& options,
               std::vector<uint32_t>& shards, IndexBuilder& out)
      : storage_(storage),
        table_(table),
        options_(options),
        pace_(options.progress),
        shards_(shards),
        out_(out) {}

  Status run(const ArraysByName& arrays) {
    PACKTRAIN_TRY(find_columns(arrays));
    for (uint64_t sample = 0; sample < samples_; ++sample) {
      PACKTRAIN_TRY(
          pace_.tell({.phase = "index", .items = sample, .items_total = samples_, .unit = "samples"}));
      PACKTRAIN_TRY(add_sample(sample));
    }
    return {};
  }

 private:
  struct Field {
    std::string name;
    const ArrayColumn* column;
    uint64_t item_bytes = 0;       // of a row, or of an item where there are offsets
    std::vector<int64_t> offsets;  // empty: one row each
    std::vector<int64_t> present;  // empty: all
    const ArrayColumn* header = nullptr;
    std::vector<Slice> header_slices;
    std::vector<uint64_t> blocks;  // of compressed parts: id + 1 where it was added
    std::vector<std::pair<uint64_t, uint64_t>>
        holes;  // of different lengths, few as they are, and their blocks
  };
  static constexpr size_t kMostHoles = 64;

  Status find_columns(const ArraysByName& arrays) {
    PACKTRAIN_TRY(check_not_one_each(arrays));
    PACKTRAIN_ASSIGN(samples, count_samples(arrays));
    samples_ = samples;
    uint64_t stored = 0;
    for (const ArrayFile& file : table_.files) stored += std::min(file.shard.bytes, kMostArrayBytes);
    if (samples_ > kSamplesForNothing && (samples_ - kSamplesForNothing) / kMostSamplesPerByte > stored) {
      return Status(Code::corrupt,
                    "claims to hold " + count_in_words(samples_) + " samples in " + bytes_in_words(stored));
    }
    key_column_ = find_key_column(arrays);
    for (const auto& [name, column] : arrays) {
      if (is_helper(arrays, name)) continue;
      if (is_aside(arrays, *column, name, samples_)) {
        note_aside(column->name);
        if (is_label_name(name) && column->type.is_integer())
          note_no_labels(options_, column->name, counted(column->rows(), "number"));
        continue;
      }
      if (samples_of(arrays, *column, name) != samples_) {
        return Status(Code::unsupported, "has " + counted(samples_of(arrays, *column, name), "row") +
                                             " for " + counted(samples_, "sample") +
                                             "; save arrays with one row for each sample")
            .at(printable(column->name));
      }
      Status status = take_column(arrays, name, *column);
      if (!status.ok()) return status.at(printable(column->name));
    }
    note_labels();
    PACKTRAIN_TRY(check_fields());
    PACKTRAIN_TRY(name_fields());
    std::vector<std::string> untyped;
    for (const Field& field : fields_) {
      const ArrayColumn& column = *field.column;
      if (!field.offsets.empty() || field.header != nullptr) continue;
      if (column.word.empty()) untyped.push_back(column.name);
      if (column.word.empty()) continue;
      out_.set_array(field.name, {column.word, {column.shape.begin() + 1, column.shape.end()}});
    }
    if (!untyped.empty()) {
      add_note(options_,
               "rows of " + names_in_words(untyped, untyped.size()) +
                   " are no plain numbers (but records, dates or texts), and become bytes without their "
                   "type; packed into an array container they are bytes there too");
    }
    return {};
  }

  // Of several arrays that may be the keys: the one that only packtrain calls so, else texts of any length,
  // which can be nothing else (a sample's own field may be called "key"), else the first.
  const ArrayColumn* find_key_column(const ArraysByName& arrays) const {
    const ArrayColumn* found = nullptr;
    for (const auto& [name, column] : arrays) {
      if (is_helper(arrays, name) || is_aside(arrays, *column, name, samples_) ||
          role_of(arrays, *column, name) != ColumnRole::key)
        continue;
      if (name == kKeyColumn) return column;
      const bool only_keys = column->type.kind == ArrayType::Kind::long_text;
      if (found == nullptr || (only_keys && found->type.kind != ArrayType::Kind::long_text)) found = column;
    }
    return found;
  }

  Status check_fields() const {
    if (fields_.size() > 256)
      return Status(Code::unsupported,
                    "has " + count_in_words(fields_.size()) + " arrays; 256 can be fields");
    return {};
  }

  void note_labels() const {
    if (!labels_.empty() || samples_ == 0) return;
    for (const Field& field : fields_) {
      if (!is_label_name(field.name)) continue;
      const ArrayType& type = field.column->type;
      note_no_labels(options_, field.column->name,
                     type.kind == ArrayType::Kind::text || type.kind == ArrayType::Kind::bytes ? "texts"
                     : type.is_integer() ? "several numbers for each"
                                         : "numbers that are not whole");
    }
  }

  void note_aside(const std::string& name) {
    if (options_.columns == nullptr) return;
    const auto& known = options_.columns->names;
    if (std::find(known.begin(), known.end(), name) == known.end()) note_left_out(name, *options_.columns);
  }

  Status take_column(const ArraysByName& arrays, const std::string& name, const ArrayColumn& column) {
    for (std::string_view suffix : {std::string_view(), kOffsetsSuffix, kHeaderSuffix, kPresentSuffix}) {
      if (const ArrayColumn* part = find_array(arrays, name, suffix)) PACKTRAIN_TRY(part->unusable);
    }
    switch (role_of(arrays, column, name)) {
      case ColumnRole::label: {
        if (!labels_.empty()) note_other_labels(options_, label_name_, column.name);
        if (!labels_.empty() || samples_ == 0) break;
        PACKTRAIN_ASSIGN(labels, read_integers(storage_, table_, column));
        labels_ = std::move(labels);
        label_name_ = column.name;
        return {};
      }
      case ColumnRole::key: {
        if (samples_ == 0) return {};
        if (&column != key_column_) break;
        return read_keys(arrays, name, column);
      }
      case ColumnRole::field:
        break;
    }
    return take_field(arrays, name, column);
  }

  Status take_field(const ArraysByName& arrays, const std::string& name, const ArrayColumn& column) {
    if (column.type.kind == ArrayType::Kind::long_text) {
      return Status(Code::unsupported,
                    "is an array of texts of any length, which only keys may be; save them as bytes with "
                    "offsets");
    }
    Field field{.name = name, .column = &column};
    field.item_bytes = column.row_bytes();
    field.blocks.resize(column.pipeline.empty() ? 0 : column.parts.size());
    if (is_ragged(arrays, column, name)) {
      PACKTRAIN_ASSIGN(offsets, read_offsets(arrays, name, column));
      field.offsets = std::move(offsets);
    } else if (const ArrayColumn* header = find_array(arrays, name, kHeaderSuffix)) {
      if (header->type.item_bytes != 1 || header->shape.size() != 1)
        return Status(Code::corrupt, "its header is no array of bytes");
      field.header = header;
    }
    if (const ArrayColumn* present = find_array(arrays, name, kPresentSuffix)) {
      if (!present->type.is_integer() || present->shape.size() != 1 || present->rows() != samples_)
        return Status(Code::corrupt, "what says where it is present has not one number for each sample");
      PACKTRAIN_ASSIGN(values, read_integers(storage_, table_, *present));
      field.present = std::move(values);
    }
    fields_.push_back(std::move(field));
    return {};
  }

  Result<std::vector<int64_t>> read_offsets(const ArraysByName& arrays, std::string_view name,
                                            const ArrayColumn& column) {
    PACKTRAIN_ASSIGN(offsets, read_integers(storage_, table_, *find_array(arrays, name, kOffsetsSuffix)));
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      if (offsets[i] < 0 || offsets[i + 1] < offsets[i] ||
          static_cast<uint64_t>(offsets[i + 1]) > column.rows())
        return Status(Code::corrupt, "offset " + std::to_string(i) + " points outside of the array");
    }
    return offsets;
  }

  Status read_keys(const ArraysByName& arrays, std::string_view name, const ArrayColumn& column) {
    if (column.type.kind == ArrayType::Kind::long_text) {
      for (const std::string& text : column.texts) keys_.add(text);
      return {};
    }
    PACKTRAIN_ASSIGN(bytes, read_array(storage_, table_, column));
    keys_.reserve(samples_, bytes.size());
    if (is_ragged(arrays, column, name)) {
      if (column.type.item_bytes != 1) return Status(Code::unsupported, "keys with offsets must be bytes");
      PACKTRAIN_ASSIGN(offsets, read_offsets(arrays, name, column));
      for (uint64_t i = 0; i < samples_; ++i) {
        const auto begin = static_cast<size_t>(offsets[i]);
        keys_.add(as_text(Bytes(bytes).subspan(begin, static_cast<size_t>(offsets[i + 1]) - begin)));
      }
      return {};
    }
    const uint64_t item = column.type.item_bytes;
    for (uint64_t i = 0; i < samples_; ++i) {
      const Bytes one = Bytes(bytes).subspan(i * item, item);
      if (column.type.kind == ArrayType::Kind::text) {
        PACKTRAIN_ASSIGN(text, text_of_utf32(one));
        keys_.add(text);
      } else {
        std::string_view text = as_text(one);
        keys_.add(text.substr(0, text.find_last_not_of('\0') + 1));
      }
    }
    return {};
  }

  // Columns of bytes that are named after their purpose take the name of their content. What packtrain wrote
  // has its right names.
  Status name_fields() {
    if (table_.own_names) return {};
    for (Field& field : fields_) {
      if (field.offsets.empty() || field.column->type.item_bytes != 1) continue;
      std::vector<std::byte> first;
      for (uint64_t i = 0; i < samples_ && first.empty(); ++i) {
        const auto begin = static_cast<uint64_t>(field.offsets[i]),
                   end = static_cast<uint64_t>(field.offsets[i + 1]);
        if (begin == end || field.column->part_bytes == 0) continue;
        PACKTRAIN_ASSIGN(bytes, first_bytes(*field.column, begin, std::min<uint64_t>(end - begin, 64)));
        first = std::move(bytes);
      }
      std::string named = field_of_column(field.name, first);
      const bool taken = std::any_of(fields_.begin(), fields_.end(),
                                     [&](const Field& other) { return other.name == named; });
      if (!taken) field.name = std::move(named);
    }
    return {};
  }

  // Some bytes from one part; fewer where it ends.
  Result<std::vector<std::byte>> first_bytes(const ArrayColumn& column, uint64_t begin, uint64_t length) {
    ArrayColumn piece;
    piece.name = column.name;
    piece.type = column.type;
    const uint64_t number = begin / column.part_bytes;
    const ArrayPart& part = column.parts[number];
    const uint64_t inside = begin % column.part_bytes;
    piece.part_bytes = column.part_bytes;
    piece.pipeline = column.pipeline;
    piece.fill = column.fill;
    piece.parts = {part};
    piece.shape = {std::min(column.bytes() - number * column.part_bytes, column.part_bytes)};
    if (column.pipeline.empty() && !part.hole) {
      piece.parts[0].offset += part.start + inside;
      piece.parts[0].start = 0;
      piece.parts[0].check_kind = CheckKind::none;
      piece.shape[0] = std::min(length, piece.shape[0] - inside);
      piece.parts[0].stored = piece.parts[0].raw = piece.shape[0];
      return read_array(storage_, table_, piece);
    }
    PACKTRAIN_ASSIGN(bytes, read_array(storage_, table_, piece));
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(inside));
    if (bytes.size() > length) bytes.resize(length);
    return bytes;
  }

  Status add_sample(uint64_t sample) {
    const std::string number = keys_.empty() ? number_key(out_.samples()) : std::string();
    const std::string_view key = keys_.empty() ? std::string_view(number) : keys_[sample];
    out_.begin_sample(key);
    for (Field& field : fields_) {
      if (!field.present.empty() && field.present[sample] == 0) continue;
      path_.assign(key).append(".").append(field.name);
      const uint64_t begin =
          (field.offsets.empty() ? sample : static_cast<uint64_t>(field.offsets[sample])) * field.item_bytes;
      const uint64_t end =
          (field.offsets.empty() ? sample + 1 : static_cast<uint64_t>(field.offsets[sample + 1])) *
          field.item_bytes;
      add_field(field, begin, end);
    }
    if (!labels_.empty()) out_.set_label(labels_[sample]);
    return out_.end_sample();
  }

  void add_field(Field& field, uint64_t begin, uint64_t end) {
    const ArrayColumn& column = *field.column;
    if (field.header == nullptr && column.pipeline.empty() && !column.parts.empty()) {
      const uint64_t last = column.parts.size() - 1;
      const uint64_t number = last == 0 ? 0 : std::min(begin / column.part_bytes, last);
      const ArrayPart& part = column.parts[number];
      const uint64_t inside = begin - number * column.part_bytes;
      if (!part.hole && end - number * column.part_bytes <= column.part_bytes) {
        // The check of a part is that of a row where every row is a part.
        const bool checked = field.offsets.empty() && part.start == 0 && part.raw == field.item_bytes;
        out_.add_field(field.name, shard(part), part.offset + part.start + inside, end - begin,
                       checked ? part.check_kind : CheckKind::none, checked ? part.check : 0, path_);
        return;
      }
    }
    slices_.clear();
    if (field.header != nullptr) {
      if (field.header_slices.empty()) {
        Field header{.name = {}, .column = field.header};
        header.blocks.resize(field.header->pipeline.empty() ? 0 : field.header->parts.size());
        add_slices(header, 0, field.header->bytes(), field.header_slices);
      }
      slices_ = field.header_slices;
    }
    add_slices(field, begin, end, slices_);
    if (slices_.empty()) slices_.push_back({.block = empty_block(), .start = 0, .length = 0});
    out_.add_field(field.name, slices_, path_);
  }

  void add_slices(Field& field, uint64_t begin, uint64_t end, std::vector<Slice>& slices) {
    const ArrayColumn& column = *field.column;
    std::vector<uint64_t>& blocks = field.blocks;
    while (begin < end) {
      const uint64_t number = begin / column.part_bytes, inside = begin % column.part_bytes;
      const uint64_t length = std::min(end - begin, column.part_bytes - inside);
      const ArrayPart& part = column.parts[number];
      if (part.hole) {
        // It begins with an item, and so does the fill value.
        slices.push_back({.block = hole_block(field, part, length), .start = 0, .length = length});
      } else if (column.pipeline.empty()) {
        const bool whole = part.start == 0 && inside == 0 && length == part.raw;
        const uint64_t block = out_.add_block({.shard = shard(part),
                                               .check_kind = whole ? part.check_kind : CheckKind::none,
                                               .offset = part.offset + part.start + inside,
                                               .stored = length,
                                               .raw = length,
                                               .check = whole ? part.check : 0});
        slices.push_back({.block = block, .start = 0, .length = length});
      } else {
        if (blocks[number] == 0) {
          blocks[number] = 1 + out_.add_block({.shard = shard(part),
                                               .pipeline = out_.add_pipeline(column.pipeline),
                                               .check_kind = part.check_kind,
                                               .offset = part.offset,
                                               .stored = part.stored,
                                               .raw = part.raw,
                                               .check = part.check});
        }
        slices.push_back({.block = blocks[number] - 1, .start = part.start + inside, .length = length});
      }
      begin += length;
    }
  }

  uint64_t hole_block(Field& field, const ArrayPart& part, uint64_t length) {
    const auto known = std::find_if(field.holes.begin(), field.holes.end(),
                                    [&](const auto& one) { return one.first == length; });
    if (known != field.holes.end()) return known->second;
    const std::string& fill = field.column->fill;
    Block block{.shard = shard(part), .hole = fill.empty(), .raw = length};
    if (!fill.empty()) block.pipeline = out_.add_pipeline(fill_pipeline(fill));
    const uint64_t made = out_.add_block(block);
    if (field.holes.size() < kMostHoles) field.holes.emplace_back(length, made);
    return made;
  }

  // What a field of no bytes at all points to.
  uint64_t empty_block() {
    if (!empty_block_) empty_block_ = out_.add_block({.shard = shard({}), .hole = true});
    return *empty_block_;
  }

  uint32_t shard(const ArrayPart& part) {
    uint32_t& known = shards_[part.file];
    if (known == UINT32_MAX) known = out_.add_shard(table_.files[part.file].shard);
    return known;
  }

  Storage& storage_;
  const ArrayTable& table_;
  const IndexOptions& options_;
  Pace pace_;
  std::vector<uint32_t>& shards_;  // of each file; UINT32_MAX: not added yet
  IndexBuilder& out_;
  uint64_t samples_ = 0;
  std::vector<Field> fields_;
  std::vector<int64_t> labels_;
  std::string label_name_;
  const ArrayColumn* key_column_ = nullptr;  // null: none holds keys
  TextRow keys_;
  std::vector<Slice> slices_;
  std::string path_;
  std::optional<uint64_t> empty_block_;
};

}  // namespace

uint64_t ArrayColumn::row_bytes() const {
  uint64_t bytes = type.item_bytes;
  for (size_t axis = 1; axis < shape.size(); ++axis) bytes *= shape[axis];
  return bytes;
}

std::optional<uint64_t> checked_array_bytes(const std::vector<uint64_t>& shape, uint64_t item_bytes) {
  uint64_t bytes = item_bytes, with_zeros = item_bytes;
  for (const uint64_t size : shape) {
    if (size >= kMostArrayBytes / std::max<uint64_t>(bytes, 1)) return std::nullopt;
    bytes *= std::max<uint64_t>(size, 1);
    with_zeros *= size;
  }
  return with_zeros;
}

Status add_array_samples(Storage& storage, const ArrayTable& table, const IndexOptions& options,
                         IndexBuilder& out) {
  std::vector<uint32_t> shards(table.files.size(), UINT32_MAX);
  if (table.files.size() == 1) shards[0] = out.add_shard(table.files[0].shard);
  PACKTRAIN_ASSIGN(groups, array_groups(table));
  if (options.columns != nullptr) {
    for (const std::string& name : groups.aside) {
      const auto& known = options.columns->names;
      if (std::find(known.begin(), known.end(), name) == known.end()) note_left_out(name, *options.columns);
    }
  }
  for (const ArrayGroup& mine : groups.groups) {
    if (!mine.split.empty()) out.begin_split(mine.split);
    PACKTRAIN_TRY(TableIndexer(storage, table, options, shards, out).run(mine.arrays));
  }
  // A container is a shard, also where it holds no sample.
  const bool none = std::all_of(shards.begin(), shards.end(), [](uint32_t one) { return one == UINT32_MAX; });
  if (none && !table.files.empty()) out.add_shard(table.files[0].shard);
  return {};
}

}  // namespace packtrain
