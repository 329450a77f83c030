#include <atomic>
#include <cstring>
#include <list>
#include <mutex>

#include "base/hash.h"
#include "base/mutex.h"
#include "base/words.h"
#include "index/npz.h"
#include "index/rows.h"
#include "packtrain/index.h"

namespace packtrain {
namespace {

constexpr uint32_t kReadsInFlight = 32;
constexpr uint64_t kLargestBlock = uint64_t{1}
                                   << 40;  // a raw size above this is a damaged index, not a block

struct StringMapping : Mapping {
  explicit StringMapping(std::string bytes_of) : text(std::move(bytes_of)) {}
  Bytes bytes() const override { return as_bytes(text); }
  std::string text;
};

// The last few decoded blocks, for samples that share one. Thread-safe.
class DecodedBlocks {
 public:
  using Decoded = std::shared_ptr<const std::vector<std::byte>>;
  Decoded find(uint64_t block) {
    Lock lock(mutex_);
    for (auto it = recent_.begin(); it != recent_.end(); ++it) {
      if (it->first != block) continue;
      recent_.splice(recent_.begin(), recent_, it);
      return recent_.front().second;
    }
    return nullptr;
  }
  void keep(uint64_t block, Decoded decoded) {
    Lock lock(mutex_);
    recent_.emplace_front(block, std::move(decoded));
    if (recent_.size() > kKept) recent_.pop_back();
  }

 private:
  static constexpr size_t kKept = 16;
  Mutex mutex_;
  std::list<std::pair<uint64_t, Decoded>> recent_ GUARDED_BY(mutex_);
};

struct Rows {
  std::span<const uint64_t> offset;
  std::span<const uint32_t> length, shard;
  struct Field {
    std::span<const uint32_t> offset, length, check;  // check: empty where there is none
  };
  std::vector<Field> fields;
};

struct General {
  std::span<const uint64_t> sample_cell, cell_slice, slice_block, slice_start, slice_length;
  std::span<const uint32_t> cell_field, block_shard, block_check;
  std::span<const uint16_t> block_pipeline, block_flags;
  std::span<const uint64_t> block_offset, block_stored, block_raw;
};

struct Names {
  std::unique_ptr<Mapping> mapping;
  std::span<const uint64_t> key_end, path_end, hash, hash_sample;
  std::string_view keys, paths;
};

Result<std::string_view> piece(std::span<const uint64_t> ends, std::string_view bytes, uint64_t i) {
  const uint64_t begin = i > 0 ? ends[i - 1] : 0, end = ends[i];
  if (begin > end || end > bytes.size())
    return Status(Code::corrupt, "names.npz is damaged; run packtrain verify");
  return bytes.substr(begin, end - begin);
}

class OpenDataset final : public Dataset {
 public:
  OpenDataset(Storage& storage, std::string folder, Manifest manifest)
      : storage_(storage),
        folder_(std::move(folder)),
        manifest_(std::move(manifest)),
        files_(manifest_.shards.size()) {
    uint64_t first = 0;
    for (const ShardSpec& shard : manifest_.shards) {
      first_block_.push_back(first);
      if (!shard.hash.empty()) first += (shard.bytes + kBlockBytes - 1) / kBlockBytes;
    }
    first_block_.push_back(first);
  }
  ~OpenDataset() override {
    for (auto& file : files_) delete file.load();
  }

  Status bind(std::unique_ptr<Mapping> index, std::unique_ptr<Mapping> names);

  const Manifest& manifest() const override { return manifest_; }
  const std::string& folder() const override { return folder_; }
  Storage& storage() const override { return storage_; }
  int64_t label(uint64_t sample) const override { return labels_[sample]; }
  std::span<const int64_t> labels() const override { return labels_; }
  FieldLocation locate(uint64_t sample, uint32_t field) const override;
  Status slices(uint64_t sample, uint32_t field, std::vector<std::pair<Block, Slice>>& out) const override;
  uint32_t shard_of(uint64_t sample) const override;
  std::span<const uint32_t> block_checks(uint32_t shard) const override {
    return block_checks_.subspan(first_block_[shard], first_block_[shard + 1] - first_block_[shard]);
  }
  std::pair<uint32_t, uint32_t> image_size(uint64_t sample) const override {
    return widths_.empty() ? std::pair<uint32_t, uint32_t>{} : std::pair{widths_[sample], heights_[sample]};
  }
  Result<std::string_view> key(uint64_t sample) const override {
    PACKTRAIN_ASSIGN(names, this->names());
    return piece(names->key_end, names->keys, sample);
  }
  Result<std::string_view> path(uint64_t sample, uint32_t field) const override;
  Result<uint64_t> find(std::string_view key) const override;
  Status read(uint64_t sample, uint32_t field, std::vector<std::byte>& out, bool check) const override;
  Status read(uint64_t sample, SampleBytes& out, bool check) const override;
  Status read_many(std::span<const uint64_t> samples, bool check,
                   const std::function<bool(size_t, const Status&, const SampleBytes&)>& each) const override;
  std::string shard_path(uint32_t shard) const override {
    const std::string& path = manifest_.shards[shard].path;
    return path.starts_with('/') ? path : folder_ + "/" + path;
  }
  Result<const File*> shard_file(uint32_t shard) const override;

 private:
  Status bind_rows(const std::vector<Column>& columns);
  Status bind_general(const std::vector<Column>& columns);
  Result<const Names*> names() const;
  Status at_sample(const Status& status, uint64_t sample, uint32_t field) const;
  uint64_t cell_of(uint64_t sample, uint32_t field) const;  // UINT64_MAX if absent
  Status read_cell(uint64_t cell, MutableBytes out, bool check) const;
  Result<uint64_t> cell_length(uint64_t cell) const;
  Result<Block> block_at(uint64_t block) const;
  Status read_block(uint64_t id, const Block& block, MutableBytes raw, bool check) const;
  Status plan_row(uint64_t sample, SampleBytes& out, Read& read) const;
  Status finish_row(uint64_t sample, SampleBytes& out, bool check) const;

  Storage& storage_;
  const std::string folder_;
  const Manifest manifest_;
  std::unique_ptr<Mapping> index_;
  std::vector<uint64_t> first_block_;  // per shard, into block_checks_
  std::span<const int64_t> labels_;
  std::span<const uint32_t> widths_, heights_, block_checks_;
  Rows rows_;
  General general_;
  bool is_rows_ = true;
  mutable DecodedBlocks decoded_;

  mutable Mutex open_mutex_;  // guards opening; files_ is read without it
  mutable std::vector<std::atomic<const File*>> files_;
  mutable Mutex names_mutex_;
  mutable std::unique_ptr<Mapping> names_mapping_ GUARDED_BY(names_mutex_);
  mutable std::unique_ptr<Names> names_owner_ GUARDED_BY(names_mutex_);
  mutable std::atomic<const Names*> names_ = nullptr;
};

bool equals(CheckKind kind, uint32_t expected, Bytes data) {
  switch (kind) {
    case CheckKind::none:
      return true;
    case CheckKind::crc32:
      return crc32(data) == expected;
    case CheckKind::crc32c:
      return crc32c(data) == expected;
  }
  return true;
}

Status OpenDataset::bind(std::unique_ptr<Mapping> index, std::unique_ptr<Mapping> names) {
  index_ = std::move(index);
  {
    Lock lock(names_mutex_);
    names_mapping_ = std::move(names);
  }
  const Bytes bytes = index_->bytes();
  PACKTRAIN_ASSIGN(hash, npz_directory_hash(bytes));
  if (hash != manifest_.index_directory_hash) {
    return Status(
        Code::corrupt,
        "this index does not belong to the manifest beside it: one of them was replaced or damaged");
  }
  PACKTRAIN_ASSIGN(columns, read_npz(bytes));
  PACKTRAIN_ASSIGN(labels, column_values<int64_t>(columns, "label", samples()));
  labels_ = labels;
  PACKTRAIN_ASSIGN(checks, column_values<uint32_t>(columns, "block_check", first_block_.back()));
  block_checks_ = checks;
  if (auto widths = column_values<uint32_t>(columns, "width", samples()); widths.ok()) {
    PACKTRAIN_ASSIGN(heights, column_values<uint32_t>(columns, "height", samples()));
    widths_ = *widths;
    heights_ = heights;
  }
  is_rows_ = manifest_.form == "rows";
  return is_rows_ ? bind_rows(columns) : bind_general(columns);
}

Status OpenDataset::bind_rows(const std::vector<Column>& columns) {
  PACKTRAIN_ASSIGN(offset, column_values<uint64_t>(columns, "offset", samples()));
  PACKTRAIN_ASSIGN(length, column_values<uint32_t>(columns, "length", samples()));
  PACKTRAIN_ASSIGN(shard, column_values<uint32_t>(columns, "shard", samples()));
  rows_.offset = offset;
  rows_.length = length;
  rows_.shard = shard;
  for (size_t i = 0; i < manifest_.fields.size(); ++i) {
    Rows::Field field;
    PACKTRAIN_ASSIGN(start, column_values<uint32_t>(columns, rows::field_column(i, "offset"), samples()));
    PACKTRAIN_ASSIGN(bytes, column_values<uint32_t>(columns, rows::field_column(i, "length"), samples()));
    field.offset = start;
    field.length = bytes;
    if (manifest_.fields[i].check != CheckKind::none) {
      PACKTRAIN_ASSIGN(check, column_values<uint32_t>(columns, rows::field_column(i, "check"), samples()));
      field.check = check;
    }
    rows_.fields.push_back(field);
  }
  return {};
}

Status OpenDataset::bind_general(const std::vector<Column>& columns) {
  const auto count_of = [&](std::string_view name) {
    for (const Column& column : columns) {
      if (column.name == name) return column.count;
    }
    return uint64_t{0};
  };
  const uint64_t cells = count_of("cell.field"), slice_count = count_of("slice.block"),
                 blocks = count_of("block.shard");
  PACKTRAIN_ASSIGN(sample_cell, column_values<uint64_t>(columns, "sample.cell", samples() + 1));
  PACKTRAIN_ASSIGN(cell_field, column_values<uint32_t>(columns, "cell.field", cells));
  PACKTRAIN_ASSIGN(cell_slice, column_values<uint64_t>(columns, "cell.slice", cells + 1));
  PACKTRAIN_ASSIGN(slice_block, column_values<uint64_t>(columns, "slice.block", slice_count));
  PACKTRAIN_ASSIGN(slice_start, column_values<uint64_t>(columns, "slice.start", slice_count));
  PACKTRAIN_ASSIGN(slice_length, column_values<uint64_t>(columns, "slice.length", slice_count));
  PACKTRAIN_ASSIGN(block_shard, column_values<uint32_t>(columns, "block.shard", blocks));
  PACKTRAIN_ASSIGN(block_pipeline, column_values<uint16_t>(columns, "block.pipeline", blocks));
  PACKTRAIN_ASSIGN(block_flags, column_values<uint16_t>(columns, "block.flags", blocks));
  PACKTRAIN_ASSIGN(block_offset, column_values<uint64_t>(columns, "block.offset", blocks));
  PACKTRAIN_ASSIGN(block_stored, column_values<uint64_t>(columns, "block.stored", blocks));
  PACKTRAIN_ASSIGN(block_raw, column_values<uint64_t>(columns, "block.raw", blocks));
  PACKTRAIN_ASSIGN(block_check, column_values<uint32_t>(columns, "block.check", blocks));
  general_ = {sample_cell, cell_slice,     slice_block, slice_start,  slice_length, cell_field, block_shard,
              block_check, block_pipeline, block_flags, block_offset, block_stored, block_raw};
  return {};
}

Result<const Names*> OpenDataset::names() const {
  if (const Names* names = names_.load(std::memory_order_acquire)) return names;
  Lock lock(names_mutex_);
  if (names_owner_) return static_cast<const Names*>(names_owner_.get());
  auto names = std::make_unique<Names>();
  if (names_mapping_) {
    names->mapping = std::move(names_mapping_);
  } else {
    PACKTRAIN_ASSIGN(mapping, storage_.map(folder_ + "/names.npz"));
    names->mapping = std::move(mapping);
  }
  const auto load = [&]() -> Status {
    PACKTRAIN_ASSIGN(columns, read_npz(names->mapping->bytes()));
    const auto count_of = [&](std::string_view name) {
      for (const Column& column : columns) {
        if (column.name == name) return column.count;
      }
      return uint64_t{0};
    };
    const uint64_t cells = is_rows_ ? samples() * manifest_.fields.size() : general_.cell_field.size();
    PACKTRAIN_ASSIGN(key_end, column_values<uint64_t>(columns, "key.end", samples()));
    PACKTRAIN_ASSIGN(path_end, column_values<uint64_t>(columns, "path.end", cells));
    PACKTRAIN_ASSIGN(hash, column_values<uint64_t>(columns, "lookup.hash", samples()));
    PACKTRAIN_ASSIGN(hash_sample, column_values<uint64_t>(columns, "lookup.sample", samples()));
    PACKTRAIN_ASSIGN(keys, column_values<char>(columns, "key.bytes", count_of("key.bytes")));
    PACKTRAIN_ASSIGN(paths, column_values<char>(columns, "path.bytes", count_of("path.bytes")));
    names->key_end = key_end;
    names->path_end = path_end;
    names->hash = hash;
    names->hash_sample = hash_sample;
    names->keys = {keys.data(), keys.size()};
    names->paths = {paths.data(), paths.size()};
    return {};
  };
  if (Status status = load(); !status.ok()) return status.at(folder_ + "/names.npz");
  names_owner_ = std::move(names);
  names_.store(names_owner_.get(), std::memory_order_release);
  return static_cast<const Names*>(names_owner_.get());
}

Result<std::string_view> OpenDataset::path(uint64_t sample, uint32_t field) const {
  PACKTRAIN_ASSIGN(names, this->names());
  const uint64_t cell = is_rows_ ? sample * manifest_.fields.size() + field : cell_of(sample, field);
  if (cell >= names->path_end.size()) return std::string_view();
  return piece(names->path_end, names->paths, cell);
}

Result<uint64_t> OpenDataset::find(std::string_view key) const {
  PACKTRAIN_ASSIGN(names, this->names());
  const uint64_t hash = xxh64(as_bytes(key));
  auto at = std::lower_bound(names->hash.begin(), names->hash.end(), hash);
  for (; at != names->hash.end() && *at == hash; ++at) {
    const uint64_t sample = names->hash_sample[static_cast<size_t>(at - names->hash.begin())];
    if (sample >= samples()) return Status(Code::corrupt, "names.npz is damaged; run packtrain verify");
    PACKTRAIN_ASSIGN(found, piece(names->key_end, names->keys, sample));
    if (found == key) return sample;
  }
  return Status(Code::not_found,
                "there is no sample with the key '" + printable(key) + "'; packtrain ls lists them");
}

Result<const File*> OpenDataset::shard_file(uint32_t shard) const {
  if (shard >= files_.size())
    return Status(Code::corrupt, "the index names a shard that does not exist; run packtrain verify");
  if (const File* file = files_[shard].load(std::memory_order_acquire)) return file;
  Lock lock(open_mutex_);
  if (const File* file = files_[shard].load(std::memory_order_acquire)) return file;
  PACKTRAIN_ASSIGN(file, storage_.open(shard_path(shard)));
  const ShardSpec& spec = manifest_.shards[shard];
  if (file->size() != spec.bytes) {
    return Status(Code::corrupt, "has " + std::to_string(file->size()) + " bytes instead of " +
                                     std::to_string(spec.bytes) + ": it was cut, changed or replaced")
        .at(shard_path(shard));
  }
  if (spec.mtime_ns != 0 && file->info().mtime_ns != spec.mtime_ns) {
    return Status(Code::corrupt, "was changed after it was indexed; run packtrain index again")
        .at(shard_path(shard));
  }
  const File* opened = file.release();
  files_[shard].store(opened, std::memory_order_release);
  return opened;
}

uint64_t OpenDataset::cell_of(uint64_t sample, uint32_t field) const {
  const uint64_t end = std::min<uint64_t>(general_.sample_cell[sample + 1], general_.cell_field.size());
  for (uint64_t cell = general_.sample_cell[sample]; cell < end; ++cell) {
    if (general_.cell_field[cell] == field) return cell;
  }
  return UINT64_MAX;
}

Result<Block> OpenDataset::block_at(uint64_t id) const {
  const Status damaged(Code::corrupt, "index.npz is damaged; run packtrain verify");
  if (id >= general_.block_shard.size()) return damaged;
  const uint16_t flags = general_.block_flags[id];
  Block block{.shard = general_.block_shard[id],
              .pipeline = general_.block_pipeline[id],
              .check_kind = static_cast<CheckKind>(flags & 3),
              .hole = (flags & rows::kHoleFlag) != 0,
              .offset = general_.block_offset[id],
              .stored = general_.block_stored[id],
              .raw = general_.block_raw[id],
              .check = general_.block_check[id]};
  if (block.pipeline >= manifest_.pipelines.size() || block.raw > kLargestBlock ||
      block.shard >= manifest_.shards.size() || block.offset > manifest_.shards[block.shard].bytes ||
      block.stored > manifest_.shards[block.shard].bytes - block.offset) {
    return damaged;
  }
  return block;
}

Result<uint64_t> OpenDataset::cell_length(uint64_t cell) const {
  uint64_t length = 0;
  const uint64_t end = general_.cell_slice[cell + 1];
  if (end > general_.slice_block.size())
    return Status(Code::corrupt, "index.npz is damaged; run packtrain verify");
  for (uint64_t slice = general_.cell_slice[cell]; slice < end; ++slice) {
    if (general_.slice_length[slice] > kLargestBlock)
      return Status(Code::corrupt, "index.npz is damaged; run packtrain verify");
    length += general_.slice_length[slice];
  }
  return length;
}

FieldLocation OpenDataset::locate(uint64_t sample, uint32_t field) const {
  FieldLocation location;
  if (field >= manifest_.fields.size()) return location;
  if (is_rows_) {
    const Rows::Field& columns = rows_.fields[field];
    if (columns.length[sample] == rows::kAbsent) return location;
    location.present = location.plain = true;
    location.length = columns.length[sample];
    location.shard = rows_.shard[sample];
    location.offset = rows_.offset[sample] + columns.offset[sample];
    location.check_kind = manifest_.fields[field].check;
    location.check = columns.check.empty() ? 0 : columns.check[sample];
    return location;
  }
  const uint64_t cell = cell_of(sample, field);
  if (cell == UINT64_MAX) return location;
  location.present = true;
  location.length = cell_length(cell).ok() ? cell_length(cell).value() : 0;
  const uint64_t first = general_.cell_slice[cell];
  if (general_.cell_slice[cell + 1] != first + 1) return location;
  auto block = block_at(general_.slice_block[first]);
  if (!block.ok() || block->hole || !manifest_.pipelines[block->pipeline].empty()) return location;
  location.plain = true;
  location.shard = block->shard;
  location.offset = block->offset + general_.slice_start[first];
  if (general_.slice_start[first] == 0 && general_.slice_length[first] == block->raw) {
    location.check_kind = block->check_kind;
    location.check = block->check;
  }
  return location;
}

Status OpenDataset::slices(uint64_t sample, uint32_t field, std::vector<std::pair<Block, Slice>>& out) const {
  out.clear();
  if (is_rows_) {
    const FieldLocation location = locate(sample, field);
    if (!location.present) return {};
    out.emplace_back(Block{.shard = location.shard,
                           .check_kind = location.check_kind,
                           .offset = location.offset,
                           .stored = location.length,
                           .raw = location.length,
                           .check = location.check},
                     Slice{.length = location.length});
    return {};
  }
  const uint64_t cell = cell_of(sample, field);
  if (cell == UINT64_MAX) return {};
  PACKTRAIN_TRY(cell_length(cell).status());
  for (uint64_t slice = general_.cell_slice[cell]; slice < general_.cell_slice[cell + 1]; ++slice) {
    PACKTRAIN_ASSIGN(block, block_at(general_.slice_block[slice]));
    out.emplace_back(
        block, Slice{general_.slice_block[slice], general_.slice_start[slice], general_.slice_length[slice]});
  }
  return {};
}

uint32_t OpenDataset::shard_of(uint64_t sample) const {
  if (is_rows_) return rows_.shard[sample];
  const uint64_t cell = general_.sample_cell[sample];
  if (cell >= general_.cell_field.size()) return 0;
  const uint64_t slice = general_.cell_slice[cell];
  if (slice >= general_.slice_block.size() || general_.slice_block[slice] >= general_.block_shard.size())
    return 0;
  return general_.block_shard[general_.slice_block[slice]];
}

Status OpenDataset::at_sample(const Status& status, uint64_t sample, uint32_t field) const {
  auto key = this->key(sample);
  std::string where = "sample " + std::to_string(sample);
  if (key.ok()) where.append(" (").append(printable(*key)).append(")");
  if (field < manifest_.fields.size()) {
    where += ", field " + manifest_.fields[field].name;
    const FieldLocation location = locate(sample, field);
    if (location.plain && location.shard < manifest_.shards.size()) {
      where = manifest_.shards[location.shard].path + " @ " + std::to_string(location.offset) + ": " + where;
    }
  }
  return status.at(where);
}

Status OpenDataset::read_block(uint64_t id, const Block& block, MutableBytes raw, bool check) const {
  if (block.hole) {
    std::memset(raw.data(), 0, raw.size());
    return {};
  }
  PACKTRAIN_ASSIGN(file, shard_file(block.shard));
  const Pipeline& pipeline = manifest_.pipelines[block.pipeline];
  if (pipeline.empty()) {
    if (block.stored != raw.size())
      return Status(Code::corrupt, "index.npz is damaged; run packtrain verify");
    PACKTRAIN_TRY(storage_.read(*file, block.offset, raw));
  } else {
    std::vector<std::byte> stored(block.stored);
    PACKTRAIN_TRY(storage_.read(*file, block.offset, stored));
    PACKTRAIN_TRY(decode(pipeline, stored, raw));
  }
  if (check && !equals(block.check_kind, block.check, raw)) {
    return Status(Code::corrupt,
                  "block " + std::to_string(id) + " does not match its check: the container is damaged");
  }
  return {};
}

Status OpenDataset::read_cell(uint64_t cell, MutableBytes out, bool check) const {
  size_t done = 0;
  for (uint64_t slice = general_.cell_slice[cell]; slice < general_.cell_slice[cell + 1]; ++slice) {
    const uint64_t id = general_.slice_block[slice], start = general_.slice_start[slice],
                   length = general_.slice_length[slice];
    PACKTRAIN_ASSIGN(block, block_at(id));
    if (start > block.raw || length > block.raw - start)
      return Status(Code::corrupt, "index.npz is damaged; run packtrain verify");
    const MutableBytes part = out.subspan(done, length);
    done += length;
    const bool whole = start == 0 && length == block.raw;
    if (whole) {
      PACKTRAIN_TRY(read_block(id, block, part, check));
    } else if (manifest_.pipelines[block.pipeline].empty() && !block.hole &&
               (!check || block.check_kind == CheckKind::none)) {
      PACKTRAIN_ASSIGN(file, shard_file(block.shard));
      PACKTRAIN_TRY(storage_.read(*file, block.offset + start, part));
    } else {
      DecodedBlocks::Decoded decoded = decoded_.find(id);
      if (!decoded) {
        auto fresh = std::make_shared<std::vector<std::byte>>(block.raw);
        PACKTRAIN_TRY(read_block(id, block, *fresh, check));
        decoded_.keep(id, fresh);
        decoded = std::move(fresh);
      }
      std::memcpy(part.data(), decoded->data() + start, length);
    }
  }
  return {};
}

Status OpenDataset::read(uint64_t sample, uint32_t field, std::vector<std::byte>& out, bool check) const {
  if (sample >= samples()) {
    return Status(Code::not_found, "there is no sample " + std::to_string(sample) + "; the dataset has " +
                                       std::to_string(samples()));
  }
  if (field >= manifest_.fields.size()) return Status(Code::not_found, "there is no such field");
  const auto work = [&]() -> Status {
    if (is_rows_) {
      const FieldLocation location = locate(sample, field);
      if (!location.present) return Status(Code::not_found, "the sample has no such field");
      PACKTRAIN_ASSIGN(file, shard_file(location.shard));
      if (location.offset > file->size() || location.length > file->size() - location.offset) {
        return Status(Code::corrupt, "the index points behind the end of the shard; run packtrain verify");
      }
      out.resize(location.length);
      PACKTRAIN_TRY(storage_.read(*file, location.offset, out));
      if (check && !equals(location.check_kind, location.check, out)) {
        return Status(Code::corrupt, "the bytes do not match their check: the shard is damaged");
      }
      return {};
    }
    const uint64_t cell = cell_of(sample, field);
    if (cell == UINT64_MAX) return Status(Code::not_found, "the sample has no such field");
    PACKTRAIN_ASSIGN(length, cell_length(cell));
    out.resize(length);
    return read_cell(cell, out, check);
  };
  Status status = work();
  return status.ok() ? status : at_sample(status, sample, field);
}

// Sets up the one read that brings a sample of hot rows.
Status OpenDataset::plan_row(uint64_t sample, SampleBytes& out, Read& read) const {
  out.fields.clear();
  if (sample >= samples()) {
    return Status(Code::not_found, "there is no sample " + std::to_string(sample) + "; the dataset has " +
                                       std::to_string(samples()));
  }
  PACKTRAIN_ASSIGN(file, shard_file(rows_.shard[sample]));
  const uint64_t offset = rows_.offset[sample], length = rows_.length[sample];
  if (offset > file->size() || length > file->size() - offset) {
    return Status(Code::corrupt, "the index points behind the end of the shard; run packtrain verify");
  }
  if (out.buffer.size() < length) out.buffer.resize(length);
  read = {
      .file = file, .offset = offset, .into = MutableBytes(out.buffer).first(length), .status = {}, .tag = 0};
  return {};
}

// Cuts the bytes that were read into fields.
Status OpenDataset::finish_row(uint64_t sample, SampleBytes& out, bool check) const {
  const uint64_t length = rows_.length[sample];
  for (uint32_t field = 0; field < rows_.fields.size(); ++field) {
    const Rows::Field& columns = rows_.fields[field];
    if (columns.length[sample] == rows::kAbsent) continue;
    const uint64_t start = columns.offset[sample], bytes = columns.length[sample];
    if (start > length || bytes > length - start)
      return Status(Code::corrupt, "index.npz is damaged; run packtrain verify");
    const Bytes data = Bytes(out.buffer).subspan(start, bytes);
    if (check && !columns.check.empty() &&
        !equals(manifest_.fields[field].check, columns.check[sample], data)) {
      return at_sample(Status(Code::corrupt, "the bytes do not match their check: the shard is damaged"),
                       sample, field);
    }
    out.fields.push_back({field, data});
  }
  return {};
}

Status OpenDataset::read(uint64_t sample, SampleBytes& out, bool check) const {
  if (is_rows_) {
    Read read;
    PACKTRAIN_TRY(plan_row(sample, out, read));
    if (Status status = storage_.read(*read.file, read.offset, read.into); !status.ok())
      return at_sample(status, sample, UINT32_MAX);
    return finish_row(sample, out, check);
  }
  out.fields.clear();
  if (sample >= samples()) {
    return Status(Code::not_found, "there is no sample " + std::to_string(sample) + "; the dataset has " +
                                       std::to_string(samples()));
  }
  const uint64_t begin = general_.sample_cell[sample];
  const uint64_t end = std::min<uint64_t>(general_.sample_cell[sample + 1], general_.cell_field.size());
  uint64_t total = 0;
  for (uint64_t cell = begin; cell < end; ++cell) {
    PACKTRAIN_ASSIGN(length, cell_length(cell));
    total += length;
  }
  if (out.buffer.size() < total) out.buffer.resize(total);
  uint64_t at = 0;
  for (uint64_t cell = begin; cell < end; ++cell) {
    const uint32_t field = general_.cell_field[cell];
    const MutableBytes part = MutableBytes(out.buffer).subspan(at, cell_length(cell).value());
    if (Status status = read_cell(cell, part, check); !status.ok()) return at_sample(status, sample, field);
    if (field >= manifest_.fields.size())
      return Status(Code::corrupt, "index.npz is damaged; run packtrain verify");
    out.fields.push_back({field, part});
    at += part.size();
  }
  return {};
}

Status OpenDataset::read_many(
    std::span<const uint64_t> samples, bool check,
    const std::function<bool(size_t, const Status&, const SampleBytes&)>& each) const {
  if (!is_rows_) {
    SampleBytes bytes;
    for (size_t i = 0; i < samples.size(); ++i) {
      const Status status = read(samples[i], bytes, check);
      if (!each(i, status, bytes)) return Status(Code::stopped, "stopped by the caller");
    }
    return {};
  }
  struct Slot {
    SampleBytes bytes;
    Read read;
    bool done = false;
  };
  std::vector<Slot> slots(std::min<size_t>(kReadsInFlight, samples.size()));
  auto reads = storage_.reads(kReadsInFlight);
  std::vector<Read*> finished(slots.size());
  size_t submitted = 0;
  for (size_t next = 0; next < samples.size(); ++next) {
    std::vector<Read*> batch;
    for (; submitted < samples.size() && submitted < next + slots.size(); ++submitted) {
      Slot& slot = slots[submitted % slots.size()];
      slot.done = false;
      slot.read.status = plan_row(samples[submitted], slot.bytes, slot.read);
      slot.read.tag = submitted;
      if (!slot.read.status.ok() || slot.read.into.empty()) {
        slot.done = true;
      } else {
        batch.push_back(&slot.read);
      }
    }
    reads->submit(batch);
    Slot& slot = slots[next % slots.size()];
    while (!slot.done) {
      const size_t count = reads->wait(finished);
      for (size_t i = 0; i < count; ++i) slots[finished[i]->tag % slots.size()].done = true;
    }
    Status status = slot.read.status;
    if (status.ok()) status = finish_row(samples[next], slot.bytes, check);
    if (!each(next, status, slot.bytes)) return Status(Code::stopped, "stopped by the caller");
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<Dataset>> Dataset::open(Storage& storage, std::string_view folder) {
  std::string path(folder);
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  auto text = read_whole(storage, path + "/manifest.json");
  if (!text.ok()) {
    if (text.status().code() == Code::not_found) {
      return Status(Code::not_found, "is not a packtrain dataset: it has no manifest.json").at(path);
    }
    return text.status();
  }
  auto manifest = Manifest::decode(*text);
  if (!manifest.ok()) return manifest.status().at(path + "/manifest.json");
  auto dataset = std::make_shared<OpenDataset>(storage, path, std::move(manifest).value());
  const std::string index_path = path + "/index.npz";
  PACKTRAIN_ASSIGN(index, storage.map(index_path));
  for (const FileSpec& file : dataset->manifest().files) {
    if (file.path == "index.npz" && file.bytes != index->bytes().size()) {
      return Status(Code::corrupt, "has " + std::to_string(index->bytes().size()) + " bytes instead of " +
                                       std::to_string(file.bytes) + ": it was cut or replaced")
          .at(index_path);
    }
  }
  if (Status status = dataset->bind(std::move(index), nullptr); !status.ok()) return status.at(index_path);
  return std::shared_ptr<Dataset>(std::move(dataset));
}

Result<std::shared_ptr<Dataset>> Dataset::from_memory(Storage& storage, std::string_view folder,
                                                      IndexBuilder::Finished finished) {
  auto dataset = std::make_shared<OpenDataset>(storage, std::string(folder), std::move(finished.manifest));
  PACKTRAIN_TRY(dataset->bind(std::make_unique<StringMapping>(std::move(finished.index_npz)),
                              std::make_unique<StringMapping>(std::move(finished.names_npz))));
  return std::shared_ptr<Dataset>(std::move(dataset));
}

}  // namespace packtrain
