#include <algorithm>
#include <bit>
#include <exception>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/big_vector.h"
#include "base/give_back.h"
#include "base/hash.h"
#include "base/threads.h"
#include "index/npz.h"
#include "index/rows.h"
#include "io/grant.h"
#include "packtrain/index.h"

namespace packtrain {
namespace {

constexpr std::string_view kNoSplit = "all";  // the split of samples that have none

// A field of a sample as the formats report it: a plain stretch, or slices of blocks. There are millions of
// them, so lengths share their word with what is small: a field of 2^48 bytes is refused.
constexpr int kLengthBits = 48;
struct CellRecord {
  uint64_t offset = 0;                // plain: in the shard; sliced: the first slice
  uint64_t length : kLengthBits = 0;  // plain: in bytes; sliced: the number of slices
  uint64_t field : 16 = 0;            // a set with more kinds of fields is refused by whoever scans it
  uint32_t check = 0;
  uint32_t shard : 29 = 0;
  uint32_t kind_number : 2 = 0;  // CheckKind
  uint32_t sliced : 1 = 0;

  CheckKind kind() const { return static_cast<CheckKind>(kind_number); }
};
static_assert(sizeof(CellRecord) == 24);

// Where each of a row of texts ends, from their lengths, which are given back.
BigVector<uint64_t> ends_of(BigVector<uint32_t>& lengths) {
  BigVector<uint64_t> ends;
  ends.reserve(lengths.size());
  uint64_t end = 0;
  for (const uint32_t length : lengths) ends.push_back(end += length);
  give_back(lengths);
  return ends;
}

// Samples by the hash of their keys, those with one hash in order. A hash is as good as random: its first
// bits put nearly every sample where it belongs, and a few at a time are left to sort. A fifth of the
// time of sorting 30,000 at once, a quarter for a million.
struct KeyLookup {
  BigVector<uint64_t> hash, sample;

  KeyLookup(std::string_view keys, std::span<const uint64_t> key_end)
      : hash(key_end.size()), sample(key_end.size()) {
    const uint64_t samples = key_end.size();
    if (samples == 0) return;
    const int bits = std::max(1, static_cast<int>(std::bit_width(samples)) - 2);
    const auto bucket_of = [&](uint64_t value) { return value >> (64 - bits); };
    BigVector<uint64_t> bucket_end((uint64_t{1} << bits) + 1);
    for (uint64_t i = 0; i < samples; ++i) {
      const uint64_t start = i > 0 ? key_end[i - 1] : 0;
      hash[i] = xxh64(as_bytes(keys.substr(start, key_end[i] - start)));
      ++bucket_end[bucket_of(hash[i]) + 1];
    }
    for (size_t bucket = 1; bucket < bucket_end.size(); ++bucket)
      bucket_end[bucket] += bucket_end[bucket - 1];
    BigVector<std::pair<uint64_t, uint64_t>> sorted(samples);
    // Now the begin of each; its end once all are placed.
    for (uint64_t i = 0; i < samples; ++i) sorted[bucket_end[bucket_of(hash[i])]++] = {hash[i], i};
    uint64_t begin = 0;
    for (size_t bucket = 0; bucket + 1 < bucket_end.size(); ++bucket) {
      const auto first = sorted.begin() + static_cast<ptrdiff_t>(begin);
      begin = bucket_end[bucket];
      std::sort(first, sorted.begin() + static_cast<ptrdiff_t>(begin));
    }
    for (uint64_t i = 0; i < samples; ++i) std::tie(hash[i], sample[i]) = sorted[i];
  }
};

// From so many samples on, a second thread makes names.npz while index.npz is made; up to so many, because
// that takes 40 bytes a sample and the names once more at a time when the columns are in memory too.
constexpr uint64_t kSamplesForTwo = 4096, kMostSamplesForTwo = uint64_t{1} << 20;

}  // namespace

struct IndexBuilder::State {
  std::vector<ShardSpec> shards;
  std::vector<std::vector<uint32_t>> block_checks;  // per shard
  std::vector<Pipeline> pipelines{Pipeline{}};
  std::vector<SplitSpec> splits;
  std::vector<std::string> fields;  // in the order of first use
  std::vector<std::string> classes;
  std::map<std::string, std::optional<ArrayValue>, std::less<>> arrays;  // nothing: they differ
  std::vector<BesideSpec> beside;

  BigVector<uint32_t> fields_of;  // per sample how many cells; first_cell is where those of the last begin
  uint64_t first_cell = 0;
  BigVector<CellRecord> cells;
  BigVector<int64_t> labels;
  BigVector<uint32_t> widths, heights;  // empty until the first image size
  BigVector<Slice> slices;
  BigVector<Block> blocks;

  BigVector<uint32_t> key_bytes, path_bytes;  // lengths: half the memory of ends, while the set grows
  BigString keys, paths;
  bool container_begun = false;  // and no sample of it yet
  Status bad;                    // of the sample being built
  uint32_t last_field = 0;       // a guess for the next look-up

  uint32_t field_id(std::string_view name) {
    // Samples mostly have the same fields in the same order, so the next one is the best guess.
    const auto count = static_cast<uint32_t>(fields.size());
    uint32_t id = last_field;
    for (uint32_t i = 0; i < count; ++i) {
      id = id + 1 < count ? id + 1 : 0;
      if (fields[id] == name) return last_field = id;
    }
    fields.emplace_back(name);
    return last_field = count;
  }
  void begin_cell(CellRecord& cell, std::string_view name, std::string_view path) {
    cell.field = static_cast<uint16_t>(field_id(name));
    for (uint64_t i = first_cell; i < cells.size(); ++i) {
      if (cells[i].field == cell.field) {
        bad = Status(Code::corrupt, "the field '" + std::string(name) + "' comes twice in one sample");
      }
    }
    cells.push_back(cell);
    ++fields_of.back();
    paths.append(path);
    path_bytes.push_back(static_cast<uint32_t>(path.size()));
  }
  uint64_t bytes_of(const CellRecord& cell) const {
    if (!cell.sliced) return cell.length;
    uint64_t bytes = 0;
    for (uint64_t i = cell.offset; i < cell.offset + cell.length; ++i) bytes += slices[i].length;
    return bytes;
  }
  bool fits_rows() const;
  void drop_wrong_arrays();
  BigVector<uint64_t> slots_of_rows(size_t field_count) const;
  BigVector<uint64_t> field_order() const;
  std::string make_columns(const Manifest& manifest, std::span<const uint64_t> slots);
  void add_rows(const Manifest& manifest, std::span<const uint64_t> slots, NpzWriter& index);
  void add_cells(std::span<const uint64_t> order, NpzWriter& index);
  std::string make_names(std::span<const uint64_t> slots);
};

IndexBuilder::IndexBuilder() : state_(std::make_unique<State>()) {}
IndexBuilder::~IndexBuilder() = default;
IndexBuilder::IndexBuilder(IndexBuilder&&) noexcept = default;
IndexBuilder& IndexBuilder::operator=(IndexBuilder&&) noexcept = default;

void IndexBuilder::reserve(uint64_t samples, uint64_t fields, uint64_t key_bytes, uint64_t path_bytes) {
  state_->fields_of.reserve(samples);
  state_->labels.reserve(samples);
  state_->key_bytes.reserve(samples);
  state_->cells.reserve(fields);
  state_->path_bytes.reserve(fields);
  state_->keys.reserve(key_bytes);
  state_->paths.reserve(path_bytes);
}

uint32_t IndexBuilder::add_shard(ShardSpec shard) {
  shard.samples = 0;
  state_->shards.push_back(std::move(shard));
  state_->block_checks.emplace_back();
  return static_cast<uint32_t>(state_->shards.size() - 1);
}

uint16_t IndexBuilder::add_pipeline(const Pipeline& pipeline) {
  auto& all = state_->pipelines;
  const auto found = std::find(all.begin(), all.end(), pipeline);
  if (found != all.end()) return static_cast<uint16_t>(found - all.begin());
  all.push_back(pipeline);
  return static_cast<uint16_t>(all.size() - 1);
}

uint64_t IndexBuilder::add_block(const Block& block) {
  state_->blocks.push_back(block);
  return state_->blocks.size() - 1;
}

void IndexBuilder::begin_split(std::string_view name) {
  State& state = *state_;
  state.container_begun = false;
  if (!state.splits.empty() && state.splits.back().name == name) return;
  if (state.splits.empty() && !state.labels.empty()) state.splits.push_back({std::string(kNoSplit), 0, 0});
  state.splits.push_back({std::string(name), state.labels.size(), 0});
}

void IndexBuilder::begin_container() { state_->container_begun = true; }

std::vector<std::string> IndexBuilder::splits() const {
  std::vector<std::string> names;
  for (const SplitSpec& split : state_->splits) names.push_back(split.name);
  return names;
}

void IndexBuilder::begin_sample(std::string_view key) {
  State& state = *state_;
  if (state.container_begun && !state.splits.empty()) begin_split(kNoSplit);
  state.container_begun = false;
  state.bad = {};
  state.first_cell = state.cells.size();
  state.fields_of.push_back(0);
  state.labels.push_back(kNoLabel);
  state.keys.append(key);
  state.key_bytes.push_back(static_cast<uint32_t>(key.size()));
}

void IndexBuilder::add_field(std::string_view name, uint32_t shard, uint64_t offset, uint64_t length,
                             CheckKind kind, uint32_t check, std::string_view path) {
  CellRecord cell;
  cell.offset = offset;
  cell.length = length;
  cell.shard = shard;
  cell.check = check;
  cell.kind_number = static_cast<uint32_t>(kind) & 3;
  state_->begin_cell(cell, name, path);
  if (length >> kLengthBits != 0)
    state_->bad = Status(Code::corrupt, "the field '" + std::string(name) + "' claims to hold " +
                                            std::to_string(length) + " bytes");
}

void IndexBuilder::add_field(std::string_view name, std::span<const Slice> slices, std::string_view path) {
  CellRecord cell;
  cell.offset = state_->slices.size();
  cell.length = slices.size();
  cell.sliced = 1;
  state_->slices.insert(state_->slices.end(), slices.begin(), slices.end());
  state_->begin_cell(cell, name, path);
}

uint64_t IndexBuilder::unlabelled_folders() const {
  const State& state = *state_;
  const auto labelled = [](int64_t label) { return label != kNoLabel; };
  if (std::any_of(state.labels.begin(), state.labels.end(), labelled)) return 0;
  std::set<std::string_view> folders;
  std::string_view last;  // most keys lie in the folder of the one before
  uint64_t at = 0;
  for (const uint32_t bytes : state.key_bytes) {
    const std::string_view key = std::string_view(state.keys).substr(at, bytes);
    const std::string_view folder = key.substr(0, key.rfind('/') + 1);
    if (!folder.empty() && folder != last) folders.insert(last = folder);
    at += bytes;
  }
  return folders.size();
}

void IndexBuilder::set_label(int64_t label) { state_->labels.back() = label; }

void IndexBuilder::set_image_size(uint32_t width, uint32_t height) {
  State& state = *state_;
  state.widths.resize(state.labels.size());
  state.heights.resize(state.labels.size());
  state.widths.back() = width;
  state.heights.back() = height;
}

Status IndexBuilder::end_sample() {
  State& state = *state_;
  if (!state.bad.ok()) {
    const uint64_t start = state.keys.size() - state.key_bytes.back();
    return state.bad.at("sample " + state.keys.substr(start));
  }
  if (state.first_cell < state.cells.size()) {
    const CellRecord& cell = state.cells[state.first_cell];
    const uint32_t shard = !cell.sliced      ? cell.shard
                           : cell.length > 0 ? state.blocks[state.slices[cell.offset].block].shard
                                             : 0;
    if (shard < state.shards.size()) ++state.shards[shard].samples;
  }
  return {};
}

void IndexBuilder::set_classes(std::vector<std::string> classes) { state_->classes = std::move(classes); }

const std::vector<std::string>& IndexBuilder::classes() const { return state_->classes; }

std::span<int64_t> IndexBuilder::labels() { return state_->labels; }

void IndexBuilder::set_array(std::string_view field, const ArrayValue& array) {
  auto [known, fresh] = state_->arrays.try_emplace(std::string(field), array);
  if (!fresh && known->second != array) known->second.reset();
}

void IndexBuilder::add_beside(BesideSpec file) { state_->beside.push_back(std::move(file)); }

void IndexBuilder::set_block_checks(uint32_t shard, std::vector<uint32_t> checks) {
  state_->shards[shard].hash = xxh128_hex(std::as_bytes(std::span(checks)));
  state_->block_checks[shard] = std::move(checks);
}

uint64_t IndexBuilder::samples() const { return state_->labels.size(); }

bool IndexBuilder::has_field(std::string_view name) const {
  for (uint64_t i = state_->first_cell; i < state_->cells.size(); ++i) {
    if (state_->fields[state_->cells[i].field] == name) return true;
  }
  return false;
}

// Rows are for samples that one read brings: one plain stretch, not much longer than its fields together.
bool IndexBuilder::State::fits_rows() const {
  if (fields.size() > rows::kMostFields) return false;
  // Rows hold a slot for every field of every sample; where most are empty, the general form is smaller.
  if (labels.size() * fields.size() > 4 * cells.size() + 1024) return false;
  std::vector<CheckKind> kinds(fields.size());
  std::vector<bool> seen(fields.size());
  uint64_t first = 0;
  for (size_t sample = 0; sample < labels.size(); first += fields_of[sample++]) {
    uint64_t begin = UINT64_MAX, end = 0, together = 0;
    for (uint64_t i = first; i < first + fields_of[sample]; ++i) {
      const CellRecord& cell = cells[i];
      if (cell.sliced || cell.shard != cells[first].shard) return false;
      if (seen[cell.field] && kinds[cell.field] != cell.kind()) return false;
      seen[cell.field] = true;
      kinds[cell.field] = cell.kind();
      begin = std::min(begin, cell.offset);
      end = std::max<uint64_t>(end, cell.offset + cell.length);
      together += cell.length;
    }
    if (begin == UINT64_MAX) continue;
    if (end - begin >= rows::kAbsent) return false;
    if (end - begin > together + together / 4 + rows::kMostSlack) return false;
  }
  return true;
}

void IndexBuilder::State::drop_wrong_arrays() {
  if (arrays.empty()) return;
  std::vector<uint64_t> bytes(fields.size(), UINT64_MAX);  // of one value; UINT64_MAX: not said
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto found = arrays.find(fields[i]);
    if (found != arrays.end() && found->second) bytes[i] = found->second->bytes();
  }
  for (const CellRecord& cell : cells) {
    if (bytes[cell.field] == UINT64_MAX || bytes_of(cell) == bytes[cell.field]) continue;
    arrays.erase(fields[cell.field]);
    bytes[cell.field] = UINT64_MAX;
  }
}

// The cell of each slot of the rows, UINT64_MAX where a sample lacks a field; empty where every sample has
// every field, in order, so that cells and paths lie as they shall lie.
BigVector<uint64_t> IndexBuilder::State::slots_of_rows(size_t field_count) const {
  const uint64_t samples = labels.size();
  bool in_order = cells.size() == samples * field_count;
  uint64_t cell = 0;
  for (uint64_t sample = 0; sample < samples && in_order; ++sample) {
    in_order = fields_of[sample] == field_count;
    for (uint64_t field = 0; field < field_count && in_order; ++field, ++cell)
      in_order = cells[cell].field == field;
  }
  BigVector<uint64_t> slots;
  if (in_order) return slots;
  slots.assign(samples * field_count, UINT64_MAX);
  uint64_t first = 0;
  for (uint64_t sample = 0; sample < samples; first += fields_of[sample++]) {
    for (uint64_t i = first; i < first + fields_of[sample]; ++i)
      slots[sample * field_count + cells[i].field] = i;
  }
  return slots;
}

// All cells, those of each sample by their fields; empty where they lie like that.
BigVector<uint64_t> IndexBuilder::State::field_order() const {
  BigVector<uint64_t> order;
  const auto before = [&](uint64_t a, uint64_t b) { return cells[a].field < cells[b].field; };
  bool in_order = true;
  uint64_t first = 0;
  for (uint64_t sample = 0; sample < labels.size() && in_order; first += fields_of[sample++]) {
    for (uint64_t i = first + 1; i < first + fields_of[sample]; ++i) in_order = in_order && before(i - 1, i);
  }
  if (in_order) return order;
  order.resize(cells.size());
  std::iota(order.begin(), order.end(), uint64_t{0});
  auto begin = order.begin();
  for (const uint32_t count : fields_of) {
    std::sort(begin, begin + count, before);
    begin += count;
  }
  return order;
}

// index.npz. What a column was made of is given back at once: a large set is in memory about once, not twice.
std::string IndexBuilder::State::make_columns(const Manifest& manifest, std::span<const uint64_t> slots) {
  NpzWriter index;
  index.reserve(labels.size() * 40 + cells.size() * 16 + slices.size() * 24 + blocks.size() * 40 + (1 << 20));
  index.add("label", labels);
  if (!widths.empty()) {
    widths.resize(labels.size());
    heights.resize(labels.size());
    index.add("width", widths);
    index.add("height", heights);
  }
  BigVector<uint32_t> all_checks;
  for (const auto& checks : block_checks) all_checks.insert(all_checks.end(), checks.begin(), checks.end());
  index.add("block_check", all_checks);
  if (manifest.form == "rows") {
    add_rows(manifest, slots, index);
  } else {
    add_cells(slots, index);
  }
  return index.finish();
}

void IndexBuilder::State::add_rows(const Manifest& manifest, std::span<const uint64_t> slots,
                                   NpzWriter& index) {
  const uint64_t samples = labels.size();
  give_back(labels);
  BigVector<uint64_t> offset(samples);
  BigVector<uint32_t> length(samples), shard(samples);
  uint64_t first = 0;
  for (uint64_t sample = 0; sample < samples; first += fields_of[sample++]) {
    uint64_t begin = UINT64_MAX, end = 0;
    for (uint64_t i = first; i < first + fields_of[sample]; ++i) {
      const CellRecord& cell = cells[i];
      begin = std::min(begin, cell.offset);
      end = std::max<uint64_t>(end, cell.offset + cell.length);
      shard[sample] = cell.shard;
    }
    if (begin == UINT64_MAX) continue;
    offset[sample] = begin;
    length[sample] = static_cast<uint32_t>(end - begin);
  }
  index.add("offset", offset);
  index.add("length", length);
  index.add("shard", shard);
  const size_t field_count = manifest.fields.size();
  for (size_t field = 0; field < field_count; ++field) {
    BigVector<uint32_t> start(samples), bytes(samples, rows::kAbsent), check(samples);
    for (uint64_t sample = 0; sample < samples; ++sample) {
      const uint64_t slot = sample * field_count + field;
      const uint64_t i = slots.empty() ? slot : slots[slot];
      if (i == UINT64_MAX) continue;
      const CellRecord& cell = cells[i];
      start[sample] = static_cast<uint32_t>(cell.offset - offset[sample]);
      bytes[sample] = static_cast<uint32_t>(cell.length);
      check[sample] = cell.check;
    }
    index.add(rows::field_column(field, "offset"), start);
    index.add(rows::field_column(field, "length"), bytes);
    if (manifest.fields[field].check != CheckKind::none) index.add(rows::field_column(field, "check"), check);
  }
  give_back(cells);
  give_back(fields_of);
}

void IndexBuilder::State::add_cells(std::span<const uint64_t> order, NpzWriter& index) {
  BigVector<uint64_t> sample_cell, cell_slice, slice_block, slice_start, slice_length;
  BigVector<uint32_t> cell_field;
  sample_cell.reserve(labels.size() + 1);
  cell_slice.reserve(cells.size() + 1);
  cell_field.reserve(cells.size());
  const uint64_t slice_count = cells.size() + slices.size();  // and a few more, at most
  slice_block.reserve(slice_count);
  slice_start.reserve(slice_count);
  slice_length.reserve(slice_count);
  give_back(labels);
  for (const uint32_t count : fields_of) {
    sample_cell.push_back(cell_field.size());
    for (uint32_t field = 0; field < count; ++field) {
      const uint64_t at = cell_field.size();
      const CellRecord& cell = cells[order.empty() ? at : order[at]];
      cell_field.push_back(cell.field);
      cell_slice.push_back(slice_block.size());
      if (cell.sliced) {
        for (uint64_t s = cell.offset; s < cell.offset + cell.length; ++s) {
          slice_block.push_back(slices[s].block);
          slice_start.push_back(slices[s].start);
          slice_length.push_back(slices[s].length);
        }
        continue;
      }
      slice_block.push_back(blocks.size());
      slice_start.push_back(0);
      slice_length.push_back(cell.length);
      blocks.push_back({.shard = cell.shard,
                        .check_kind = cell.kind(),
                        .offset = cell.offset,
                        .stored = cell.length,
                        .raw = cell.length,
                        .check = cell.check});
    }
  }
  sample_cell.push_back(cell_field.size());
  cell_slice.push_back(slice_block.size());
  index.add("sample.cell", sample_cell);
  index.add("cell.field", cell_field);
  index.add("cell.slice", cell_slice);
  index.add("slice.block", slice_block);
  index.add("slice.start", slice_start);
  index.add("slice.length", slice_length);

  const size_t count = blocks.size();
  BigVector<uint32_t> shard(count), check(count);
  BigVector<uint16_t> pipeline(count), flags(count);
  BigVector<uint64_t> offset(count), stored(count), raw(count);
  for (size_t i = 0; i < count; ++i) {
    const Block& block = blocks[i];
    shard[i] = block.shard;
    check[i] = block.check;
    pipeline[i] = block.pipeline;
    flags[i] =
        static_cast<uint16_t>(static_cast<unsigned>(block.check_kind) | (block.hole ? rows::kHoleFlag : 0));
    offset[i] = block.offset;
    stored[i] = block.stored;
    raw[i] = block.raw;
  }
  index.add("block.shard", shard);
  index.add("block.pipeline", pipeline);
  index.add("block.flags", flags);
  index.add("block.offset", offset);
  index.add("block.stored", stored);
  index.add("block.raw", raw);
  index.add("block.check", check);
}

// names.npz; `slots`: the cell of each path, UINT64_MAX where there is none, empty where they lie in order.
std::string IndexBuilder::State::make_names(std::span<const uint64_t> slots) {
  BigVector<uint64_t> path_end = ends_of(path_bytes);
  BigString in_order = std::move(paths);
  if (!slots.empty()) {
    const BigVector<uint64_t> cell_end = std::move(path_end);
    const BigString of_cells = std::move(in_order);
    path_end = {};
    in_order = {};
    path_end.reserve(slots.size());
    in_order.reserve(of_cells.size());
    for (const uint64_t cell : slots) {
      if (cell != UINT64_MAX) {
        const uint64_t start = cell > 0 ? cell_end[cell - 1] : 0;
        in_order.append(of_cells, start, cell_end[cell] - start);
      }
      path_end.push_back(in_order.size());
    }
  }
  const BigVector<uint64_t> key_end = ends_of(key_bytes);
  NpzWriter names;
  names.reserve(keys.size() + in_order.size() + path_end.size() * 8 + key_end.size() * 24 + (1 << 20));
  names.add("path.end", path_end);
  give_back(path_end);
  names.add("path.bytes", in_order);
  give_back(in_order);
  names.add("key.end", key_end);
  names.add("key.bytes", keys);
  const KeyLookup lookup(keys, key_end);
  names.add("lookup.hash", lookup.hash);
  names.add("lookup.sample", lookup.sample);
  return names.finish();
}

IndexBuilder::Finished IndexBuilder::finish(bool side_by_side) {
  State& state = *state_;
  const uint64_t samples = state.labels.size();
  Finished finished;
  Manifest& manifest = finished.manifest;
  manifest.samples = samples;
  manifest.classes = std::move(state.classes);
  manifest.pipelines = std::move(state.pipelines);
  if (state.splits.empty()) state.splits.push_back({std::string(kNoSplit), 0, 0});
  for (size_t i = 0; i < state.splits.size(); ++i) {
    const uint64_t end = i + 1 < state.splits.size() ? state.splits[i + 1].first : samples;
    state.splits[i].count = end - state.splits[i].first;
  }
  manifest.splits = std::move(state.splits);

  // Fields by name, so that the index does not depend on which sample came first.
  state.drop_wrong_arrays();
  std::vector<uint32_t> by_name(state.fields.size()), position(state.fields.size());
  std::iota(by_name.begin(), by_name.end(), 0);
  std::sort(by_name.begin(), by_name.end(),
            [&](uint32_t a, uint32_t b) { return state.fields[a] < state.fields[b]; });
  for (uint32_t i = 0; i < by_name.size(); ++i) {
    position[by_name[i]] = i;
    manifest.fields.push_back({state.fields[by_name[i]], CheckKind::none});
    const auto array = state.arrays.find(manifest.fields.back().name);
    if (array != state.arrays.end()) manifest.fields.back().array = array->second;
  }
  const bool rows_fit = state.fits_rows();
  for (CellRecord& cell : state.cells) {
    cell.field = static_cast<uint16_t>(position[cell.field]);
    if (rows_fit) manifest.fields[cell.field].check = cell.kind();
  }
  manifest.form = rows_fit ? "rows" : "general";
  const BigVector<uint64_t> slots =
      rows_fit ? state.slots_of_rows(manifest.fields.size()) : state.field_order();
  // Columns and names share nothing that they change, so that two threads can make them.
  std::string names_npz;
  bool named = false;
  std::exception_ptr trouble;
  Threads naming;
  if (side_by_side && samples >= kSamplesForTwo && samples <= kMostSamplesForTwo && affinity_cores() > 1) {
    named = naming
                .start("make names",
                       [&] {
                         try {
                           names_npz = state.make_names(slots);
                         } catch (...) {
                           trouble =
                               std::current_exception();  // its memory ran out, which the caller is told
                         }
                       })
                .ok();
  }
  finished.index_npz = state.make_columns(manifest, slots);
  naming.join();
  if (trouble) std::rethrow_exception(trouble);
  finished.names_npz = named ? std::move(names_npz) : state.make_names(slots);
  manifest.shards = std::move(state.shards);
  manifest.beside = std::move(state.beside);

  manifest.index_directory_hash = npz_directory_hash(as_bytes(finished.index_npz)).value();
  manifest.names_directory_hash = npz_directory_hash(as_bytes(finished.names_npz)).value();
  state_ = std::make_unique<State>();
  return finished;
}

}  // namespace packtrain
