#include "load/engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/out_of_memory.h"
#include "io/cached_read.h"

namespace packtrain {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void add(std::atomic<double>& sum, double seconds) {
  sum.store(sum.load(std::memory_order_relaxed) + seconds, std::memory_order_relaxed);  // one writer each
}

constexpr size_t kPlannedAtOnce = 3;                        // steps whose bytes are copied from memory
constexpr uint64_t kMostReserved = 1 << 16;                 // reads that wait; of more, the list grows
constexpr auto kAskEvery = std::chrono::milliseconds(100);  // whether to go on waiting
// To wake a thread is a good part of what next() costs the consumer. As long as it has batches to take,
// one of the threads looks out instead: more and more seldom, so that a loader at rest costs next to nothing.
constexpr auto kShortestLookOut = std::chrono::microseconds(500),
               kLongestLookOut = std::chrono::microseconds(16'000);

// Small samples are taken several at a time, so that threads do not meet at the lock for each of them.
size_t tasks_at_once(const LoadSpec& spec) {
  const bool slow =
      spec.image || std::any_of(spec.values.begin(), spec.values.end(), [](const ValueSpec& value) {
        return value.kind == ValueKind::audio || value.kind == ValueKind::image;
      });
  return slow ? 1 : 8;
}

bool pads(const LoadSpec& spec) {
  return std::any_of(spec.values.begin(), spec.values.end(),
                     [](const ValueSpec& value) { return value.pad; });
}

}  // namespace

Engine::Engine(const LoadSpec& spec, std::shared_ptr<const Order> order, std::shared_ptr<BatchPool> pool,
               ShardViews& views, const EngineLimits& limits)
    : spec_(spec),
      order_(order),
      pool_(std::move(pool)),
      limits_(limits),
      tasks_at_once_(tasks_at_once(spec)),
      pads_(pads(spec)),
      extents_(limits.memory.read_ahead),
      planner_(spec, std::move(order), extents_, views) {}

Engine::~Engine() {
  {
    Lock lock(mutex_);
    stopping_ = true;
    reader_wakes_.notify_all();
    decoder_wakes_.notify_all();
    consumer_wakes_.notify_all();
  }
  threads_.join();
}

Status Engine::begin(uint64_t epoch, uint64_t consumed, std::optional<uint64_t> then) {
  PACKTRAIN_TRY(extents_.begin());
  planner_.begin(epoch, consumed, then);
  {
    Lock lock(mutex_);
    const uint64_t batch = spec_.order.global_batch / spec_.order.world;
    const uint64_t planned = limits_.planned_steps;
    to_read_.reserve(planned * std::min(batch, kMostReserved / std::max<uint64_t>(planned, 1)));
  }
  for (uint32_t i = 0; i < limits_.threads; ++i) {
    PACKTRAIN_ASSIGN(filler, Filler::make(spec_, *order_, limits_.memory, limits_.far));
    decoders_.push_back(std::make_unique<Decoder>());
    decoders_.back()->filler = std::move(filler);
  }
  for (uint32_t i = 0; i < limits_.readers; ++i)
    PACKTRAIN_TRY(threads_.start("pt-read", [this] { run([this] { read_all(); }); }));
  for (auto& decoder : decoders_)
    PACKTRAIN_TRY(threads_.start(
        "pt-decode", [this, decoder = decoder.get()] { run([this, decoder] { decode_all(*decoder); }); }));
  return {};
}

// A thread for which there is no memory says so: the consumer waits for what it would have done.
void Engine::run(const std::function<void()>& body) {
  const Status ended = within_memory([&]() -> Status {
    body();
    return {};
  });
  if (ended.ok()) return;
  Lock lock(mutex_);
  failure_ = ended;
  consumer_wakes_.notify_all();
}

bool Engine::may_plan() { return !planning_ && !ended_ && steps_.size() < limits_.planned_steps; }

// Whether a thread is to be woken for it. What is copied from memory needs no lead, so that several steps may
// be planned at once; waking a thread for each would cost as much as copying a sample.
bool Engine::should_plan() {
  const size_t enough = planner_.direct() ? kPlannedAtOnce : 1;
  return may_plan() && (steps_.size() + enough <= limits_.planned_steps || steps_.size() <= open_);
}

// Plans one step without the lock, and then takes it in.
void Engine::plan_one() PACKTRAIN_ANNOTATE(no_thread_safety_analysis) {
  planning_ = true;
  std::unique_ptr<Step> step;
  if (idle_steps_.empty()) {
    step = std::make_unique<Step>();
  } else {
    step = std::move(idle_steps_.back());
    idle_steps_.pop_back();
  }
  const bool more = [&] {
    const Unlocked unlocked(mutex_);
    return planner_.plan(*step);
  }();
  planning_ = false;
  if (!more) {
    ended_ = true;
    consumer_wakes_.notify_all();
    return;
  }
  Step& planned = *step;
  steps_.push(std::move(step));
  for (Task& task : planned.tasks) {
    if (!task.extent || task.extent->arrived) {
      make_ready(&task);
    } else {
      task.next = task.extent->waiting;
      task.extent->waiting = &task;
    }
  }
  if (planner_.direct()) {
    // Nearest to the front of its shard first, which is how what is not cached is asked for.
    for (size_t i = planned.extents.size(); i > 0; --i)
      make_ready(std::exchange(planned.extents[i - 1]->waiting, nullptr));
  } else {
    for (Extent* extent : planned.extents) to_read_.push(extent);
    for (Extent* extent : planned.rest) to_read_.push(extent);
    reader_wakes_.notify_all();
  }
  open_steps();
  consumer_wakes_.notify_all();
}

// Gives batches to the steps that come next, as far as memory and the limit go. Left to the engine's threads
// as long as the consumer has a batch to take: it should not pay for this, nor for waking them all.
void Engine::open_steps() {
  may_have_room_ = false;
  while (open_ < steps_.size() && open_ < may_be_open_) {
    Step& step = *steps_[open_];
    no_batch_ = open(step);
    if (!no_batch_.ok()) break;
    ++open_;
    if (step.ready) decoder_wakes_.notify_all();
  }
  if (should_plan() || !to_read_.empty()) reader_wakes_.notify_one();
}

Status Engine::open(Step& step) {
  const size_t count = step.picks.size(), image_bytes = spec_.image ? spec_.image->bytes() : 0;
  const bool decodes = !spec_.delivers_bytes();
  // Decoded values take their memory while a batch is filled: those that are open may still be to take
  // theirs.
  const size_t decoded = decodes ? limits_.batch_bytes * (open_ + 1) : 0;
  const size_t own = PooledBatch::bytes_for(count, image_bytes, spec_.fields(), step.area_bytes + 1, decodes);
  PACKTRAIN_ASSIGN(batch, pool_->take(own, decoded));
  const size_t before = batch->memory();
  batch->prepare(step.epoch, step.number, step.consumed_after, count, image_bytes, spec_.fields(),
                 step.area_bytes + 1, decodes);
  pool_->grown(before, batch->memory());
  for (size_t i = 0; i < count; ++i) {
    const Task& task = step.tasks[i];
    const LoadPart& part = spec_.parts[task.part];
    batch->labels()[i] = part.dataset->label(task.sample);
    batch->indices()[i] = part.index_of(task.sample);
    batch->sources()[i] = task.part;
    batch->padding()[i] = step.picks[i].padding ? 1 : 0;
  }
  if (planner_.direct()) {
    for (Task& task : step.tasks) {
      if (task.extent)
        task.extent->read.into = batch->value_area().subspan(step.value_at[task.place], task.extent->length);
    }
  }
  step.batch.reset(batch);
  return {};
}

void Engine::make_ready(Task* task) {
  task->next = task->step->ready;
  task->step->ready = task;
}

size_t Engine::take_extents(std::vector<Extent*>& into, size_t most) {
  into.clear();
  while (!to_read_.empty() && into.size() < most) {
    Extent& extent = *to_read_.front();
    // From near storage, reading is work for the cores that the first batch wants: memory is cleared, bytes
    // are copied.
    if (extent.can_wait && is_first_ && !limits_.far) break;
    if (extent.can_wait && extent.uses.load(std::memory_order_acquire) == 1) {
      // All its samples were done before the run went on, and the planner has let go of their piece.
      extents_.release(to_read_.pop());
      continue;
    }
    if (!extent.direct && !extents_.give_room(extent)) break;
    into.push_back(to_read_.pop());
  }
  reading_ += into.size();
  return into.size();
}

// Whether the consumer would wait for ever: pieces of streams fill up the memory, all are needed again later,
// and the batch that comes next needs one more. Sizes of samples vary, and no room is without gaps.
bool Engine::is_stuck() {
  if (to_read_.empty() || reading_ > 0 || filling_ > 0 || open_ == 0 || steps_.front()->remaining == 0)
    return false;
  for (size_t i = 0; i < open_; ++i)
    if (steps_[i]->ready) return false;
  return true;
}

void Engine::hand_over(Extent& extent) {
  extent.arrived = true;
  for (Task* task = extent.waiting; task;) {
    Task* next = task->next;
    make_ready(task);
    task = next;
  }
  extent.waiting = nullptr;
  if (extent.can_wait) extents_.release(&extent);  // last: others may have it from here on
}

void Engine::arrived(std::span<Read* const> finished) {
  Lock lock(mutex_);
  reading_ -= finished.size();
  for (Read* read : finished) hand_over(*reinterpret_cast<Extent*>(read->tag));
  decoder_wakes_.notify_all();
}

void Engine::read_all() {
  auto reads = spec_.parts.front().dataset->storage().reads(limits_.reads_in_flight);
  std::vector<Extent*> extents;
  std::vector<Read*> batch, finished(limits_.reads_in_flight);
  for (;;) {
    {
      Lock lock(mutex_);
      for (;;) {
        if (stopping_) return;
        while (may_plan()) {
          plan_one();
          if (stopping_) return;
        }
        if (take_extents(extents, limits_.reads_in_flight - reads->in_flight()) > 0) break;
        if (reads->in_flight() > 0) break;
        if (is_stuck()) {
          // Each sample of this piece is then read by itself, when its turn comes.
          Extent& extent = *to_read_.pop();
          extent.read.status = Status(Code::no_room, "there is no room for a piece of the stream");
          hand_over(extent);
          decoder_wakes_.notify_all();
          continue;
        }
        lock.wait(reader_wakes_);
      }
    }
    batch.clear();
    for (Extent* extent : extents) {
      bytes_read_.fetch_add(extent->length, std::memory_order_relaxed);
      batch.push_back(&extent->read);
    }
    if (!batch.empty()) reads->submit(batch);
    const size_t count = reads->wait(finished);
    arrived(std::span(finished).first(count));
  }
}

// Some ready tasks of the earliest step that has any, linked; null if there are none.
Task* Engine::take_tasks() {
  for (size_t i = 0; i < open_; ++i) {
    Step& step = *steps_[i];
    if (!step.ready) continue;
    Task *first = step.ready, *last = first;
    for (size_t n = 1; n < tasks_at_once_ && last->next; ++n) last = last->next;
    step.ready = last->next;
    last->next = nullptr;
    return first;
  }
  return nullptr;
}

void Engine::pad(Step& step, std::vector<BadPlace>& bad) {
  for (MisfitValue& misfit : step.filling().pad(spec_.values)) {
    const Task& task = step.tasks[misfit.place];
    const LoadPart& part = spec_.parts[task.part];
    const std::string& name = part.dataset->manifest().fields[part.fields[misfit.field]].name;
    Status status = misfit.status.at("field '" + name + "'");
    if (misfit.is_any)
      step.refused = std::move(status);
    else
      bad.push_back({task.place, task.part, task.sample, std::move(status), false, true});
  }
}

// Bytes that go straight into the batch are copied from memory here, where the check will look at them next.
bool Engine::bring(Extent& extent) {
  if (!extent.direct || extent.arrived) return true;
  const bool is_copied = extent.mapped && extent.mapped->copy(extent.read.offset, extent.read.into) &&
                         (extent.is_checked || !extent.mapped->cut());
  if (!is_copied && !read_if_cached(*extent.read.file, extent.read.offset, extent.read.into)) return false;
  bytes_read_.fetch_add(extent.length, std::memory_order_relaxed);
  return true;
}

void Engine::decode_all(Decoder& decoder) PACKTRAIN_ANNOTATE(no_thread_safety_analysis) {
  std::vector<BadPlace> bad;
  std::vector<Task*> late;  // must be read from storage first
  auto look_out = kShortestLookOut;
  Lock lock(mutex_);
  for (;;) {
    if (may_have_room_) open_steps();
    Task* tasks = take_tasks();
    if (!tasks) {
      if (stopping_) return;
      // Nothing to do: either bytes are on their way, or every batch that may be made is full.
      bool waits_for_bytes = false;
      for (size_t i = 0; i < open_; ++i) waits_for_bytes |= steps_[i]->remaining > 0;
      const auto start = Clock::now();
      if (waits_for_bytes || looking_out_ || (ended_ && open_ == steps_.size())) {
        lock.wait(decoder_wakes_);
      } else {
        looking_out_ = true;
        if (!lock.wait_for(decoder_wakes_, look_out)) look_out = std::min(look_out * 2, kLongestLookOut);
        looking_out_ = false;
      }
      add(waits_for_bytes ? decoder.read_wait : decoder.blocked, since(start));
      continue;
    }
    if (stopping_) return;
    look_out = kShortestLookOut;
    ++filling_;
    Step& step = *tasks->step;
    size_t count = 0;
    const uint64_t warnings_before = decoder.filler->warnings();
    {
      const Unlocked unlocked(mutex_);
      const auto start = Clock::now();
      bad.clear();
      late.clear();
      for (Task *task = tasks, *next = nullptr; task; task = next) {
        next = task->next;
        if (task->extent && !bring(*task->extent)) {
          late.push_back(task);
          continue;
        }
        Filler::Outcome outcome = decoder.filler->fill(*task);
        if (!outcome.status.ok())
          bad.push_back({task->place, task->part, task->sample, std::move(outcome.status), outcome.replaced});
        if (task->extent) extents_.release(task->extent);
        ++count;
      }
      decoder.bytes_read.store(decoder.filler->bytes_read(), std::memory_order_relaxed);
      add(decoder.decode, since(start));
    }
    if (pads_ && step.remaining == count) {  // all others are filled, and nobody else looks at the step
      const Unlocked unlocked(mutex_);
      pad(step, bad);
    }
    --filling_;
    step.warnings += decoder.filler->warnings() - warnings_before;
    for (BadPlace& place : bad) step.bad.push_back(std::move(place));
    for (Task* task : late) {
      task->next = nullptr;
      task->extent->waiting = task;
      to_read_.push(task->extent);
    }
    step.remaining -= count;
    if (step.remaining == 0) {
      is_first_ = false;
      consumer_wakes_.notify_all();
    }
    if (!to_read_.empty()) reader_wakes_.notify_one();
  }
}

std::unique_ptr<Step> Engine::pop_front(bool& hurry) {
  std::unique_ptr<Step> step = steps_.pop();
  --open_;
  may_be_open_ = limits_.open_steps;
  may_have_room_ = true;
  // Where the next batch is there too, the thread that looks out will see the room by itself.
  hurry = !front_is_done() || !looking_out_;
  return step;
}

std::unique_ptr<Step> Engine::take_if_ready(std::unique_ptr<Step>& spent) {
  std::unique_ptr<Step> step;
  bool hurry = false;
  {
    Lock lock(mutex_);
    if (spent) idle_steps_.push_back(std::move(spent));
    if (!front_is_done()) return nullptr;
    step = pop_front(hurry);
  }
  if (hurry) decoder_wakes_.notify_one();  // without the lock, which it wants first of all; one is enough
  return step;
}

Result<std::unique_ptr<Step>> Engine::take(const std::function<bool()>& go_on, double& waited,
                                           std::unique_ptr<Step>& spent)
    PACKTRAIN_ANNOTATE(no_thread_safety_analysis) {
  waited = 0;
  if (auto step = take_if_ready(spent)) return step;
  std::unique_ptr<Step> step;
  bool hurry = false;
  {
    Lock lock(mutex_);
    open_steps();  // the user may have let go of batches since
    const auto start = Clock::now();
    while (!front_is_done()) {
      if (ended_ && steps_.empty()) return Status(Code::not_found, "no steps are left");
      if (open_ == 0 && !no_batch_.ok()) return no_batch_;
      if (!failure_.ok()) return failure_;
      if (lock.wait_for(consumer_wakes_, kAskEvery) || !go_on) continue;
      mutex_.unlock();  // whoever is asked may need a lock that a thread with ours waits for
      const bool wanted = go_on();
      mutex_.lock();
      if (!wanted) return Status(Code::stopped, "stopped while waiting for a batch");
    }
    waited = since(start);
    step = pop_front(hurry);
  }
  if (hurry) decoder_wakes_.notify_one();
  return step;
}

bool Engine::is_ready() const {
  Lock lock(mutex_);
  return front_is_done();
}

EngineCounts Engine::counts() const {
  EngineCounts counts;
  counts.bytes_read = bytes_read_.load(std::memory_order_relaxed);
  for (const auto& decoder : decoders_) {
    counts.read_wait += decoder->read_wait.load(std::memory_order_relaxed);
    counts.decode += decoder->decode.load(std::memory_order_relaxed);
    counts.blocked += decoder->blocked.load(std::memory_order_relaxed);
    counts.bytes_read += decoder->bytes_read.load(std::memory_order_relaxed);
  }
  return counts;
}

}  // namespace packtrain
