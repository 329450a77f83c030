// The memory of batches: made once, used again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "io/fork.h"
#include "load/buffer.h"
#include "load/value_columns.h"
#include "packtrain/load.h"

namespace packtrain {

class BatchPool;

// A batch while it is filled and after. Places are filled by many threads, each its own.
class PooledBatch final : public Batch {
 public:
  uint64_t epoch() const override { return epoch_; }
  uint64_t step() const override { return step_; }
  uint64_t consumed() const override { return consumed_; }
  size_t size() const override { return size_; }
  MutableBytes images() const override { return images_.first(size_ * image_bytes_); }
  std::span<int64_t> labels() const override { return labels_.first(size_); }
  std::span<int64_t> indices() const override { return indices_.first(size_); }
  std::span<int64_t> sources() const override { return sources_.first(size_); }
  std::span<uint8_t> padding() const override { return padding_.first(size_); }
  std::span<uint8_t> replaced() const override { return replaced_.first(size_); }
  Bytes value(size_t field, size_t sample) const override { return values_[sample * fields_ + field]; }
  bool has(size_t field, size_t sample) const override {
    return values_[sample * fields_ + field].data() != nullptr;
  }

  const BatchArray* array(size_t field, size_t sample) const override { return columns_.find(field, sample); }

  // What prepare() takes, about.
  static size_t bytes_for(size_t size, size_t image_bytes, size_t fields, size_t value_bytes, bool decodes);
  // Makes room for `size` samples; `value_bytes` is what their fields take together as bytes; `decodes`: some
  // of them become arrays.
  void prepare(uint64_t epoch, uint64_t step, uint64_t consumed, size_t size, size_t image_bytes,
               size_t fields, size_t value_bytes, bool decodes);
  MutableBytes image(size_t place) { return images_.subspan(place * image_bytes_, image_bytes_); }
  MutableBytes value_area() { return value_area_; }
  void set_value(size_t field, size_t place, Bytes bytes) { values_[place * fields_ + field] = bytes; }
  // Room for a decoded value, and for bytes that have no place in the area, as those of a replacement;
  // no_room if memory= is used up. From any thread.
  Result<MutableBytes> room(size_t field, size_t place, const ValueFacts& facts);
  Result<MutableBytes> room(size_t bytes);
  void forget(size_t place);  // its values: they are of a sample that turned out to be bad
  // To be called once, when every place is filled: makes padded columns. Gives the places that do not fit.
  std::vector<MisfitValue> pad(std::span<const ValueSpec> specs);
  // Closes the gaps that `dropped` places leave.
  void drop(const std::vector<bool>& dropped);
  size_t memory() const;

 private:
  friend class BatchPool;
  friend struct packtrain::ReturnBatch;
  uint64_t epoch_ = 0, step_ = 0, consumed_ = 0;
  size_t size_ = 0, image_bytes_ = 0, fields_ = 0;
  Buffer image_memory_, value_memory_, facts_memory_;
  MutableBytes images_, value_area_;
  std::span<int64_t> labels_, indices_, sources_;
  std::span<uint8_t> padding_, replaced_;
  std::vector<Bytes> values_;
  ValueColumns columns_;             // of values that are decoded
  std::shared_ptr<BatchPool> pool_;  // while it is in use
};

// Batches that wait to be used. Thread-safe.
class BatchPool final : public MemoryAccount, public std::enable_shared_from_this<BatchPool> {
 public:
  // Memory that the pool may hold over all its batches, in use or not.
  explicit BatchPool(uint64_t limit) : limit_(limit), born_in_(fork_generation()) {}

  // A batch to fill, or no_room if all memory is in batches that the user keeps. `bytes`: what it takes at
  // once; `later`: what is still to be claimed for it and others, without which a new one is not begun.
  Result<PooledBatch*> take(size_t bytes, size_t later);
  void give_back(PooledBatch* batch);
  Status claim(uint64_t bytes) override;
  void grown(uint64_t before, uint64_t after) override;  // a batch took more memory, or gave some back
  uint64_t held() const;
  // At rest it keeps no batch that is not in use, whether it is given back before or after.
  void rest(bool rests);
  bool is_of_this_process() const { return fork_generation() == born_in_; }

 private:
  struct Idle {
    std::unique_ptr<PooledBatch> batch;
    uint64_t bytes;  // that it holds
  };
  // Whether so many more bytes are within the limit, which idle batches make room for.
  bool has_room(uint64_t bytes) REQUIRES(mutex_);

  const uint64_t limit_;
  const uint64_t born_in_;  // the process, by its fork_generation()
  mutable Mutex mutex_;
  std::vector<Idle> idle_ GUARDED_BY(mutex_);
  uint64_t held_ GUARDED_BY(mutex_) = 0;
  bool rests_ GUARDED_BY(mutex_) = false;
};

}  // namespace packtrain
