// The three ways to write shards: by position on many threads, scattered from a stream, or one after the
// other.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "pack/archive_stream.h"
#include "pack/fetch.h"
#include "pack/plan.h"
#include "pack/progress_meter.h"
#include "pack/shard_rows.h"
#include "pack/written_fields.h"
#include "packtrain/format.h"
#include "packtrain/pack.h"

namespace packtrain {

// What all writers of one pack share. Thread-safe where it changes.
struct WriteContext {
  Storage& storage;
  const Plan& plan;
  const Format& format;
  Fetcher& fetcher;
  ProgressMeter& meter;
  std::string folder;         // OUT.part
  std::string token;          // of temporary names: unique to this process
  WrittenFields fields = {};  // for containers that are not planned
  bool durable = true;
  bool stays_in_memory = true;  // what is written front to back
  uint64_t skip_bad = 0;        // samples that may be left out, in all
  uint32_t threads = 1;
  uint64_t unit_bytes = 0;    // about how much a thread takes at a time
  uint32_t unit_samples = 0;  // and how many samples at most

  Mutex mutex;
  std::vector<BadSample> bad GUARDED_BY(mutex);  // that stand in the way of publishing, by file
  uint64_t bad_samples GUARDED_BY(mutex) = 0;    // how many samples those are
  uint64_t left_out GUARDED_BY(mutex) = 0;       // samples that were given up within the budget

  // Whether `count` more samples may be left out; takes them from the budget if so.
  bool give_up(uint64_t count) {
    Lock lock(mutex);
    if (left_out + count > skip_bad) return false;
    left_out += count;
    return true;
  }
  // A shard that stays unwritten because of `samples` samples, `given_up` of which had been within the
  // budget.
  void report_bad(const std::vector<BadSample>& reasons, uint64_t samples, uint64_t given_up) {
    Lock lock(mutex);
    bad.insert(bad.end(), reasons.begin(), reasons.end());
    bad_samples += samples;
    left_out -= given_up;
  }
  std::string shard_path(const ShardPlan& shard) const { return folder + "/" + shard.name; }
};

// Each writes the shards numbered in `shards` and returns Ok when it has tried them all: shards with bad
// samples are then missing and context.bad says why. Other failures (no room, storage) end it at once.
Status write_planned(WriteContext& context, const std::vector<uint32_t>& shards);
Status write_scattered(WriteContext& context, const std::vector<uint32_t>& shards);
Status write_serial(WriteContext& context, const std::vector<uint32_t>& shards);

// A compressed archive from its beginning; Code::corrupt if it is no longer the file that was listed. `part`,
// OUT.part, is what has to go then, if there is a plan in it already.
Result<std::unique_ptr<ArchiveStream>> open_planned_stream(Storage& storage, const PieceFile& file,
                                                           const std::string& part = {});
Status changed_stream(const PieceFile& file, const std::string& part);
// Reads on to its end, where the check of all its bytes is.
Status read_to_end(ArchiveStream& stream);
// A failure that makes one sample bad, as opposed to one that makes going on pointless.
bool is_bad_sample(const Status& status);
BadSample bad_sample(const WriteContext& context, uint64_t sample, const Cell& cell, const Status& status);
// The record first, then the shard: a visible shard always has its record.
Status publish_shard(WriteContext& context, const ShardPlan& shard, const ShardRows& rows, Writer& writer);
Status write_rows(WriteContext& context, const ShardPlan& shard, const ShardRows& rows);
WriteOptions shard_write_options(const WriteContext& context);
// The checks of a shard's blocks, read back from where it was written.
Result<std::vector<uint32_t>> read_block_checks(Storage& storage, std::string_view path);

}  // namespace packtrain
