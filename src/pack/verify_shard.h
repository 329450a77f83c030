// One shard's bytes against everything that is known of them: the check of every field, of every 4 MiB block,
// and the shard's hash, in one pass.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "index/shard_place.h"
#include "pack/findings.h"
#include "pack/progress_meter.h"
#include "pack/sequential_reader.h"
#include "packtrain/format.h"
#include "packtrain/index.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

using RowRange = std::pair<uint64_t, uint64_t>;  // first, end

// The samples that have bytes in each shard, as few ranges: one a shard where packtrain wrote it.
std::vector<std::vector<RowRange>> samples_by_shard(const Dataset& dataset);

// open() first; then check_blocks() for ranges that cover the shard, from any threads; then finish().
// Costs 32 bytes of memory a field of the shard between open() and the end.
class ShardCheck {
 public:
  // `dataset` may be null where the index is damaged: then only the shard's hash can be compared.
  ShardCheck(Storage& storage, const ShardSpec& spec, std::string path, const Dataset* dataset,
             uint32_t shard, std::vector<RowRange> samples, Findings& findings, ProgressMeter& meter)
      : storage_(storage),
        spec_(spec),
        path_(std::move(path)),
        dataset_(dataset),
        shard_(shard),
        samples_(std::move(samples)),
        findings_(findings),
        meter_(meter),
        foreign_(!lies_inside(spec)) {}

  // False: there is nothing that could be read, and a finding says why.
  Result<bool> open();
  // Whether the bytes have any check at all; without one the pass is left out.
  bool has_checks() const { return has_checks_; }
  bool lacks_checks() const { return lacks_checks_; }  // some of its bytes have none
  // `reader` is the calling thread's, of the same storage.
  Status check_blocks(uint64_t first_block, uint64_t end_block, SequentialReader& reader);
  // True if every byte is proved or has no check; call once, when all blocks are checked.
  Result<bool> finish();
  // Whether all that lies between the fields is, byte for byte, what the format writes for these rows: then
  // the container holds these members under these names, and no others. Without it nothing is said either
  // way.
  bool structure_proved() const {
    return has_checks_ && layout_ != nullptr && as_laid_out_.load(std::memory_order_relaxed);
  }

  uint64_t blocks() const { return (readable_ + kBlockBytes - 1) / kBlockBytes; }
  const std::string& name() const { return spec_.path; }
  const std::string& path() const { return path_; }
  const std::vector<RowRange>& samples() const { return samples_; }

 private:
  struct Extent {
    uint64_t offset, length, sample;
    uint32_t field;
  };
  // What the format writes between two fields; kept from one to the next, so that nothing is allocated.
  struct ExpectedGap {
    std::vector<std::byte> bytes;
    uint64_t padding = 0;  // how many of them belong to the field before
    std::string name;      // of the member behind
  };
  struct OpenField;
  class GapWatch;

  void collect_extents();
  Status find_own_checks();
  // Whether a check of the container's own covers these bytes, which have none that is known closer.
  bool has_wider_check(uint64_t offset, uint64_t bytes);
  Status compare_wider_checks();
  void find_in_stretch(const CheckedStretch& stretch);
  void find_in_field(const Extent& extent, std::string what);
  void end_field(const OpenField& open);
  // Names the damage in a block whose check differs; `explained`: a damaged field in it was named.
  Status place_block_damage(uint64_t block, bool explained);
  // Compares bytes [from, to), as far as they lie between two neighbouring fields, with what the format would
  // write there; true if it found and named a difference.
  Result<bool> compare_gap(uint64_t from, uint64_t to, const Extent* before, const Extent* after);
  // Where the bytes between two neighbouring fields begin and end; null: the container's own begin or end.
  std::pair<uint64_t, uint64_t> gap(const Extent* before, const Extent* after) const;
  // False if the format would write another number of bytes there, or the key is not to be had.
  bool expect_gap(const Extent* before, const Extent* after, ExpectedGap& expected) const;
  std::string key_of(uint64_t sample) const;
  const std::string& field_name(uint32_t field) const { return dataset_->manifest().fields[field].name; }

  Storage& storage_;
  const ShardSpec& spec_;
  const std::string path_;
  const Dataset* const dataset_;
  const uint32_t shard_;
  const std::vector<RowRange> samples_;
  Findings& findings_;
  ProgressMeter& meter_;

  std::unique_ptr<File> file_;
  uint64_t readable_ = 0;           // bytes that are both promised and there
  const Layout* layout_ = nullptr;  // null: what lies between fields cannot be foretold
  // Another tool wrote it: what lies between fields may follow the layout, and is no damage if it does not.
  const bool foreign_;
  std::atomic<bool> as_laid_out_{true};
  bool has_checks_ = false, lacks_checks_ = false, whole_ = true;
  std::vector<CheckedStretch> wider_;   // the container's own checks, by offset
  std::vector<bool> wider_wanted_;      // of each, whether values without a check lie in it
  std::vector<Extent> extents_;         // by offset, none overlapping another
  std::vector<Extent> overlaps_;        // those that overlap one of the former; read on their own
  std::vector<uint32_t> block_checks_;  // as found; each element is written by one thread

  mutable Mutex mutex_;
  std::vector<bool> explained_ GUARDED_BY(mutex_);  // blocks in which a damaged field was named
  bool field_damaged_ GUARDED_BY(mutex_) = false;
};

}  // namespace packtrain
