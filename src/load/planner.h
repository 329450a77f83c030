// Planner: what the next steps need and which reads bring it.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "load/step.h"

namespace packtrain {

// Extents and buffers that wait to be used again. An extent has a buffer only from its read to its last use,
// so there are no more buffers than reads ahead. Thread-safe.
class ExtentPool {
 public:
  // Bytes that idle buffers may fill up, beside those in use.
  explicit ExtentPool(uint64_t limit) : limit_(limit) {}
  static uint64_t room_of(const Extent& extent);  // what its buffer takes

  Extent* take();
  void give_buffer(Extent& extent);  // sets read.into, `length` bytes
  void release(Extent* extent);      // one use less; the last one brings it back
  uint64_t held() const;             // bytes in buffers, idle or not

 private:
  const uint64_t limit_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Extent>> all_ GUARDED_BY(mutex_);
  std::vector<Extent*> idle_ GUARDED_BY(mutex_);
  std::vector<Buffer> buffers_ GUARDED_BY(mutex_);  // idle, the smallest first
  uint64_t held_ GUARDED_BY(mutex_) = 0;
};

// Walks through the order, epoch after epoch. One thread at a time.
class Planner {
 public:
  Planner(const LoadSpec& spec, std::shared_ptr<const Order> order, ExtentPool& extents)
      : spec_(spec), order_(std::move(order)), extents_(extents) {}
  ~Planner() { let_go_of_pieces(); }

  void begin(uint64_t epoch, uint64_t consumed);
  // Fills the next step; false if an epoch has no steps at all.
  bool plan(Step& step);
  // Whether reads go straight into batches: then a step's extents can be read only once it is open.
  bool direct() const {
    return !spec_.image && spec_.fields() == 1 && spec_.value(0).in_place() && !merges();
  }
  uint64_t epoch() const { return epoch_; }

 private:
  struct Stretch {
    uint32_t shard = 0;
    uint64_t begin = 0, end = 0;
  };
  bool merges() const { return spec_.order.kind == OrderKind::streams; }
  // The one stretch of a shard that holds all wanted fields of these samples; false if there is none.
  bool stretch_of(const LoadPart& part, uint64_t first, uint64_t last, Stretch& out) const;
  Extent* extent_for(const LoadPart& part, const Stretch& stretch);
  Extent* piece_for(const Pick& pick, Step& step);
  void let_go_of_pieces();

  struct Piece {
    Extent* extent = nullptr;
    uint32_t left = 0;  // samples of it that may still come
  };

  const LoadSpec& spec_;
  const std::shared_ptr<const Order> order_;
  ExtentPool& extents_;
  uint64_t epoch_ = 0, consumed_ = 0, step_ = 0, steps_ = 0;
  std::unordered_map<uint64_t, Piece> pieces_;  // by their first sample
};

}  // namespace packtrain
