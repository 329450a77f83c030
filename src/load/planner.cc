#include "load/planner.h"

#include <algorithm>

namespace packtrain {
namespace {

// Bytes between the wanted fields of a sample that a read may bring for nothing.
constexpr uint64_t kMostSlack = 32 << 10;
constexpr uint64_t kLargestPiece = 16;  // times what a piece should have: samples differ in size

}  // namespace

Status ExtentPool::begin() {
  Lock lock(mutex_);
  return memory_.map();
}

Extent* ExtentPool::take() {
  Lock lock(mutex_);
  if (idle_.empty()) {
    all_.push_back(std::make_unique<Extent>());
    idle_.reserve(all_.capacity());  // so that release() never allocates
    memory_.expect(all_.capacity());
    return all_.back().get();
  }
  Extent* extent = idle_.back();
  idle_.pop_back();
  return extent;
}

bool ExtentPool::give_room(Extent& extent) {
  Lock lock(mutex_);
  if (extent.length > memory_.size()) {
    // Alone, since it breaks the limit: a sample has the size that it has.
    if (memory_.in_use() != 0 || large_ != 0) return false;
    extent.read.into = extent.buffer.take(extent.length);
    large_ = extent.buffer.capacity();
    return true;
  }
  if (large_ != 0) return false;
  extent.read.into = extent.length == 0 ? MutableBytes() : memory_.take(extent.length);
  return extent.read.into.size() == extent.length;
}

void ExtentPool::release(Extent* extent) {
  if (extent->uses.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  Lock lock(mutex_);
  if (extent->buffer.capacity() != 0) {
    large_ = 0;
    extent->buffer = Buffer();
  } else if (!extent->direct && !extent->read.into.empty()) {
    memory_.give_back(extent->read.into);
  }
  extent->read.into = {};
  idle_.push_back(extent);
}

uint64_t ExtentPool::held() const {
  Lock lock(mutex_);
  return memory_.touched() + large_;
}

void Planner::begin(uint64_t epoch, uint64_t consumed, std::optional<uint64_t> then) {
  let_go_of_pieces();
  epoch_ = epoch;
  then_ = then;
  consumed_ = consumed;
  step_ = 0;
  steps_ = order_->steps(consumed, spec_.rank);
}

void Planner::let_go_of_pieces(uint64_t position) {
  while (Extent* const extent = pieces_.take_ended(position)) extents_.release(extent);
}

bool Planner::stretch_of(const LoadPart& part, uint64_t first, uint64_t last, Stretch& out) const {
  out = {};
  uint64_t together = 0;
  const auto add = [&](uint64_t sample, uint32_t field) {
    const FieldLocation location = part.dataset->locate(sample, field);
    if (!location.present) return true;
    if (!location.plain || (out.end != 0 && location.shard != out.shard)) return false;
    if (out.end == 0) {
      out = {location.shard, location.offset, location.offset + location.length};
    } else {
      out.begin = std::min(out.begin, location.offset);
      out.end = std::max(out.end, location.offset + location.length);
    }
    together += location.length;
    return true;
  };
  const auto add_sample = [&](uint64_t sample) {
    if (spec_.image && !add(sample, part.image_field_of(sample))) return false;
    return std::all_of(part.fields.begin(), part.fields.end(),
                       [&](uint32_t field) { return add(sample, field); });
  };
  if (!add_sample(first) || (last != first && !add_sample(last)) || out.end == 0) return false;
  if (first == last && out.end - out.begin > together + together / 4 + kMostSlack) return false;
  const auto& shards = part.dataset->manifest().shards;
  return out.shard < shards.size() && out.end <= shards[out.shard].bytes;
}

Extent* Planner::extent_for(const LoadPart& part, const Stretch& stretch) {
  const auto file = part.dataset->shard_file(stretch.shard);
  if (!file.ok()) return nullptr;  // reading the sample by itself will say what is wrong
  Extent* extent = extents_.take();
  extent->read = {};
  extent->read.file = *file;
  extent->read.offset = stretch.begin;
  extent->waiting = nullptr;
  extent->arrived = false;
  extent->direct = direct();
  extent->uses = 1;
  extent->read.tag = reinterpret_cast<uint64_t>(extent);
  extent->shard = stretch.shard;
  extent->length = stretch.end - stretch.begin;
  return extent;
}

// The extent of the piece that a pick belongs to, with a use for the pick. The planner has a use of its own
// as long as further samples of the piece are to come.
Extent* Planner::piece_for(const Pick& pick, Step& step) {
  Extent* extent = pieces_.find(pick.piece_first);
  if (!extent) {
    Stretch stretch;
    const LoadPart& part = spec_.parts[pick.part];
    const uint64_t first = part.sample_at(pick.piece_first);
    // Rows out of order could claim a whole shard for a piece; then each sample is read by itself.
    if (!stretch_of(part, first, first + pick.piece_count - 1, stretch) ||
        stretch.end - stretch.begin >
            std::min(kLargestPiece * spec_.order.piece_bytes, extents_.most_bytes()))
      return nullptr;
    extent = extent_for(part, stretch);
    if (!extent) return nullptr;
    step.extents.push_back(extent);
    pieces_.add(pick.piece_first, pick.piece_last, extent);
  }
  extent->uses.fetch_add(1, std::memory_order_relaxed);
  return extent;
}

bool Planner::plan(Step& step) {
  if (step_ == steps_) {
    begin(then_.value_or(epoch_ + 1), 0, then_);
    if (steps_ == 0) return false;
  }
  step.epoch = epoch_;
  step.number = step_;
  step.last_of_epoch = step_ + 1 == steps_;
  step.consumed_before = consumed_ + step_ * spec_.order.global_batch;
  step.consumed_after = std::min(consumed_ + (step_ + 1) * spec_.order.global_batch, order_->spec().samples);
  order_->batch(epoch_, consumed_, step_, spec_.rank, step.picks);
  ++step_;

  const size_t fields = spec_.fields(), count = step.picks.size();
  step.tasks.resize(count);
  step.extents.clear();
  step.value_at.resize(count * fields);
  step.value_bytes.resize(count * fields);
  step.area_bytes = 0;
  step.ready = nullptr;
  step.remaining = count;
  step.bad.clear();
  step.warnings = 0;
  for (size_t i = 0; i < count; ++i) {
    const Pick& pick = step.picks[i];
    const LoadPart& part = spec_.parts[pick.part];
    Task& task = step.tasks[i];
    task = {.step = &step,
            .sample = part.sample_at(pick.sample),
            .position = pick.position,
            .part = pick.part,
            .place = static_cast<uint32_t>(i)};
    if (merges()) {
      task.extent = piece_for(pick, step);
    } else if (Stretch stretch; stretch_of(part, task.sample, task.sample, stretch)) {
      task.extent = extent_for(part, stretch);
      if (task.extent) step.extents.push_back(task.extent);
    }
    for (size_t field = 0; field < fields; ++field) {
      const FieldLocation location = part.dataset->locate(task.sample, part.fields[field]);
      step.value_at[i * fields + field] = step.area_bytes;
      // What is decoded gets its room when it is known how much that takes.
      const bool in_area = location.present && spec_.value(field).in_place();
      step.value_bytes[i * fields + field] = in_area ? location.length : UINT64_MAX;
      if (in_area) step.area_bytes += (location.length + 7) / 8 * 8;
    }
  }
  let_go_of_pieces(consumed_ + step_ * spec_.order.global_batch);
  // Neighbours on disk are asked for one after the other.
  std::sort(step.extents.begin(), step.extents.end(), [](const Extent* a, const Extent* b) {
    return a->read.file != b->read.file ? a->read.file < b->read.file : a->read.offset < b->read.offset;
  });
  return true;
}

}  // namespace packtrain
