// Planner: what the next steps need and which reads bring it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "load/piece_table.h"
#include "load/read_memory.h"
#include "load/shard_views.h"
#include "load/step.h"

namespace packtrain {

// Extents that wait to be used again, and the memory that they are read into. An extent has memory only from
// its read to its last use. Thread-safe.
class ExtentPool {
 public:
  explicit ExtentPool(uint64_t most_bytes) : memory_(most_bytes) {}
  Status begin();  // once, before the first is taken

  Extent* take();
  // Sets read.into, `length` bytes. False if others have to be used first, to make room.
  bool give_room(Extent& extent);
  void release(Extent* extent);  // one use less; the last one brings it back
  uint64_t most_bytes() const { return memory_.size(); }
  uint64_t held() const;  // bytes that reads have taken so far, and keep

 private:
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Extent>> all_ GUARDED_BY(mutex_);
  std::vector<Extent*> idle_ GUARDED_BY(mutex_);
  ReadMemory memory_;                      // its size is constant; guarded by mutex_ otherwise
  uint64_t large_ GUARDED_BY(mutex_) = 0;  // bytes of reads that are too large for it
};

// Walks through the order, epoch after epoch. One thread at a time.
class Planner {
 public:
  Planner(const LoadSpec& spec, std::shared_ptr<const Order> order, ExtentPool& extents, ShardViews& views)
      : spec_(spec), order_(std::move(order)), extents_(extents), views_(views) {}
  ~Planner() { let_go_of_pieces(); }

  void begin(uint64_t epoch, uint64_t consumed, std::optional<uint64_t> then);
  // Fills the next step; false if an epoch has no steps at all.
  bool plan(Step& step);
  // Whether reads go straight into batches: then a step's extents can be read only once it is open.
  bool direct() const {
    return !spec_.image && spec_.fields() == 1 && spec_.value(0).in_place() && !merges();
  }

 private:
  struct Stretch {
    uint32_t shard = 0;
    uint64_t begin = 0, end = 0;
    bool is_checked = true;  // each of its fields, when it is used
  };
  bool merges() const { return spec_.order.kind == OrderKind::streams; }
  // The one stretch of a shard that holds all wanted fields of these samples; false if there is none.
  bool stretch_of(const LoadPart& part, uint64_t first, uint64_t last, Stretch& out) const;
  Extent* extent_for(const LoadPart& part, const Stretch& stretch);
  Extent* piece_for(const Pick& pick, Step& step);
  Extent* read_whole(const LoadPart& part, const Stretch& stretch, Step& step);
  // The same bytes in several reads: those of `samples`, which are of one piece and in order, and what lies
  // between them. Null where that is not worth it.
  Extent* read_in_parts(const LoadPart& part, const Stretch& stretch, std::span<const uint64_t> samples,
                        Step& step);
  std::span<const uint64_t> first_samples_of(const Pick& pick, const Step& step);
  Extent* part_with(Extent* piece, const LoadPart& part, uint64_t sample) const;
  void release_piece(Extent* piece);
  // Those of which no sample comes at `position` or behind it.
  void let_go_of_pieces(uint64_t position = UINT64_MAX);

  const LoadSpec& spec_;
  const std::shared_ptr<const Order> order_;
  ExtentPool& extents_;
  ShardViews& views_;
  uint64_t epoch_ = 0, consumed_ = 0, step_ = 0, steps_ = 0;
  std::optional<uint64_t> then_;  // the epoch after each; none: the next one
  PieceTable pieces_;
  bool is_first_ = true;  // the step that is planned is the first one of the run
  std::vector<std::pair<uint64_t, uint64_t>> first_samples_;  // of that step: their pieces, and they
  std::vector<uint64_t> samples_of_piece_;
  std::vector<Stretch> stretches_;
};

}  // namespace packtrain
