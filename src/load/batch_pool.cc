#include "load/batch_pool.h"

#include <algorithm>
#include <cstring>

#include "base/words.h"

namespace packtrain {
namespace {

// Of a sample: label, index, source, padding, replaced.
constexpr size_t kFactBytes = 3 * sizeof(int64_t) + 2;
constexpr size_t kUsualBatches = 64;  // so many come back without an allocation

}  // namespace

size_t PooledBatch::bytes_for(size_t size, size_t image_bytes, size_t fields, size_t value_bytes,
                              bool decodes) {
  constexpr size_t kRounding = 3 * 64;  // of the three buffers
  return size * (image_bytes + kFactBytes + fields * sizeof(Bytes)) + value_bytes + kRounding +
         ValueColumns::bytes_for(size, decodes ? fields : 0);
}

void PooledBatch::prepare(uint64_t epoch, uint64_t step, uint64_t consumed, size_t size, size_t image_bytes,
                          size_t fields, size_t value_bytes, bool decodes) {
  epoch_ = epoch;
  step_ = step;
  consumed_ = consumed;
  size_ = size;
  image_bytes_ = image_bytes;
  fields_ = fields;
  images_ = image_memory_.take(size * image_bytes);
  value_area_ = value_memory_.take(value_bytes);
  const MutableBytes facts = facts_memory_.take(size * kFactBytes);  // one stretch
  std::memset(facts.data(), 0, facts.size());
  labels_ = {reinterpret_cast<int64_t*>(facts.data()), size};
  indices_ = {labels_.data() + size, size};
  sources_ = {indices_.data() + size, size};
  padding_ = {reinterpret_cast<uint8_t*>(sources_.data() + size), size};
  replaced_ = {padding_.data() + size, size};
  values_.assign(size * fields, Bytes());
  columns_.prepare(size, decodes ? fields : 0);
}

Result<MutableBytes> PooledBatch::room(size_t field, size_t place, const ValueFacts& facts) {
  return columns_.room(field, place, size_, facts, *pool_);
}

Result<MutableBytes> PooledBatch::room(size_t bytes) { return columns_.room(bytes, *pool_); }

void PooledBatch::forget(size_t place) {
  for (size_t field = 0; field < fields_; ++field) set_value(field, place, Bytes());
  columns_.forget(place);
}

std::vector<MisfitValue> PooledBatch::pad(std::span<const ValueSpec> specs) {
  std::vector<MisfitValue> misfits;
  for (size_t field = 0; field < specs.size(); ++field)
    if (specs[field].pad) columns_.pad(field, specs[field], values_, *pool_, misfits);
  return misfits;
}

void PooledBatch::drop(const std::vector<bool>& dropped) {
  size_t kept = 0;
  for (size_t i = 0; i < size_; ++i) {
    if (dropped[i]) continue;
    if (kept != i) {
      if (image_bytes_ != 0) std::memcpy(image(kept).data(), image(i).data(), image_bytes_);
      labels_[kept] = labels_[i];
      indices_[kept] = indices_[i];
      sources_[kept] = sources_[i];
      padding_[kept] = padding_[i];
      replaced_[kept] = replaced_[i];
      for (size_t field = 0; field < fields_; ++field)
        values_[kept * fields_ + field] = columns_.move(field, i, kept, values_[i * fields_ + field]);
    }
    ++kept;
  }
  size_ = kept;
}

size_t PooledBatch::memory() const {
  return image_memory_.capacity() + value_memory_.capacity() + facts_memory_.capacity() +
         values_.capacity() * sizeof(Bytes) + columns_.memory();
}

bool BatchPool::has_room(uint64_t bytes) {
  while (!idle_.empty() && (bytes > limit_ || held_ > limit_ - bytes)) {
    held_ -= idle_.back().bytes;
    idle_.pop_back();
  }
  return bytes <= limit_ && held_ <= limit_ - bytes;
}

Result<PooledBatch*> BatchPool::take(size_t bytes, size_t later) {
  Lock lock(mutex_);
  if (!idle_.empty()) {
    Idle idle = std::move(idle_.back());
    idle_.pop_back();
    const uint64_t enough = bytes + bytes / 4;  // as a buffer that has to grow takes more than it must
    if (idle.bytes >= bytes || has_room(enough - idle.bytes)) {
      idle.batch->pool_ = shared_from_this();
      return idle.batch.release();
    }
    held_ -= idle.bytes;
  }
  if (!has_room(std::max(bytes, later))) {
    return Status(Code::no_room,
                  "the batches that are kept alive take all of the " + bytes_in_words(limit_) +
                      " that memory= leaves for them; let go of some, copy what you keep, or raise "
                      "memory=");
  }
  auto batch = std::make_unique<PooledBatch>();
  batch->pool_ = shared_from_this();
  return batch.release();
}

void BatchPool::give_back(PooledBatch* batch) {
  const uint64_t bytes = batch->memory();
  std::unique_ptr<PooledBatch> owned(batch);  // let go of without the lock
  Lock lock(mutex_);
  if (rests_)
    held_ -= bytes;
  else
    idle_.push_back({std::move(owned), bytes});
}

void BatchPool::rest(bool rests) {
  std::vector<Idle> dropped;
  Lock lock(mutex_);
  rests_ = rests;
  if (!rests) {
    idle_.reserve(kUsualBatches);
    return;
  }
  for (const Idle& idle : idle_) held_ -= idle.bytes;
  dropped.swap(idle_);
}

Status BatchPool::claim(uint64_t bytes) {
  Lock lock(mutex_);
  if (!has_room(bytes)) {
    return Status(Code::no_room, "decoded it takes " + bytes_in_words(bytes) + ", and of the " +
                                     bytes_in_words(limit_) + " that memory= leaves for batches " +
                                     bytes_in_words(held_) +
                                     " are in use; choose a smaller batch or prefetch, or raise memory=");
  }
  held_ += bytes;
  return {};
}

void BatchPool::grown(uint64_t before, uint64_t after) {
  Lock lock(mutex_);
  held_ += after;
  held_ -= before;
}

uint64_t BatchPool::held() const {
  Lock lock(mutex_);
  return held_;
}

void ReturnBatch::operator()(Batch* batch) const {
  auto* pooled = static_cast<PooledBatch*>(batch);
  // A thread of the parent may hold the pool's lock for ever; what a child has of the memory, it shares with
  // it.
  if (!pooled->pool_->is_of_this_process()) return;
  // The pool may live by this batch alone; then both go at the end of this function.
  const std::shared_ptr<BatchPool> pool = std::move(pooled->pool_);
  pool->give_back(pooled);
}

}  // namespace packtrain
