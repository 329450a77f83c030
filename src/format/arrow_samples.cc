#include "format/arrow_samples.h"

#include <algorithm>

#include "base/words.h"
#include "format/grouping.h"
#include "format/merged_reads.h"
#include "format/table.h"
#include "packtrain/codec.h"

namespace packtrain {
namespace {

constexpr uint64_t kGroupBytes = uint64_t{32} << 20;  // batches are taken together until they need as much
constexpr uint64_t kPrefixBytes = 8;                  // the decoded length in front of a compressed buffer
constexpr uint64_t kNameBytes = 64;                   // of a value, to see what it is
// A text "cls" longer than this on average holds no labels, and is not read.
constexpr uint64_t kLabelTextBytes = 64;
// What is decoded to index a file, not to read samples: offsets, labels, keys.
constexpr uint64_t kMostDecoded = uint64_t{1} << 30;
// LZ4 gives at most 255 bytes for one, zstd 128 KiB for four. What claims more was made to exhaust memory.
constexpr uint64_t kHighestLz4Ratio = 256, kHighestZstdRatio = 32768;

std::vector<TableColumn> table_columns(const ArrowSchema& schema) {
  std::vector<TableColumn> columns;
  columns.reserve(schema.columns.size());
  for (const ArrowColumn& column : schema.columns) columns.push_back({column.name, column.kind});
  return columns;
}

// Bytes of one offset; 0 where values have one width and no offsets.
uint64_t offset_bytes(const ArrowLeaf& leaf) {
  switch (leaf.type) {
    case ArrowType::binary:
    case ArrowType::utf8:
      return 4;
    case ArrowType::large_binary:
    case ArrowType::large_utf8:
      return 8;
    default:
      return 0;
  }
}

int64_t offset_at(Bytes offsets, uint64_t width, uint64_t row) {
  const std::byte* at = offsets.data() + row * width;
  return width == 4 ? load_le<int32_t>(at) : load_le<int64_t>(at);
}

bool bit(Bytes bits, uint64_t row) {
  return bits.empty() || (std::to_integer<unsigned>(bits[row / 8]) >> row % 8 & 1) != 0;
}

Pipeline pipeline_of(ArrowCodec codec) { return {{codec == ArrowCodec::zstd ? "zstd" : "lz4_frame"}}; }

// Whether so many stored bytes can decode to so many.
bool plausible(ArrowCodec codec, uint64_t stored, uint64_t raw) {
  const uint64_t ratio = codec == ArrowCodec::zstd ? kHighestZstdRatio : kHighestLz4Ratio;
  return raw / ratio <= stored;
}

Status cut_short(std::string_view what) {
  return Status(Code::corrupt, "a batch has fewer " + std::string(what) + " than rows");
}

}  // namespace

ArrowSamples::ArrowSamples(Storage& storage, const File& file, const ArrowSchema& schema,
                           const IndexOptions& options, uint32_t shard, IndexBuilder& out)
    : storage_(storage),
      file_(file),
      schema_(schema),
      options_(options),
      shard_(shard),
      out_(out),
      columns_(table_columns(schema)),
      roles_(table_roles(columns_, schema.huggingface)),
      names_(columns_, roles_) {
  for (const size_t number : roles_.fields) {
    const ArrowColumn& column = schema.columns[number];
    Field field;
    field.value = use(column.value, false, true);
    if (number == roles_.label_text) label_text_ = field.value;
    if (column.parent) field.parent = use(*column.parent, false, false);
    if (column.path) field.path = use(*column.path, true, false);
    fields_.push_back(field);
  }
  if (roles_.label != TableRoles::kNone) label_ = use(schema.columns[roles_.label].value, true, false);
  if (roles_.key != TableRoles::kNone) key_ = use(schema.columns[roles_.key].value, true, false);
  note_columns(columns_, roles_, options);
  if (!roles_.classes.empty() && options.classes == nullptr) out.set_classes(roles_.classes);
}

size_t ArrowSamples::use(const ArrowLeaf& leaf, bool bring, bool place) {
  used_.push_back({leaf, bring, place});
  return used_.size() - 1;
}

Status ArrowSamples::pass_over(uint64_t offset, uint64_t bytes, const Status& damage) const {
  Status placed = damage.at("@ " + std::to_string(offset));
  if (damage.code() != Code::corrupt) return placed;
  if (!options_.recover) return with_way_out(placed);
  if (options_.damage) options_.damage->push_back({offset, bytes, damage.message()});
  return {};
}

Status ArrowSamples::add(std::span<const ArrowPlace> places) {
  for (size_t first = 0; first < places.size();) {
    batches_.clear();
    data_.clear();
    needs_.clear();
    uint64_t bytes = 0;
    size_t last = first;
    for (; last < places.size() && bytes < kGroupBytes; ++last) {
      const size_t known = needs_.size();
      batches_.push_back({.place = &places[last]});
      data_.resize(data_.size() + used_.size());
      PACKTRAIN_TRY(plan(batches_.size() - 1));
      for (size_t i = known; i < needs_.size(); ++i) bytes += needs_[i].bytes;
    }
    PACKTRAIN_TRY(load(places.subspan(first)));
    for (size_t i = 0; i < batches_.size(); ++i) {
      if (batches_[i].damage.ok()) batches_[i].damage = check(i);
    }
    PACKTRAIN_TRY(settle_names());
    for (size_t i = 0; i < batches_.size(); ++i) {
      const Batch& batch = batches_[i];
      if (batch.damage.ok()) {
        PACKTRAIN_TRY(emit(i));
        continue;
      }
      const uint64_t all = batch.place->body_offset - batch.place->offset + batch.place->body_bytes;
      PACKTRAIN_TRY(pass_over(batch.place->offset, all, batch.damage));
    }
    first = last;
  }
  return {};
}

Status ArrowSamples::finish() const {
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (rows_ == 0 || fields_[i].parent == SIZE_MAX || fields_[i].present > 0) continue;
    if (fields_[i].path == SIZE_MAX) continue;
    return Status(Code::unsupported,
                  "column " + printable(columns_[roles_.fields[i]].name) +
                      " holds the paths of files and not their bytes; Dataset.save_to_disk of Hugging Face "
                      "datasets puts the bytes in, or pack the files: packtrain pack FOLDER OUT");
  }
  return {};
}

// Views and dictionaries may be bytes or texts, only not as they are kept here.
Status ArrowSamples::no_arrow_fields() const {
  for (const ArrowColumn& column : schema_.columns) {
    const bool view =
        column.value.type == ArrowType::binary_view || column.value.type == ArrowType::utf8_view;
    if (!view && !column.dictionary) continue;
    return Status(Code::unsupported,
                  "column " + printable(column.name) + " is kept as " +
                      (view ? "views, which are" : "a dictionary, which is") +
                      " not read, and no other column holds bytes or texts; write the table again with "
                      "column.cast(pyarrow.binary()), or pyarrow.string() for texts, in its place");
  }
  return no_fields(columns_);
}

// What has to be read of a batch. Damage is the batch's own; another failure ends the walk.
Status ArrowSamples::plan(size_t batch) {
  Batch& mine = batches_[batch];
  auto meta = ArrowBatch::parse(mine.place->header, schema_, mine.place->body_bytes);
  mine.damage = meta.status();
  if (meta.ok()) {
    mine.meta = *meta;
    if (mine.meta.rows() > 0 && fields_.empty()) return no_arrow_fields();
    for (size_t leaf = 0; leaf < used_.size() && mine.damage.ok(); ++leaf)
      mine.damage = plan_leaf(batch, leaf);
  }
  return mine.damage.code() == Code::corrupt ? Status() : mine.damage;
}

Status ArrowSamples::plan_leaf(size_t batch, size_t leaf) {
  const ArrowBatch& meta = batches_[batch].meta;
  const Used& used = used_[leaf];
  LeafData& mine = data(batch, leaf);
  const uint64_t rows = meta.rows();
  if (rows == 0) return {};
  const bool plain = meta.codec() == ArrowCodec::none;
  if (meta.null_count(used.leaf) != 0) {
    const ArrowBuffer bits = meta.buffer(used.leaf, 0);
    const uint64_t bytes = rows / 8 + (rows % 8 != 0 ? 1 : 0);
    if (bits.bytes < (plain ? bytes : kPrefixBytes)) return cut_short("bits of validity");
    need(batch, leaf, Part::validity, bits, plain ? bytes : bits.bytes);
  }
  if (!used.bring && !used.place) return {};
  ArrowBuffer values = meta.buffer(used.leaf, 1);
  if (const uint64_t width = offset_bytes(used.leaf); width > 0) {
    // One more than rows.
    if (plain ? rows >= values.bytes / width : values.bytes < kPrefixBytes) return cut_short("offsets");
    need(batch, leaf, Part::offsets, values, plain ? (rows + 1) * width : values.bytes);
    values = meta.buffer(used.leaf, 2);
  } else if (plain ? rows > values.bytes / used.leaf.width : values.bytes < kPrefixBytes) {
    return cut_short("values");
  }
  mine.at = batches_[batch].place->body_offset + values.offset;
  mine.stored = mine.bytes = values.bytes;
  if (!plain && values.bytes > 0 && values.bytes < kPrefixBytes) return cut_short("bytes");
  const bool label_text = leaf == label_text_ && values.bytes / kLabelTextBytes <= rows;
  if (used.bring || label_text) {
    need(batch, leaf, Part::values, values, values.bytes);
  }
  if (used.place && !plain && values.bytes > 0) need(batch, leaf, Part::length, values, kPrefixBytes);
  return {};
}

void ArrowSamples::need(size_t batch, size_t leaf, Part part, ArrowBuffer buffer, uint64_t bytes) {
  if (bytes == 0) return;
  needs_.push_back({batch, leaf, part, batches_[batch].place->body_offset + buffer.offset, bytes, {}});
}

// Brings what is needed: from the bytes that came with the metadata of this batch or of the next, which begin
// at the end of this one, and else by reads.
Status ArrowSamples::load(std::span<const ArrowPlace> places) {
  const auto held = [&](const Need& need, size_t place) {
    if (place >= places.size()) return Bytes();
    const ArrowPlace& near = places[place];
    if (need.offset < near.held_offset) return Bytes();
    const uint64_t skip = need.offset - near.held_offset;
    if (skip > near.held.size() || need.bytes > near.held.size() - skip) return Bytes();
    return near.held.subspan(static_cast<size_t>(skip), static_cast<size_t>(need.bytes));
  };
  uint64_t missing = 0;
  for (Need& need : needs_) {
    need.got = held(need, need.batch);
    if (need.got.empty()) need.got = held(need, need.batch + 1);
    if (need.got.empty()) missing += need.bytes;
  }
  arena_.resize(static_cast<size_t>(missing));
  std::vector<Stretch> stretches;
  std::vector<MutableBytes> rooms;
  MutableBytes room = arena_;
  for (Need& need : needs_) {
    if (!need.got.empty()) continue;
    rooms.push_back(room.first(static_cast<size_t>(need.bytes)));
    stretches.push_back({need.offset, need.bytes});
    need.got = rooms.back();
    room = room.subspan(rooms.back().size());
  }
  if (!stretches.empty()) {
    PACKTRAIN_TRY(read_merged(storage_, file_, stretches, [&](size_t position, Bytes got) {
      std::copy(got.begin(), got.end(), rooms[position].begin());
      return Status();
    }));
  }
  decoded_.clear();
  for (const Need& need : needs_) {
    Status& damage = batches_[need.batch].damage;
    if (!damage.ok()) continue;
    damage = take(need);
    if (!damage.ok() && damage.code() != Code::corrupt) return damage;
  }
  return {};
}

Status ArrowSamples::take(const Need& need) {
  LeafData& mine = data(need.batch, need.leaf);
  const ArrowCodec codec = batches_[need.batch].meta.codec();
  if (need.part == Part::length) {
    const auto raw = load_le<int64_t>(need.got.data());
    mine.at += kPrefixBytes;
    mine.stored -= kPrefixBytes;
    mine.compressed = raw != -1;
    mine.bytes = mine.compressed ? static_cast<uint64_t>(raw) : mine.stored;
    if (raw < -1 || (mine.compressed && !plausible(codec, mine.stored, mine.bytes)))
      return Status(Code::corrupt, "a compressed buffer cannot decode to " + std::to_string(raw) + " bytes");
    return {};
  }
  Bytes bytes = need.got;
  if (codec != ArrowCodec::none) {
    PACKTRAIN_ASSIGN(raw, decoded(need.got, codec));
    bytes = raw;
  }
  (need.part == Part::validity  ? mine.validity
   : need.part == Part::offsets ? mine.offsets
                                : mine.values) = bytes;
  return {};
}

Result<Bytes> ArrowSamples::decoded(Bytes stored, ArrowCodec codec) {
  const auto raw = load_le<int64_t>(stored.data());
  const Bytes rest = stored.subspan(kPrefixBytes);
  if (raw == -1) return rest;
  if (raw < 0 || !plausible(codec, rest.size(), static_cast<uint64_t>(raw)))
    return Status(Code::corrupt, "a compressed buffer cannot decode to " + std::to_string(raw) + " bytes");
  if (static_cast<uint64_t>(raw) > kMostDecoded)
    return Status(Code::unsupported,
                  "has a batch whose offsets alone are more than 1 GiB; write it again with "
                  "fewer rows in a batch");
  decoded_.emplace_back(static_cast<size_t>(raw));
  PACKTRAIN_TRY(decode(pipeline_of(codec), rest, decoded_.back()));
  return Bytes(decoded_.back());
}

// That every row can be emitted.
Status ArrowSamples::check(size_t batch) const {
  const Batch& mine = batches_[batch];
  if (mine.meta.rows() == 0) return {};
  for (size_t leaf = 0; leaf < used_.size(); ++leaf)
    PACKTRAIN_TRY(check_leaf(mine, used_[leaf], data(batch, leaf)));
  if (label_ == SIZE_MAX) return {};
  for (uint64_t row = 0; row < mine.meta.rows(); ++row) {
    const auto found = label(batch, row);
    if (!found.ok()) return found.status();
  }
  return {};
}

Status ArrowSamples::check_leaf(const Batch& batch, const Used& used, const LeafData& data) const {
  const uint64_t rows = batch.meta.rows();
  if (batch.meta.null_count(used.leaf) != 0 && data.validity.size() < rows / 8 + (rows % 8 != 0 ? 1 : 0))
    return cut_short("bits of validity");
  if (!used.bring && !used.place) return {};
  const uint64_t width = offset_bytes(used.leaf);
  const uint64_t room = used.bring ? data.values.size() : data.bytes;
  if (width == 0) return rows <= room / used.leaf.width ? Status() : cut_short("values");
  if (rows >= data.offsets.size() / width) return cut_short("offsets");
  int64_t last = offset_at(data.offsets, width, 0);
  bool sound = last >= 0;
  for (uint64_t row = 1; row <= rows; ++row) {
    const int64_t next = offset_at(data.offsets, width, row);
    sound = sound && next >= last;
    last = next;
  }
  if (sound && static_cast<uint64_t>(last) <= room) return {};
  return Status(Code::corrupt, "a batch has a value that lies outside of it");
}

ArrowSamples::Value ArrowSamples::value(const LeafData& data, const ArrowLeaf& leaf, uint64_t row) const {
  const uint64_t width = offset_bytes(leaf);
  if (width == 0) return {row * leaf.width, leaf.width};
  const auto start = static_cast<uint64_t>(offset_at(data.offsets, width, row));
  return {start, static_cast<uint64_t>(offset_at(data.offsets, width, row + 1)) - start};
}

bool ArrowSamples::present(size_t batch, const Field& field, uint64_t row) const {
  return bit(data(batch, field.value).validity, row) &&
         (field.parent == SIZE_MAX || bit(data(batch, field.parent).validity, row));
}

Result<int64_t> ArrowSamples::label(size_t batch, uint64_t row) const {
  const LeafData& mine = data(batch, label_);
  if (!bit(mine.validity, row)) return kNoLabel;
  const ArrowLeaf& leaf = used_[label_].leaf;
  const std::byte* at = mine.values.data() + row * leaf.width;
  int64_t found = 0;
  switch (leaf.width) {
    case 1:
      found = leaf.is_signed ? int64_t{load_le<int8_t>(at)} : int64_t{load_le<uint8_t>(at)};
      break;
    case 2:
      found = leaf.is_signed ? int64_t{load_le<int16_t>(at)} : int64_t{load_le<uint16_t>(at)};
      break;
    case 4:
      found = leaf.is_signed ? int64_t{load_le<int32_t>(at)} : int64_t{load_le<uint32_t>(at)};
      break;
    default:
      found = load_le<int64_t>(at);
      if (!leaf.is_signed && found < 0) return Status(Code::corrupt, "a label has more than 63 bits");
  }
  return named_label(found, roles_.classes);
}

// Names the columns that go by their content, by the first value of the batches at hand that is not empty.
Status ArrowSamples::settle_names() {
  for (size_t field = 0; field < fields_.size(); ++field) {
    if (!names_.waits(field)) continue;
    bool any = false;
    for (size_t batch = 0; batch < batches_.size() && names_.waits(field); ++batch) {
      const Batch& mine = batches_[batch];
      if (!mine.damage.ok()) continue;
      const LeafData& values = data(batch, fields_[field].value);
      for (uint64_t row = 0; row < mine.meta.rows(); ++row) {
        if (!present(batch, fields_[field], row)) continue;
        any = true;
        const Value found = value(values, used_[fields_[field].value].leaf, row);
        if (found.bytes == 0) continue;
        auto first = first_bytes(mine, values, found);
        if (!first.ok() && first.status().code() != Code::corrupt) return first.status();
        // What cannot be decoded is found out when it is read.
        names_.settle(field, first.ok() ? Bytes(*first) : Bytes());
        break;
      }
    }
    if (any && names_.waits(field)) names_.settle(field, {});
  }
  return {};
}

Result<std::vector<std::byte>> ArrowSamples::first_bytes(const Batch& batch, const LeafData& data,
                                                         Value value) const {
  const auto bytes = static_cast<size_t>(std::min(value.bytes, kNameBytes));
  std::vector<std::byte> first(bytes);
  if (!data.compressed) {
    PACKTRAIN_TRY(storage_.read(file_, data.at + value.start, first));
    return first;
  }
  if (data.bytes > kMostDecoded) return std::vector<std::byte>();
  std::vector<std::byte> stored(static_cast<size_t>(data.stored)), raw(static_cast<size_t>(data.bytes));
  PACKTRAIN_TRY(storage_.read(file_, data.at, stored));
  PACKTRAIN_TRY(decode(pipeline_of(batch.meta.codec()), stored, raw));
  std::copy_n(raw.begin() + static_cast<ptrdiff_t>(value.start), bytes, first.begin());
  return first;
}

Status ArrowSamples::emit(size_t batch) {
  const Batch& mine = batches_[batch];
  const uint64_t rows = mine.meta.rows();
  for (const Field& field : fields_) {
    LeafData& values = data(batch, field.value);
    if (rows == 0 || !values.compressed) continue;
    values.block = out_.add_block({.shard = shard_,
                                   .pipeline = out_.add_pipeline(pipeline_of(mine.meta.codec())),
                                   .offset = values.at,
                                   .stored = values.stored,
                                   .raw = values.bytes});
  }
  for (uint64_t row = 0; row < rows; ++row) {
    key_text_.clear();
    if (key_ != SIZE_MAX && bit(data(batch, key_).validity, row)) {
      const LeafData& keys = data(batch, key_);
      const Value key = value(keys, used_[key_].leaf, row);
      key_text_ =
          as_text(keys.values.subspan(static_cast<size_t>(key.start), static_cast<size_t>(key.bytes)));
    }
    if (key_text_.empty()) key_text_ = number_key(out_.samples());
    out_.begin_sample(key_text_);
    for (size_t field = 0; field < fields_.size(); ++field) {
      if (present(batch, fields_[field], row)) add_field(batch, field, row);
    }
    if (label_ != SIZE_MAX) {
      PACKTRAIN_ASSIGN(found, label(batch, row));
      out_.set_label(found);
    } else if (label_text_ != SIZE_MAX && !data(batch, label_text_).values.empty() &&
               bit(data(batch, label_text_).validity, row)) {
      const LeafData& texts = data(batch, label_text_);
      const Value text = value(texts, used_[label_text_].leaf, row);
      std::optional<int64_t> label;
      if (text.bytes <= kLabelBytes) {
        label = parse_label(
            texts.values.subspan(static_cast<size_t>(text.start), static_cast<size_t>(text.bytes)));
      }
      if (label) out_.set_label(*label);
      if (!label && options_.without_number != nullptr) note_left_out(key_text_, *options_.without_number);
    }
    PACKTRAIN_TRY(out_.end_sample());
  }
  rows_ += rows;
  return {};
}

void ArrowSamples::add_field(size_t batch, size_t field, uint64_t row) {
  Field& mine = fields_[field];
  ++mine.present;
  const LeafData& values = data(batch, mine.value);
  const Value found = value(values, used_[mine.value].leaf, row);
  const std::string& name = names_.name(field);
  path_text_.clear();
  if (mine.path != SIZE_MAX && bit(data(batch, mine.path).validity, row)) {
    const LeafData& paths = data(batch, mine.path);
    const Value path = value(paths, used_[mine.path].leaf, row);
    path_text_ =
        as_text(paths.values.subspan(static_cast<size_t>(path.start), static_cast<size_t>(path.bytes)));
  }
  if (path_text_.empty()) path_text_.assign(key_text_).append(".").append(name);
  if (values.compressed) {
    const Slice slice{values.block, found.start, found.bytes};
    out_.add_field(name, std::span(&slice, 1), path_text_);
  } else {
    out_.add_field(name, shard_, values.at + found.start, found.bytes, CheckKind::none, 0, path_text_);
  }
}

}  // namespace packtrain
