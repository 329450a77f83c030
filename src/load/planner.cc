#include "load/planner.h"

#include <algorithm>
#include <utility>

namespace packtrain {
namespace {

// Bytes between the wanted fields of a sample that a read may bring for nothing.
constexpr uint64_t kMostSlack = 32 << 10;
constexpr uint64_t kLargestPiece = 16;  // times what a piece should have: samples differ in size
// What a read of its own is worth: less than this between two samples comes with the first of them.
constexpr uint64_t kLeastPart = 64 << 10;

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
  while (Extent* const piece = pieces_.take_ended(position)) release_piece(piece);
}

void Planner::release_piece(Extent* piece) {
  while (piece) extents_.release(std::exchange(piece, piece->behind));  // not looked at once it is released
}

bool Planner::stretch_of(const LoadPart& part, uint64_t first, uint64_t last, Stretch& out) const {
  out = {};
  uint64_t together = 0;
  const auto add = [&](uint64_t sample, uint32_t field) {
    const FieldLocation location = part.dataset->locate(sample, field);
    if (!location.present) return true;
    if (!location.plain || (out.end != 0 && location.shard != out.shard)) return false;
    if (out.end == 0) {
      out.shard = location.shard;
      out.begin = location.offset;
      out.end = location.offset + location.length;
    } else {
      out.begin = std::min(out.begin, location.offset);
      out.end = std::max(out.end, location.offset + location.length);
    }
    together += location.length;
    out.is_checked = out.is_checked && spec_.check && location.check_kind != CheckKind::none;
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
  extent->mapped = extent->direct ? views_.of(**file) : nullptr;
  extent->is_checked = stretch.is_checked;
  extent->can_wait = false;
  extent->behind = nullptr;
  extent->uses = 1;
  extent->read.tag = reinterpret_cast<uint64_t>(extent);
  extent->shard = stretch.shard;
  extent->length = stretch.end - stretch.begin;
  return extent;
}

// The samples of the run's first step that are of the same piece, in order.
std::span<const uint64_t> Planner::first_samples_of(const Pick& pick, const Step& step) {
  if (first_samples_.empty()) {
    for (const Pick& one : step.picks) first_samples_.emplace_back(one.piece_first, one.sample);
    std::sort(first_samples_.begin(), first_samples_.end());
  }
  samples_of_piece_.clear();
  for (auto it = std::lower_bound(first_samples_.begin(), first_samples_.end(),
                                  std::pair(pick.piece_first, uint64_t{0}));
       it != first_samples_.end() && it->first == pick.piece_first; ++it)
    samples_of_piece_.push_back(spec_.parts[pick.part].sample_at(it->second));
  return samples_of_piece_;
}

Extent* Planner::read_whole(const LoadPart& part, const Stretch& stretch, Step& step) {
  Extent* extent = extent_for(part, stretch);
  if (extent) step.extents.push_back(extent);
  return extent;
}

// A first batch needs a sample here and there of every piece of a window. It would wait for all of the
// window, which is a hundred times as much, if each piece were one read.
Extent* Planner::read_in_parts(const LoadPart& part, const Stretch& stretch,
                               std::span<const uint64_t> samples, Step& step) {
  stretches_.clear();
  uint64_t at = stretch.begin, together = 0;
  for (const uint64_t sample : samples) {
    Stretch one;
    if (!stretch_of(part, sample, sample, one) || one.shard != stretch.shard || one.end > stretch.end)
      return nullptr;
    if (!stretches_.empty() && one.begin < stretches_.back().end) {  // padding may name a sample twice
      if (one.end <= stretches_.back().end) continue;
      return nullptr;
    }
    if (one.begin < at) return nullptr;
    if (one.begin - at < kLeastPart) {
      if (stretches_.empty())
        one.begin = at;
      else
        stretches_.back().end = one.begin;
    }
    stretches_.push_back(one);
    at = one.end;
    together += one.end - one.begin;
  }
  if (stretches_.empty() || together > (stretch.end - stretch.begin) / 2) return nullptr;
  if (stretch.end - at < kLeastPart) stretches_.back().end = stretch.end;

  Extent *piece = nullptr, **end = &piece;
  const auto add = [&](uint64_t to, bool can_wait) {
    Extent* const extent = extent_for(part, {stretch.shard, at, to, stretch.is_checked});
    if (!extent) return false;
    extent->can_wait = can_wait;
    (can_wait ? step.rest : step.extents).push_back(extent);
    *end = extent;
    end = &extent->behind;
    at = to;
    return true;
  };
  at = stretch.begin;
  const size_t needed = step.extents.size(), rest = step.rest.size();
  bool all = true;
  for (const Stretch& one : stretches_)
    all = all && (at == one.begin || add(one.begin, true)) && add(one.end, false);
  all = all && (at == stretch.end || add(stretch.end, true));
  if (all) {
    for (size_t i = rest; i < step.rest.size(); ++i) ++step.rest[i]->uses;  // for their reads
    return piece;
  }
  step.extents.resize(needed);  // the shard cannot be opened
  step.rest.resize(rest);
  release_piece(piece);
  return nullptr;
}

// The part of a piece that brings a sample; null if none does, as where rows are out of order.
Extent* Planner::part_with(Extent* piece, const LoadPart& part, uint64_t sample) const {
  if (!piece->behind) return piece;
  Stretch stretch;
  if (!stretch_of(part, sample, sample, stretch)) return nullptr;
  for (; piece; piece = piece->behind)
    if (stretch.shard == piece->shard && stretch.begin >= piece->read.offset &&
        stretch.end <= piece->read.offset + piece->length)
      return piece;
  return nullptr;
}

// The extent that brings a pick with others of its piece, with a use for the pick. The planner has a use of
// its own as long as further samples of the piece are to come.
Extent* Planner::piece_for(const Pick& pick, Step& step) {
  const LoadPart& part = spec_.parts[pick.part];
  Extent* piece = pieces_.find(pick.piece_first);
  if (!piece) {
    Stretch stretch;
    const uint64_t first = part.sample_at(pick.piece_first);
    // Rows out of order could claim a whole shard for a piece; then each sample is read by itself.
    if (!stretch_of(part, first, first + pick.piece_count - 1, stretch) ||
        stretch.end - stretch.begin >
            std::min(kLargestPiece * spec_.order.piece_bytes, extents_.most_bytes()))
      return nullptr;
    if (is_first_) piece = read_in_parts(part, stretch, first_samples_of(pick, step), step);
    if (!piece) piece = read_whole(part, stretch, step);
    if (!piece) return nullptr;
    pieces_.add(pick.piece_first, pick.piece_last, piece);
  }
  Extent* const extent = part_with(piece, part, part.sample_at(pick.sample));
  if (extent) extent->uses.fetch_add(1, std::memory_order_relaxed);
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
  step.rest.clear();
  step.value_at.resize(count * fields);
  step.value_bytes.resize(count * fields);
  step.area_bytes = 0;
  step.ready = nullptr;
  step.remaining = count;
  step.bad.clear();
  step.refused = {};
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
  is_first_ = false;
  // Neighbours on disk are asked for one after the other.
  for (std::vector<Extent*>* extents : {&step.extents, &step.rest}) {
    std::sort(extents->begin(), extents->end(), [](const Extent* a, const Extent* b) {
      return a->read.file != b->read.file ? a->read.file < b->read.file : a->read.offset < b->read.offset;
    });
  }
  return true;
}

}  // namespace packtrain
