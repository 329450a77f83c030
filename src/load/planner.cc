#include "load/planner.h"

#include <algorithm>
#include <bit>

namespace packtrain {
namespace {

// Bytes between the wanted fields of a sample that a read may bring for nothing.
constexpr uint64_t kMostSlack = 32 << 10;
constexpr uint64_t kLargestPiece = 16;  // times what a piece should have: samples differ in size

// A little more than asked for: one of a few sizes, so that a buffer serves many reads.
size_t room_for(uint64_t bytes) {
  constexpr uint64_t kLeast = 4096;
  const uint64_t step = std::max(std::bit_floor(bytes) / 8, kLeast);
  return (bytes + step - 1) / step * step;
}

bool has_less(const Buffer& buffer, size_t room) { return buffer.capacity() < room; }

}  // namespace

Extent* ExtentPool::take() {
  Lock lock(mutex_);
  if (idle_.empty()) {
    all_.push_back(std::make_unique<Extent>());
    idle_.reserve(all_.capacity());  // so that release() never allocates
    buffers_.reserve(all_.capacity());
    return all_.back().get();
  }
  Extent* extent = idle_.back();
  idle_.pop_back();
  return extent;
}

uint64_t ExtentPool::room_of(const Extent& extent) { return room_for(extent.length); }

// The smallest idle buffer that is large enough; if there is none, the largest gives way to a new one, and
// more of them where memory wants it. So there are buffers of all sizes that are needed together, not each as
// large as the largest read.
void ExtentPool::give_buffer(Extent& extent) {
  const size_t room = room_for(extent.length);
  {
    Lock lock(mutex_);
    auto found = std::lower_bound(buffers_.begin(), buffers_.end(), room, has_less);
    if (found != buffers_.end()) {
      extent.buffer = std::move(*found);
      buffers_.erase(found);
    } else {
      held_ += room;
      for (bool first = true; !buffers_.empty() && (first || held_ > limit_); first = false) {
        held_ -= buffers_.back().capacity();
        buffers_.pop_back();
      }
    }
  }
  extent.read.into = extent.buffer.take(room).first(extent.length);
}

void ExtentPool::release(Extent* extent) {
  if (extent->uses.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  Lock lock(mutex_);
  if (const size_t room = extent->buffer.capacity(); room != 0 && held_ > limit_) {
    held_ -= room;  // of a read larger than all that should be read ahead
    extent->buffer = Buffer();
  } else if (room != 0) {
    buffers_.insert(std::lower_bound(buffers_.begin(), buffers_.end(), room, has_less),
                    std::move(extent->buffer));
  }
  idle_.push_back(extent);
}

uint64_t ExtentPool::held() const {
  Lock lock(mutex_);
  return held_;
}

void Planner::begin(uint64_t epoch, uint64_t consumed) {
  let_go_of_pieces();
  epoch_ = epoch;
  consumed_ = consumed;
  step_ = 0;
  steps_ = order_->steps(consumed, spec_.rank);
}

void Planner::let_go_of_pieces() {
  for (auto& [first, piece] : pieces_) extents_.release(piece.extent);
  pieces_.clear();
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

// The extent of the piece that a pick belongs to, with a use for the pick.
Extent* Planner::piece_for(const Pick& pick, Step& step) {
  auto [at, is_new] = pieces_.try_emplace(pick.piece_first);
  Piece& piece = at->second;
  if (is_new) {
    Stretch stretch;
    const LoadPart& part = spec_.parts[pick.part];
    const uint64_t first = part.sample_at(pick.piece_first);
    piece.left = pick.piece_count;
    // Rows out of order could claim a whole shard for a piece; then each sample is read by itself.
    if (stretch_of(part, first, first + pick.piece_count - 1, stretch) &&
        stretch.end - stretch.begin <= kLargestPiece * spec_.order.piece_bytes)
      piece.extent = extent_for(part, stretch);
    if (!piece.extent) {
      pieces_.erase(at);
      return nullptr;
    }
    step.extents.push_back(piece.extent);
  }
  Extent* extent = piece.extent;
  if (--piece.left == 0) {
    pieces_.erase(at);  // the planner's use becomes the pick's
  } else {
    extent->uses.fetch_add(1, std::memory_order_relaxed);
  }
  return extent;
}

bool Planner::plan(Step& step) {
  if (step_ == steps_) {
    begin(spec_.epoch_after(epoch_), 0);
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
  // Neighbours on disk are asked for one after the other.
  std::sort(step.extents.begin(), step.extents.end(), [](const Extent* a, const Extent* b) {
    return a->read.file != b->read.file ? a->read.file < b->read.file : a->read.offset < b->read.offset;
  });
  return true;
}

}  // namespace packtrain
