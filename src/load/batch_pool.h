// The memory of batches: made once, used again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "packtrain/load.h"

namespace packtrain {

struct FreeAligned {
  std::align_val_t alignment{1};
  void operator()(std::byte* data) const { ::operator delete(data, alignment); }
};

// Bytes on a 64-byte boundary that grow without being cleared; large ones in huge pages where the system has
// them, as the first touch of ten thousand small pages costs as much as decoding ten images. One thread at a
// time.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::move(other.data_)), capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }
  MutableBytes take(size_t bytes);  // what was in it is lost if it has to grow
  size_t capacity() const { return capacity_; }

 private:
  std::unique_ptr<std::byte, FreeAligned> data_;
  size_t capacity_ = 0;
};

class BatchPool;

// A batch while it is filled and after. Places are filled by many threads, each its own.
class PooledBatch final : public Batch {
 public:
  uint64_t epoch() const override { return epoch_; }
  uint64_t step() const override { return step_; }
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

  // Makes room for `size` samples; `value_bytes` is what their fields take together.
  void prepare(uint64_t epoch, uint64_t step, size_t size, size_t image_bytes, size_t fields,
               size_t value_bytes);
  MutableBytes image(size_t place) { return images_.subspan(place * image_bytes_, image_bytes_); }
  MutableBytes value_area() { return value_area_; }
  void set_value(size_t field, size_t place, Bytes bytes) { values_[place * fields_ + field] = bytes; }
  // For a value that has no place in the area: a replacement's. Its memory lives as long as this filling.
  MutableBytes extra(size_t bytes);
  // Closes the gaps that `dropped` places leave.
  void drop(const std::vector<bool>& dropped);
  size_t memory() const;

 private:
  friend class BatchPool;
  friend struct packtrain::ReturnBatch;
  uint64_t epoch_ = 0, step_ = 0;
  size_t size_ = 0, image_bytes_ = 0, fields_ = 0;
  Buffer image_memory_, value_memory_, facts_memory_;
  MutableBytes images_, value_area_;
  std::span<int64_t> labels_, indices_, sources_;
  std::span<uint8_t> padding_, replaced_;
  std::vector<Bytes> values_;
  Mutex extra_mutex_;
  std::vector<std::unique_ptr<std::byte[]>> extra_ GUARDED_BY(extra_mutex_);
  std::shared_ptr<BatchPool> pool_;  // while it is in use
};

// Batches that wait to be used. Thread-safe.
class BatchPool : public std::enable_shared_from_this<BatchPool> {
 public:
  // Memory that the pool may hold over all its batches, in use or not.
  explicit BatchPool(uint64_t limit) : limit_(limit) {}

  // A batch to fill, or no_room if all memory is in batches that the user keeps.
  Result<PooledBatch*> take(size_t bytes_expected);
  void give_back(PooledBatch* batch);
  void grown(size_t before, size_t after);  // a batch took more memory, or gave some back
  uint64_t held() const;

 private:
  const uint64_t limit_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<PooledBatch>> idle_ GUARDED_BY(mutex_);
  uint64_t held_ GUARDED_BY(mutex_) = 0;
};

}  // namespace packtrain
