// An open dataset: columns over a mapped index, and the shards behind it. open_dataset.cc binds them,
// locate.cc answers where a field lies, read_samples.cc brings its bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "index/decoded_blocks.h"
#include "index/mapped_shard.h"
#include "index/npz.h"
#include "packtrain/index.h"

namespace packtrain {

inline constexpr std::chrono::seconds kLookAtMost{1};  // how often, at a shard without checks

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
  std::vector<Column> columns;
};

class OpenDataset final : public Dataset {
 public:
  OpenDataset(Storage& storage, std::string folder, Manifest manifest)
      : storage_(storage),
        folder_(std::move(folder)),
        manifest_(std::move(manifest)),
        files_(manifest_.shards.size()),
        mapped_(manifest_.shards.size()),
        looked_at_(manifest_.shards.size()) {
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
  Result<std::string_view> key(uint64_t sample) const override;
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
  Status read_plain(const FieldLocation& location, MutableBytes into) const override;
  bool is_at_hand(const FieldLocation& location) const override;
  Status sound(IndexPart part, uint64_t most_bytes) const override;
  // Copies out of the mapping of a shard that was opened; false where it has none or the stretch leaves it.
  bool copy_mapped(uint32_t shard, uint64_t offset, MutableBytes into) const;
  Status unchanged(uint64_t sample, std::chrono::nanoseconds age) const override;
  void salvage() override { salvage_ = true; }

 private:
  Status check_bound(Bytes bytes, std::string_view name, std::string_view directory_hash) const;
  Status bind_rows(const std::vector<Column>& columns);
  Status bind_general(const std::vector<Column>& columns);
  Result<const Names*> names() const;
  Status shard_unchanged(uint32_t shard, std::chrono::nanoseconds age) const;
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
  std::vector<Column> index_columns_;
  bool in_memory_ = false;  // made by this process: nothing can have damaged it on its way
  mutable std::atomic<uint8_t> sound_parts_ = 0;  // a bit for each IndexPart that was found sound
  std::vector<uint64_t> first_block_;             // per shard, into block_checks_
  std::span<const int64_t> labels_;
  std::span<const uint32_t> widths_, heights_, block_checks_;
  Rows rows_;
  General general_;
  bool is_rows_ = true;
  mutable DecodedBlocks<uint64_t> decoded_;

  bool salvage_ = false;
  mutable Mutex open_mutex_;  // guards opening; files_ is read without it
  mutable std::vector<std::atomic<const File*>> files_;
  mutable std::vector<std::unique_ptr<MappedShard>> mapped_;  // each written before its file; null: by reads
  mutable std::vector<std::atomic<int64_t>>
      looked_at_;  // when each shard was found unchanged, on the steady clock
  mutable Mutex names_mutex_;
  mutable std::unique_ptr<Mapping> names_mapping_ GUARDED_BY(names_mutex_);
  mutable std::unique_ptr<Names> names_owner_ GUARDED_BY(names_mutex_);
  mutable std::atomic<const Names*> names_ = nullptr;
};

}  // namespace packtrain
