// Shards whose every offset is known are written by position: threads take units of a few MiB, read the files
// of a unit straight into its buffer, take the checks there, and write it with one call. A closer makes whole
// shards durable meanwhile.
#include <algorithm>
#include <cstring>
#include <deque>

#include "base/hash.h"
#include "base/out_of_memory.h"
#include "base/queue.h"
#include "base/threads.h"
#include "base/words.h"
#include "pack/block_checks.h"
#include "pack/look_ahead.h"
#include "pack/shard_layout.h"
#include "pack/writers.h"
#include "packtrain/decode.h"

namespace packtrain {
namespace {

constexpr uint64_t kLargestUnit = 32 << 20;  // a larger sample is not held in memory whole
constexpr size_t kStreamBytes = 4 << 20;     // but goes through in pieces of this size
constexpr size_t kClosers = 2, kWaitingToClose = 1;
// Threads are spread over so many shards at once: a filesystem lets one thread at a time write to a file.
// Shards of very many samples are done one after the other, since the layouts of several would take more
// memory than the plan; opening their files costs more than writing them, and that goes on side by side all
// the same.
constexpr size_t kMostShardsInWork = 4;
constexpr uint64_t kLayoutMemory = 32 << 20, kLayoutBytesPerCell = 80;

// A buffer that grows without being cleared. One thread at a time.
class Scratch {
 public:
  MutableBytes take(size_t bytes) {
    if (bytes > capacity_) {
      data_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      capacity_ = bytes;
    }
    return {data_.get(), bytes};
  }

 private:
  std::unique_ptr<std::byte[]> data_;
  size_t capacity_ = 0;
};

struct WriteUnit {
  size_t first_sample = 0, end_sample = 0;
};

// One shard being written. Its vectors are sized before the first thread sees it; each unit writes its own
// parts.
struct ShardInWork {
  ~ShardInWork() {
    if (writer && !published) writer->discard();
  }

  uint32_t number = 0;
  bool published = false;
  ShardLayout layout;
  std::unique_ptr<Writer> writer;
  std::vector<WriteUnit> units;
  std::vector<std::vector<BlockPiece>> pieces;  // per unit
  std::vector<uint32_t> checks, crc32;          // per member
  std::vector<uint32_t> widths, heights;        // per sample
  std::vector<uint64_t> left_out;               // from earlier tries
  std::vector<BadSample> reasons;
  std::atomic<size_t> units_left = 0;

  Mutex mutex;
  std::vector<std::pair<uint64_t, BadSample>> bad GUARDED_BY(mutex);  // (sample of the catalog, why)
};

struct Try {
  uint32_t number = 0;
  std::vector<uint64_t> left_out;
  std::vector<BadSample> reasons;
};

size_t shards_in_work(const WriteContext& context, const std::vector<uint32_t>& shards) {
  const Plan& plan = context.plan;
  uint64_t most_samples = 1;
  for (const uint32_t number : shards) most_samples = std::max(most_samples, plan.shards[number].count);
  const uint64_t cells_a_sample =
      plan.catalog.count_fields() / std::max<size_t>(plan.catalog.samples.size(), 1) + 1;
  const uint64_t layout = most_samples * cells_a_sample * kLayoutBytesPerCell;
  return std::clamp<size_t>(std::min<uint64_t>(context.threads, kLayoutMemory / layout), 1,
                            kMostShardsInWork);
}

// Hands out units of a few shards at a time, and shards to be tried again without their bad samples.
// Thread-safe.
class PlannedWriter {
 public:
  PlannedWriter(WriteContext& context, const std::vector<uint32_t>& shards)
      : context_(context),
        layout_(*context.format.layout),
        to_close_(kWaitingToClose),
        active_(shards_in_work(context, shards)),
        unclosed_(shards.size()) {
    for (uint32_t number : shards) waiting_.push_back({number, {}, {}});
  }

  Status run() {
    {
      Threads closers;
      Status status;
      for (size_t i = 0; i < kClosers && status.ok(); ++i)
        status = closers.start("pack-close", [this] { close_shards(); });
      if (closers.size() > 0)
        run_on("pack-write", context_.threads, [this](uint32_t worker) { write_units(worker); });
      to_close_.close();
      if (closers.size() == 0) return status;
    }
    Lock lock(mutex_);
    if (failure_.ok() && context_.meter.stopped()) {
      return Status(Code::stopped, "stopped; run the same command again to go on");
    }
    return failure_;
  }

 private:
  struct Taken {
    std::shared_ptr<ShardInWork> shard;
    size_t unit = 0;
  };

  // What a worker does next: a unit, or a shard that it opens; neither: all is done.
  struct Step {
    std::optional<Taken> taken;
    std::optional<Try> to_open;
  };

  // A shard whose units are being handed out; empty until one is opened.
  struct Active {
    std::shared_ptr<ShardInWork> shard;
    size_t next_unit = 0;
    bool opening = false;  // by one of its workers

    bool has_units() const { return shard && next_unit < shard->units.size(); }
  };

  bool over() REQUIRES(mutex_) { return !failure_.ok() || context_.meter.stopped(); }
  std::optional<Taken> take(uint32_t worker);
  Step next_step(uint32_t worker);
  Result<std::shared_ptr<ShardInWork>> open(Try&& attempt);
  void write_units(uint32_t worker);
  Status write_unit(ShardInWork& shard, size_t unit, Scratch& scratch);
  Status write_small(ShardInWork& shard, size_t unit, Scratch& scratch);
  Status write_large(ShardInWork& shard, size_t unit);
  void note_image(ShardInWork& shard, const PlannedMember& member, Bytes head);
  Status note_bad(ShardInWork& shard, const PlannedMember& member, const Status& status);
  void close_shards();
  Status close(ShardInWork& shard);
  void fail(const Status& status) {
    Lock lock(mutex_);
    if (failure_.ok()) failure_ = status;
    changed_.notify_all();
  }
  Cell cell_of(const ShardLayout& layout, const PlannedMember& member) const {
    return context_.plan.catalog.cell(member.cell, layout.samples[member.sample]);
  }
  LaidMember laid(const ShardLayout& layout, size_t member, uint32_t crc) const {
    const PlannedMember& planned = layout.members[member];
    return {layout.name(planned), planned.head_offset, planned.size, crc};
  }

  WriteContext& context_;
  const Layout& layout_;
  BoundedQueue<std::shared_ptr<ShardInWork>> to_close_;

  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Try> waiting_ GUARDED_BY(mutex_);
  std::vector<Active> active_ GUARDED_BY(mutex_);
  size_t unclosed_ GUARDED_BY(mutex_);  // shards that may still come back to be tried again
  Status failure_ GUARDED_BY(mutex_);
};

// A unit of the worker's own shard, else of a shard not begun, else of whichever has one.
std::optional<PlannedWriter::Taken> PlannedWriter::take(uint32_t worker) {
  while (true) {
    Step step = next_step(worker);
    if (!step.to_open) return step.taken;
    auto opened =
        within_memory([&] { return open(std::move(*step.to_open)); });  // others take units meanwhile
    Lock lock(mutex_);
    Active& own = active_[worker % active_.size()];
    own.opening = false;
    if (opened.ok()) {
      own.shard = std::move(*opened);
      own.next_unit = 0;
    } else if (failure_.ok()) {
      failure_ = opened.status();
    }
    changed_.notify_all();
  }
}

PlannedWriter::Step PlannedWriter::next_step(uint32_t worker) {
  Lock lock(mutex_);
  while (!over()) {
    Active& own = active_[worker % active_.size()];
    if (own.has_units()) return {Taken{own.shard, own.next_unit++}, {}};
    own.shard = nullptr;
    if (!own.opening && !waiting_.empty()) {
      Try attempt = std::move(waiting_.front());
      waiting_.pop_front();
      own.opening = true;
      return {{}, std::move(attempt)};
    }
    const auto other =
        std::find_if(active_.begin(), active_.end(), [](const Active& a) { return a.has_units(); });
    if (other != active_.end()) return {Taken{other->shard, other->next_unit++}, {}};
    if (unclosed_ == 0) break;
    lock.wait_for(changed_, std::chrono::milliseconds(100));
  }
  changed_.notify_all();
  return {};
}

// Lays the shard out and creates its file.
Result<std::shared_ptr<ShardInWork>> PlannedWriter::open(Try&& attempt) {
  const ShardPlan& plan = context_.plan.shards[attempt.number];
  auto shard = std::make_shared<ShardInWork>();
  shard->number = attempt.number;
  shard->left_out = std::move(attempt.left_out);
  shard->reasons = std::move(attempt.reasons);
  shard->layout = lay_out(context_.plan, plan, layout_, shard->left_out);
  const ShardLayout& layout = shard->layout;
  WriteUnit unit;
  for (size_t i = 0; i < layout.samples.size(); ++i) {
    const uint64_t bytes = layout.sample_begin(i + 1) - layout.sample_begin(unit.first_sample);
    if (unit.end_sample > unit.first_sample &&
        (bytes > context_.unit_bytes || unit.end_sample - unit.first_sample >= context_.unit_samples)) {
      shard->units.push_back(unit);
      unit.first_sample = i;
    }
    unit.end_sample = i + 1;
  }
  shard->units.push_back(unit);  // also for a shard that lost all its samples: someone must close it
  shard->pieces.resize(shard->units.size());
  shard->checks.resize(layout.members.size());
  if (layout_.needs_crc32) shard->crc32.resize(layout.members.size());
  shard->widths.resize(layout.samples.size());
  shard->heights.resize(layout.samples.size());
  shard->units_left = shard->units.size();
  WriteOptions options = shard_write_options(context_);
  options.stay_in_memory = context_.stays_in_memory;
  PACKTRAIN_ASSIGN(writer, context_.storage.create(context_.shard_path(plan), layout.bytes, options));
  shard->writer = std::move(writer);
  return shard;
}

void PlannedWriter::write_units(uint32_t worker) {
  Scratch scratch;
  while (auto taken = take(worker)) {
    const Status status = within_memory([&] { return write_unit(*taken->shard, taken->unit, scratch); });
    if (!status.ok()) fail(status);
    if (taken->shard->units_left.fetch_sub(1) != 1) continue;
    if (!layout_.needs_crc32) taken->shard->layout.forget_members();  // it may wait for the disk for long
    to_close_.push(std::move(taken->shard));
  }
}

Status PlannedWriter::write_unit(ShardInWork& shard, size_t number, Scratch& scratch) {
  const WriteUnit& unit = shard.units[number];
  const uint64_t bytes =
      shard.layout.sample_begin(unit.end_sample) - shard.layout.sample_begin(unit.first_sample);
  PACKTRAIN_TRY(bytes > kLargestUnit ? write_large(shard, number) : write_small(shard, number, scratch));
  context_.meter.add(unit.end_sample - unit.first_sample, bytes);
  return {};
}

void PlannedWriter::note_image(ShardInWork& shard, const PlannedMember& member, Bytes head) {
  if (shard.widths[member.sample] != 0) return;
  if (const auto shape = image_shape(head)) {
    shard.widths[member.sample] = shape->width;
    shard.heights[member.sample] = shape->height;
  }
}

// Each bad file of a sample is one to be mended. In a container its fields are of one file: once is enough.
Status PlannedWriter::note_bad(ShardInWork& shard, const PlannedMember& member, const Status& status) {
  const Cell cell = cell_of(shard.layout, member);
  if (!is_bad_sample(status)) return status.at(printable(context_.fetcher.source_path(cell)));
  Lock lock(shard.mutex);
  const uint64_t sample = shard.layout.samples[member.sample];
  shard.bad.emplace_back(sample, bad_sample(context_, sample, cell, status));
  return {};
}

Status PlannedWriter::write_small(ShardInWork& shard, size_t number, Scratch& scratch) {
  const WriteUnit& unit = shard.units[number];
  const ShardLayout& layout = shard.layout;
  const uint64_t begin = layout.sample_begin(unit.first_sample), end = layout.sample_begin(unit.end_sample);
  if (begin == end) return {};
  const MutableBytes buffer = scratch.take(end - begin);
  BlockPieces pieces(begin);
  bool sound = true;
  const size_t end_member = layout.first_member[unit.end_sample];
  uint64_t named = UINT64_MAX;
  for (size_t i = layout.first_member[unit.first_sample]; i < end_member; ++i) {
    if (i + kCellsAhead < end_member)
      look_ahead_at(context_.plan.catalog, layout.members[i + kCellsAhead].cell,
                    layout.samples[layout.members[i + kCellsAhead].sample],
                    layout.members[i + kCellsAhead / 2].cell);
    const PlannedMember& member = layout.members[i];
    const uint64_t next =
        i + 1 < layout.members.size() ? layout.members[i + 1].head_offset : layout.tail_offset;
    const MutableBytes head =
        buffer.subspan(member.head_offset - begin, member.data_offset - member.head_offset);
    const MutableBytes data = buffer.subspan(member.data_offset - begin, member.size);
    const MutableBytes padding =
        buffer.subspan(member.data_offset + member.size - begin, next - member.data_offset - member.size);
    const Cell cell = cell_of(layout, member);
    if (member.sample == named && cell.origin == Origin::container) continue;
    if (Status status = context_.fetcher.fetch(cell, data); !status.ok()) {
      PACKTRAIN_TRY(note_bad(shard, member, status));
      named = member.sample;
      sound = false;  // the shard will be laid out anew; the rest of the unit is still read, to find all that
                      // is bad
      continue;
    }
    if (!sound) continue;
    shard.checks[i] = crc32c(data);
    if (layout_.needs_crc32) shard.crc32[i] = crc32(data);
    note_image(shard, member, data);
    layout_.write_head(laid(layout, i, layout_.needs_crc32 ? shard.crc32[i] : 0), head);
    if (!padding.empty()) std::memset(padding.data(), 0, padding.size());
    pieces.add(head);
    pieces.add_known(shard.checks[i], data);
    pieces.add(padding);
  }
  if (!sound) return {};
  shard.pieces[number] = pieces.finish();
  return shard.writer->write_at(begin, buffer);
}

Status PlannedWriter::write_large(ShardInWork& shard, size_t number) {
  const WriteUnit& unit = shard.units[number];
  const ShardLayout& layout = shard.layout;
  std::vector<BlockPiece>& all = shard.pieces[number];
  const auto write_checked = [&](uint64_t offset, Bytes bytes) -> Status {
    BlockPieces pieces(offset);
    pieces.add(bytes);
    for (const BlockPiece& piece : pieces.finish()) all.push_back(piece);
    return shard.writer->write_at(offset, bytes);
  };
  uint64_t named = UINT64_MAX;
  for (size_t i = layout.first_member[unit.first_sample]; i < layout.first_member[unit.end_sample]; ++i) {
    const PlannedMember& member = layout.members[i];
    const Cell cell = cell_of(layout, member);
    if (member.sample == named && cell.origin == Origin::container) continue;
    uint32_t check = 0, zip_check = 0;
    uint64_t done = 0;
    Status written;  // a failure to write is not the sample's fault
    const Status status = context_.fetcher.fetch_pieces(cell, kStreamBytes, [&](Bytes bytes) -> Status {
      if (done == 0) note_image(shard, member, bytes);
      check = crc32c(bytes, check);
      if (layout_.needs_crc32) zip_check = crc32(bytes, zip_check);
      written = write_checked(member.data_offset + done, bytes);
      done += bytes.size();
      if (written.ok() && context_.meter.stopped()) written = Status(Code::stopped, "stopped");
      return written;
    });
    PACKTRAIN_TRY(written);
    if (!status.ok()) {
      PACKTRAIN_TRY(note_bad(shard, member, status));
      named = member.sample;
      continue;
    }
    shard.checks[i] = check;
    if (layout_.needs_crc32) shard.crc32[i] = zip_check;
    std::vector<std::byte> head(member.data_offset - member.head_offset);
    layout_.write_head(laid(layout, i, zip_check), head);
    PACKTRAIN_TRY(write_checked(member.head_offset, head));
    const uint64_t next =
        i + 1 < layout.members.size() ? layout.members[i + 1].head_offset : layout.tail_offset;
    const std::vector<std::byte> padding(next - member.data_offset - member.size);
    PACKTRAIN_TRY(write_checked(member.data_offset + member.size, padding));
  }
  return {};
}

void PlannedWriter::close_shards() {
  while (auto shard = to_close_.pop()) {
    bool failed;
    {
      Lock lock(mutex_);
      failed = over();
    }
    if (!failed) {
      if (Status status = within_memory([&] { return close(**shard); }); !status.ok()) fail(status);
    }
    Lock lock(mutex_);
    --unclosed_;
    changed_.notify_all();
  }
}

Status PlannedWriter::close(ShardInWork& shard) {
  const ShardPlan& plan = context_.plan.shards[shard.number];
  {
    Lock lock(shard.mutex);
    if (!shard.bad.empty()) {
      // Now, and not when the last owner lets go: the next try uses the same temporary name.
      shard.writer->discard();
      shard.writer = nullptr;
      Try again{shard.number, std::move(shard.left_out), std::move(shard.reasons)};
      // The bad files of a sample were found by one thread, in order, and stay so.
      std::stable_sort(shard.bad.begin(), shard.bad.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      std::vector<BadSample> reasons;
      const size_t known = again.left_out.size();
      for (const auto& [sample, why] : shard.bad) {
        if (again.left_out.size() == known || again.left_out.back() != sample)
          again.left_out.push_back(sample);
        reasons.push_back(why);
      }
      const uint64_t count = again.left_out.size() - known;
      std::sort(again.left_out.begin(), again.left_out.end());
      again.reasons.insert(again.reasons.end(), reasons.begin(), reasons.end());
      if (!context_.give_up(count)) {
        context_.report_bad(again.reasons, again.left_out.size(), known);
        return {};
      }
      Lock own(mutex_);
      ++unclosed_;
      waiting_.push_back(std::move(again));
      return {};
    }
  }
  const std::string tail = shard_tail(shard.layout, layout_, shard.crc32);
  BlockPieces tail_pieces(shard.layout.tail_offset);
  tail_pieces.add(as_bytes(tail));
  PACKTRAIN_TRY(shard.writer->write_at(shard.layout.tail_offset, as_bytes(tail)));
  std::vector<BlockPiece> pieces = tail_pieces.finish();
  for (const auto& of_unit : shard.pieces) pieces.insert(pieces.end(), of_unit.begin(), of_unit.end());
  ShardRows rows;
  rows.bytes = shard.layout.bytes;
  rows.checks = std::move(shard.checks);
  rows.widths = std::move(shard.widths);
  rows.heights = std::move(shard.heights);
  rows.block_checks = join_blocks(std::move(pieces), shard.layout.bytes);
  rows.left_out = std::move(shard.left_out);
  rows.reasons = std::move(shard.reasons);
  PACKTRAIN_TRY(publish_shard(context_, plan, rows, *shard.writer));
  shard.published = true;
  return {};
}

}  // namespace

Status write_planned(WriteContext& context, const std::vector<uint32_t>& shards) {
  if (shards.empty()) return {};
  return PlannedWriter(context, shards).run();
}

}  // namespace packtrain
