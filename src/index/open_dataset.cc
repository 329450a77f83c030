#include "index/open_dataset.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/hash.h"
#include "base/words.h"
#include "index/rows.h"
#include "index/shard_place.h"
#include "io/posix_file.h"
#include "io/posix_mapping.h"

namespace packtrain {
namespace {

constexpr std::string_view kMappedFormat = "lmdb";
constexpr std::string_view kLabelColumn = "label";
constexpr uint64_t kQuickCopy = 32 << 10;  // some microseconds, from wherever in memory

// What helps where a file of a dataset is not what the manifest says.
constexpr std::string_view kRestore =
    "run packtrain verify, and restore the files it names from another copy";

struct StringMapping : Mapping {
  explicit StringMapping(std::string bytes_of) : text(std::move(bytes_of)) {}
  Bytes bytes() const override { return as_bytes(text); }
  std::string text;
};

Status shard_is_missing(const ShardSpec& shard) {
  return lies_inside(shard)
             ? Status(Code::corrupt,
                      "the shard is missing; restore it from another copy or pack again, packtrain verify "
                      "names all that is lost")
             : Status(Code::corrupt,
                      "the container that was indexed is missing; put it back, or run packtrain index again "
                      "where it lies now");
}

// A file that every dataset has.
Result<std::unique_ptr<Mapping>> map_own(Storage& storage, const std::string& path) {
  auto mapping = storage.map(path);
  if (mapping.ok() || mapping.status().code() != Code::not_found) return mapping;
  return Status(Code::corrupt, "is missing; " + std::string(kRestore)).at(path);
}

Result<std::string_view> piece(std::span<const uint64_t> ends, std::string_view bytes, uint64_t i) {
  const uint64_t begin = i > 0 ? ends[i - 1] : 0, end = ends[i];
  if (begin > end || end > bytes.size())
    return Status(Code::corrupt, "names.npz is damaged; run packtrain verify");
  return bytes.substr(begin, end - begin);
}

// The first of the sorted `hashes` that is not below `hash`. They are spread evenly, so it lies near where
// its value says; should they not be, the search still takes no more steps than twice those of a bisection.
size_t place_of_hash(std::span<const uint64_t> hashes, uint64_t hash) {
  const size_t count = hashes.size();
  if (count == 0) return 0;
  const auto guess = static_cast<size_t>(static_cast<unsigned __int128>(hash) * count >> 64);
  size_t begin = 0, end = count;  // hashes[begin, end) or `end` itself is the place
  if (hashes[guess] < hash) {
    begin = guess + 1;
    for (size_t step = 8; begin < count; step *= 2) {
      const size_t next = step < count - begin ? begin + step : count;
      if (next == count || hashes[next] >= hash) {
        end = next;
        break;
      }
      begin = next + 1;
    }
  } else {
    end = guess;
    for (size_t step = 8; end > 0; step *= 2) {
      const size_t next = step < end ? end - step : 0;
      if (hashes[next] < hash) {
        begin = next + 1;
        break;
      }
      end = next;
    }
  }
  const auto first = hashes.begin();
  return static_cast<size_t>(
      std::lower_bound(first + static_cast<ptrdiff_t>(begin), first + static_cast<ptrdiff_t>(end), hash) -
      first);
}

}  // namespace

// That a file is the one the manifest was written with: its size, and its zip directory, which holds the
// check of every column. Costs the same for any number of samples.
Status OpenDataset::check_bound(Bytes bytes, std::string_view name, std::string_view directory_hash) const {
  for (const FileSpec& file : manifest_.files) {
    if (file.path == name && file.bytes != bytes.size())
      return Status(Code::corrupt, "has " + std::to_string(bytes.size()) + " bytes instead of " +
                                       std::to_string(file.bytes) + ": it was cut or replaced; " +
                                       std::string(kRestore));
  }
  PACKTRAIN_ASSIGN(hash, npz_directory_hash(bytes));
  if (hash == directory_hash) return {};
  return Status(Code::corrupt,
                "does not belong to the manifest beside it: one of them was replaced or damaged; " +
                    std::string(kRestore));
}

Status OpenDataset::bind(std::unique_ptr<Mapping> index, std::unique_ptr<Mapping> names) {
  index_ = std::move(index);
  in_memory_ = names != nullptr;
  {
    Lock lock(names_mutex_);
    names_mapping_ = std::move(names);
  }
  const Bytes bytes = index_->bytes();
  PACKTRAIN_TRY(check_bound(bytes, "index.npz", manifest_.index_directory_hash));
  PACKTRAIN_ASSIGN(columns, read_npz(bytes));
  PACKTRAIN_ASSIGN(labels, column_values<int64_t>(columns, kLabelColumn, samples()));
  labels_ = labels;
  PACKTRAIN_ASSIGN(checks, column_values<uint32_t>(columns, "block_check", first_block_.back()));
  block_checks_ = checks;
  if (auto widths = column_values<uint32_t>(columns, "width", samples()); widths.ok()) {
    PACKTRAIN_ASSIGN(heights, column_values<uint32_t>(columns, "height", samples()));
    widths_ = *widths;
    heights_ = heights;
  }
  is_rows_ = manifest_.form == "rows";
  PACKTRAIN_TRY(is_rows_ ? bind_rows(columns) : bind_general(columns));
  index_columns_ = std::move(columns);
  return {};
}

Status OpenDataset::sound(IndexPart part, uint64_t most_bytes) const {
  const auto bit_of = [](IndexPart of) { return static_cast<uint8_t>(1 << static_cast<unsigned>(of)); };
  const uint8_t enough = part == IndexPart::labels ? bit_of(part) | bit_of(IndexPart::index) : bit_of(part);
  if (in_memory_ || (sound_parts_.load(std::memory_order_relaxed) & enough) != 0) return {};
  const Mapping* mapping = index_.get();
  const std::vector<Column>* columns = &index_columns_;
  if (part == IndexPart::names) {
    PACKTRAIN_ASSIGN(names, this->names());
    mapping = names->mapping.get();
    columns = &names->columns;
  }
  const auto belongs = [&](const Column& column) {
    return part != IndexPart::labels || column.name == kLabelColumn;
  };
  uint64_t bytes = 0;  // asked for every sample of a part that is too large: nothing is copied before
  for (const Column& column : *columns) bytes += belongs(column) ? column.member_bytes : 0;
  if (bytes > most_bytes) return {};
  std::vector<Column> compared;
  std::copy_if(columns->begin(), columns->end(), std::back_inserter(compared), belongs);
  const std::vector<std::string> damaged = damaged_columns(mapping->bytes(), compared);
  if (!damaged.empty()) {
    return Status(Code::corrupt, "column '" + damaged.front() +
                                     "' is damaged: its bytes do not have their CRC-32; " +
                                     std::string(kRestore) + ", or make a new index with packtrain index")
        .at(folder_ + (part == IndexPart::names ? "/names.npz" : "/index.npz"));
  }
  sound_parts_.fetch_or(bit_of(part), std::memory_order_relaxed);
  return {};
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
    PACKTRAIN_ASSIGN(mapping, map_own(storage_, folder_ + "/names.npz"));
    names->mapping = std::move(mapping);
  }
  const auto load = [&]() -> Status {
    if (!manifest_.names_directory_hash.empty())
      PACKTRAIN_TRY(check_bound(names->mapping->bytes(), "names.npz", manifest_.names_directory_hash));
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
    names->columns = std::move(columns);
    return {};
  };
  if (Status status = load(); !status.ok()) return status.at(folder_ + "/names.npz");
  names_owner_ = std::move(names);
  names_.store(names_owner_.get(), std::memory_order_release);
  return static_cast<const Names*>(names_owner_.get());
}

Result<std::string_view> OpenDataset::key(uint64_t sample) const {
  PACKTRAIN_ASSIGN(names, this->names());
  return piece(names->key_end, names->keys, sample);
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
  for (size_t at = place_of_hash(names->hash, hash); at < names->hash.size() && names->hash[at] == hash;
       ++at) {
    const uint64_t sample = names->hash_sample[at];
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
  const ShardSpec& spec = manifest_.shards[shard];
  auto found = storage_.open(shard_path(shard));
  if (!found.ok()) {
    // The caller named a dataset that is there: what is gone is a matter of its data, not of the call.
    return found.status().code() == Code::not_found ? shard_is_missing(spec).at(shard_path(shard))
                                                    : found.status();
  }
  std::unique_ptr<File> file = std::move(*found);
  const bool of_use = salvage_ && !spec.hash.empty() && file->size() < spec.bytes;
  if (file->size() != spec.bytes && !of_use) {
    return Status(Code::corrupt,
                  "has " + std::to_string(file->size()) + " bytes instead of " + std::to_string(spec.bytes) +
                      ": it was cut, changed or replaced; " +
                      (lies_inside(spec) ? "restore it from another copy or pack again"
                                         : "run packtrain index again if it is as it should be"))
        .at(shard_path(shard));
  }
  // Where checks are recorded, every read compares them, and a copy with another date is as good.
  if (spec.mtime_ns != 0 && spec.hash.empty() && file->info().mtime_ns != spec.mtime_ns) {
    return Status(Code::corrupt,
                  "was changed after it was indexed, or copied without its date; run packtrain index again "
                  "(with --checksum the index is good for copies too)")
        .at(shard_path(shard));
  }
  // Whoever reads LMDB maps it, so its files are never cut while somebody reads them; of other files a piece
  // that goes away must be an error, and not the end of the process.
  if (const auto* posix = dynamic_cast<const PosixFile*>(file.get()); posix && spec.format == kMappedFormat)
    if (auto mapping = map_if_local(*posix))
      mapped_[shard] = std::make_unique<MappedShard>(std::move(mapping));
  const File* opened = file.release();
  files_[shard].store(opened, std::memory_order_release);
  return opened;
}

bool OpenDataset::copy_mapped(uint32_t shard, uint64_t offset, MutableBytes into) const {
  if (files_[shard].load(std::memory_order_acquire) == nullptr || mapped_[shard] == nullptr) return false;
  return mapped_[shard]->copy(offset, into);
}

bool OpenDataset::is_at_hand(const FieldLocation& location) const {
  if (!location.plain || location.length > kQuickCopy || location.shard >= files_.size() ||
      files_[location.shard].load(std::memory_order_acquire) == nullptr)
    return false;
  const MappedShard* const shard = mapped_[location.shard].get();
  return shard != nullptr && location.offset <= shard->size() &&
         location.length <= shard->size() - location.offset &&
         shard->was_copied(location.offset, location.length);
}

Status OpenDataset::read_plain(const FieldLocation& location, MutableBytes into) const {
  PACKTRAIN_ASSIGN(file, shard_file(location.shard));
  if (location.length != into.size() || location.offset > file->size() ||
      location.length > file->size() - location.offset)
    return Status(Code::corrupt, "the field does not lie in its shard; run packtrain verify");
  if (into.empty()) return {};
  if (!copy_mapped(location.shard, location.offset, into))
    PACKTRAIN_TRY(storage_.read(*file, location.offset, into));
  return shard_unchanged(location.shard, kLookAtMost);
}

Status OpenDataset::shard_unchanged(uint32_t shard, std::chrono::nanoseconds age) const {
  const ShardSpec& spec = manifest_.shards[shard];
  if (spec.mtime_ns == 0 || !spec.hash.empty()) return {};  // as when it is opened
  const File* const file = files_[shard].load(std::memory_order_acquire);
  if (!file) return {};
  int64_t now = 0;
  if (age.count() > 0) {
    now = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
    const int64_t looked = looked_at_[shard].load(std::memory_order_relaxed);
    if (looked != 0 && now - looked < age.count()) return {};
  }
  PACKTRAIN_ASSIGN(info, storage_.look_at(*file));
  if (info.size != file->info().size || info.mtime_ns != file->info().mtime_ns) {
    return Status(Code::corrupt,
                  "was changed while it is read, and has no checks that could tell what is still right; run "
                  "packtrain index again")
        .at(shard_path(shard));
  }
  if (age.count() > 0) looked_at_[shard].store(now, std::memory_order_relaxed);
  return {};
}

Status OpenDataset::unchanged(uint64_t sample, std::chrono::nanoseconds age) const {
  if (is_rows_) {
    if (rows_.shard[sample] >= manifest_.shards.size()) return {};  // reading it says so
    return shard_unchanged(rows_.shard[sample], age);
  }
  uint32_t last = UINT32_MAX;
  const uint64_t end = std::min<uint64_t>(general_.sample_cell[sample + 1], general_.cell_field.size());
  for (uint64_t cell = general_.sample_cell[sample]; cell < end; ++cell) {
    const uint64_t slices_end =
        std::min<uint64_t>(general_.cell_slice[cell + 1], general_.slice_block.size());
    for (uint64_t slice = general_.cell_slice[cell]; slice < slices_end; ++slice) {
      const auto block = block_at(general_.slice_block[slice]);
      if (!block.ok() || block->hole || block->check_kind != CheckKind::none || block->shard == last)
        continue;
      PACKTRAIN_TRY(shard_unchanged(block->shard, age));
      last = block->shard;
    }
  }
  return {};
}

Result<std::shared_ptr<Dataset>> Dataset::open(Storage& storage, std::string_view folder) {
  std::string path(folder);
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  auto text = read_whole(storage, path + "/manifest.json");
  if (!text.ok()) {
    if (text.status().code() == Code::not_found) {
      return Status(Code::not_found,
                    "is not a packtrain dataset: it has no manifest.json; make one of it with "
                    "packtrain pack, or name another folder")
          .at(path);
    }
    return text.status();
  }
  auto manifest = Manifest::decode(*text);
  if (!manifest.ok()) return manifest.status().at(path + "/manifest.json");
  auto dataset = std::make_shared<OpenDataset>(storage, path, std::move(manifest).value());
  const std::string index_path = path + "/index.npz";
  PACKTRAIN_ASSIGN(index, map_own(storage, index_path));
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
