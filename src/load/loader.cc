#include <algorithm>
#include <chrono>

#include "base/words.h"
#include "io/fork.h"
#include "load/engine.h"
#include "load/parts.h"
#include "packtrain/load.h"
#include "packtrain/place.h"

namespace packtrain {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kLeastAhead = 32 << 20;  // bytes of batches that are worth making ahead
constexpr uint32_t kMostAhead = 16;         // batches
constexpr uint32_t kStepsReadAhead = 4;     // steps whose bytes are asked for before they can be decoded
// Encoded bytes that are on their way or wait to be decoded. A far filesystem answers late, and needs more.
constexpr uint64_t kReadAheadNear = 16 << 20, kReadAheadFar = 128 << 20;
constexpr size_t kMostNamed = 100;  // bad samples that the report names

class DatasetLoader final : public Loader {
 public:
  DatasetLoader(LoadSpec spec, std::shared_ptr<const Order> order, const EngineLimits& limits)
      : spec_(std::move(spec)),
        order_(std::move(order)),
        limits_(limits),
        pool_(std::make_shared<BatchPool>(limits.memory.batches)),
        born_in_(fork_generation()) {}

  ~DatasetLoader() override {
    // In a child of fork() the threads are not there: joining them would wait for ever.
    if (!here().ok()) (void)engine_.release();
  }

  Status start(uint64_t epoch, uint64_t consumed) override;
  void stop() override;
  Result<BatchPtr> next(const std::function<bool()>& go_on) override;
  Status note_bad(uint32_t source, uint64_t index, const Status& why) override;
  bool is_ready() const override {
    return !here().ok() || delivered_ == steps_ || !engine_ || engine_->is_ready();
  }
  uint64_t steps() const override { return steps_; }
  uint64_t steps_of_whole_epoch() const override { return order_->steps(0, spec_.rank); }
  uint64_t consumed() const override { return consumed_; }
  uint64_t epoch() const override { return epoch_; }
  OrderState state() const override;
  LoadReport report() const override;
  const LoadSpec& spec() const override { return spec_; }

 private:
  Status here() const {
    if (fork_generation() == born_in_) [[likely]]
      return {};
    return Status(
        Code::invalid,
        "this loader belongs to the process that made it, and does not work after fork(): make a new "
        "one in the child");
  }
  void end_engine();
  std::string name_of(uint32_t part, uint64_t sample) const;
  void count_bad(uint32_t part, uint64_t sample, const Status& why);
  Status check_budget(uint32_t part, uint64_t sample, const Status& why) const;
  Status settle_bad(Step& step);

  const LoadSpec spec_;
  const std::shared_ptr<const Order> order_;
  const EngineLimits limits_;
  const std::shared_ptr<BatchPool> pool_;
  const uint64_t born_in_;  // the process, by its fork_generation()
  std::unique_ptr<Engine> engine_;
  uint64_t epoch_ = 0, consumed_ = 0, steps_ = 0, delivered_ = 0;
  uint64_t errors_in_epoch_ = 0;

  mutable Mutex mutex_;
  LoadReport report_ GUARDED_BY(mutex_);
  EngineCounts earlier_ GUARDED_BY(mutex_);  // of engines that are gone
  std::optional<Clock::time_point> first_asked_ GUARDED_BY(mutex_);
  std::vector<bool> dropped_;
};

Status DatasetLoader::start(uint64_t epoch, uint64_t consumed) {
  PACKTRAIN_TRY(here());
  if (consumed > order_->spec().samples) {
    return Status(Code::invalid, "the state says that " + count_in_words(consumed) +
                                     " samples are done, but there are only " +
                                     count_in_words(order_->spec().samples));
  }
  // The engine goes on into the next epoch by itself.
  const bool goes_on = engine_ && delivered_ == steps_ && epoch == spec_.epoch_after(epoch_) && consumed == 0;
  epoch_ = epoch;
  consumed_ = consumed;
  delivered_ = 0;
  steps_ = order_->steps(consumed, spec_.rank);
  errors_in_epoch_ = 0;
  if (goes_on) return {};
  end_engine();
  if (steps_ == 0) return {};
  auto engine = std::make_unique<Engine>(spec_, order_, pool_, limits_);
  PACKTRAIN_TRY(engine->begin(epoch, consumed));
  Lock lock(mutex_);
  engine_ = std::move(engine);
  return {};
}

void DatasetLoader::stop() {
  if (!here().ok()) return;
  end_engine();
  steps_ = delivered_;
}

// Its counts stay; its threads are joined without the lock, which report() may want meanwhile.
void DatasetLoader::end_engine() {
  std::unique_ptr<Engine> ended;
  Lock lock(mutex_);
  if (!engine_) return;
  earlier_ += engine_->counts();
  ended = std::move(engine_);
}

std::string DatasetLoader::name_of(uint32_t part, uint64_t sample) const {
  const LoadPart& of = spec_.parts[part];
  const auto key = of.dataset->key(sample);
  return "sample " + std::to_string(of.index_of(sample)) +
         (key.ok() ? " (" + std::string(*key) + ")" : std::string()) +
         (spec_.mixed ? " of " + of.dataset->folder() : std::string());
}

void DatasetLoader::count_bad(uint32_t part, uint64_t sample, const Status& why) {
  ++errors_in_epoch_;
  Lock lock(mutex_);
  ++report_.errors;
  if (report_.bad.size() >= kMostNamed) return;
  const LoadPart& of = spec_.parts[part];
  const auto key = of.dataset->key(sample);
  report_.bad.push_back({part, static_cast<uint64_t>(of.index_of(sample)),
                         key.ok() ? std::string(*key) : std::string(), why.text()});
}

Status DatasetLoader::check_budget(uint32_t part, uint64_t sample, const Status& why) const {
  if (errors_in_epoch_ <= spec_.max_errors) return {};
  return Status(why.code(), why.message() + "; that makes " + counted(errors_in_epoch_, "bad sample") +
                                " in this epoch, more than max_errors allows")
      .at(name_of(part, sample));
}

Status DatasetLoader::note_bad(uint32_t source, uint64_t index, const Status& why) {
  if (source >= spec_.parts.size() || index >= spec_.parts[source].samples)
    return Status(Code::invalid, "there is no such sample to be noted as bad");
  const uint64_t sample = spec_.parts[source].first + index;
  count_bad(source, sample, why);
  {
    Lock lock(mutex_);
    --report_.samples;
  }
  return check_budget(source, sample, why);
}

// Counts and names the bad samples of a step, and does with them what on_error says.
Status DatasetLoader::settle_bad(Step& step) {
  std::sort(step.bad.begin(), step.bad.end(),
            [](const BadPlace& a, const BadPlace& b) { return a.place < b.place; });
  for (const BadPlace& bad : step.bad) count_bad(bad.part, bad.sample, bad.status);
  const BadPlace& first = step.bad.front();
  if (spec_.on_error == OnError::raise) return first.status.at(name_of(first.part, first.sample));
  PACKTRAIN_TRY(check_budget(first.part, first.sample, first.status));
  dropped_.assign(step.filling().size(), false);
  bool any = false;
  for (const BadPlace& bad : step.bad) {
    if (bad.replaced) continue;
    dropped_[bad.place] = true;
    any = true;
    if (spec_.on_error != OnError::replace) continue;
    const std::string name = name_of(bad.part, bad.sample);
    if (bad.with_its_batch) return bad.status.at(name);
    return Status(bad.status.code(), bad.status.message() + "; the samples drawn in its place are bad too")
        .at(name);
  }
  if (any) step.filling().drop(dropped_);
  return {};
}

Result<BatchPtr> DatasetLoader::next(const std::function<bool()>& go_on) {
  PACKTRAIN_TRY(here());
  if (delivered_ == steps_ || !engine_) return BatchPtr();
  const auto asked = Clock::now();
  double waited = 0;
  PACKTRAIN_ASSIGN(step, engine_->take(go_on, waited));
  ++delivered_;
  consumed_ = step->consumed_after;
  Status status;
  if (!step->bad.empty()) status = settle_bad(*step);
  BatchPtr batch = std::move(step->batch);
  {
    Lock lock(mutex_);
    if (!first_asked_) first_asked_ = asked;
    report_.seconds_waited += waited;
    report_.seconds = std::chrono::duration<double>(Clock::now() - *first_asked_).count();
    if (status.ok()) {
      ++report_.batches;
      report_.samples += batch->size();
    }
  }
  engine_->recycle(std::move(step));
  if (!status.ok()) return status;
  return batch;
}

OrderState DatasetLoader::state() const {
  const OrderSpec& order = order_->spec();
  OrderState state;
  set_identity(spec_, state);
  state.kind = order.kind;
  state.seed = order.seed;
  state.epoch = epoch_;
  state.consumed = consumed_;
  state.global_batch = order.global_batch;
  if (order.kind == OrderKind::streams) {
    state.chains = order.chains;
    state.window_bytes = order.window_bytes;
    state.piece_bytes = order.piece_bytes;
  }
  return state;
}

LoadReport DatasetLoader::report() const {
  Lock lock(mutex_);
  LoadReport report = report_;
  EngineCounts counts = earlier_;
  if (engine_) {
    counts += engine_->counts();
    report.memory = engine_->read_ahead_held();
  }
  report.bytes = counts.bytes_read;
  report.read_wait = counts.read_wait;
  report.decode = counts.decode;
  report.blocked = counts.blocked;
  report.warnings = counts.warnings;
  report.threads = limits_.threads;
  report.prefetch = limits_.open_steps;
  report.memory += pool_->held();
  return report;
}

// Beyond these, a number is a slip: more threads than cores only wait, and each holds memory.
constexpr uint32_t kMostThreads = 1024, kMostThreadsACore = 16, kMostPrefetch = 1 << 16;

Status check_amounts(const LoadSpec& spec, uint32_t cores) {
  const uint64_t threads = std::max<uint64_t>(kMostThreads, uint64_t{kMostThreadsACore} * cores);
  if (spec.threads > threads)
    return Status(Code::invalid, "threads= is at most " + count_in_words(threads) + " here, not " +
                                     count_in_words(spec.threads) + "; more than there are cores, " +
                                     count_in_words(cores) + ", seldom help");
  if (spec.prefetch > kMostPrefetch)
    return Status(Code::invalid, "prefetch= is at most " + count_in_words(kMostPrefetch) + " batches, not " +
                                     count_in_words(spec.prefetch));
  return {};
}

EngineLimits choose_limits(const LoadSpec& spec, uint32_t cores) {
  EngineLimits limits;
  limits.threads = spec.threads != 0 ? spec.threads : cores;
  const bool raw = !spec.image && spec.delivers_bytes();
  limits.readers = raw ? std::clamp<uint32_t>(limits.threads, 1, 4) : 1;
  const uint64_t batch = spec.order.global_batch / spec.order.world;
  limits.batch_bytes = std::max<uint64_t>(batch * bytes_a_sample(spec), 1);
  limits.open_steps =
      spec.prefetch != 0
          ? spec.prefetch
          : static_cast<uint32_t>(std::clamp<uint64_t>(kLeastAhead / limits.batch_bytes, 2, kMostAhead));
  limits.planned_steps = limits.open_steps + kStepsReadAhead;
  limits.read_ahead = lies_far(spec) ? kReadAheadFar : kReadAheadNear;
  return limits;
}

// What is read and not yet used, at most.
uint64_t bytes_ahead(const LoadSpec& spec, const EngineLimits& limits) {
  if (spec.order.kind != OrderKind::streams) return limits.read_ahead;
  // This rank's part of the window: pieces stay until their last sample is used.
  uint64_t all = 0;
  for (const StreamShard& shard : spec.order.shards) all += shard.bytes;
  return std::min(spec.order.window_bytes, all) / spec.order.world;
}

MemoryNeeds needs_of(const LoadSpec& spec, const EngineLimits& limits) {
  MemoryNeeds needs;
  needs.batch_bytes = limits.batch_bytes;
  needs.batches = uint64_t{limits.open_steps} + 2;  // those ahead, one with the user, one being asked for
  needs.read_ahead = bytes_ahead(spec, limits);
  needs.threads = limits.threads;
  needs.images =
      static_cast<uint32_t>((spec.image ? 1 : 0) +
                            std::count_if(spec.values.begin(), spec.values.end(), [](const ValueSpec& value) {
                              return value.kind == ValueKind::image;
                            }));
  return needs;
}

}  // namespace

Result<std::unique_ptr<Loader>> Loader::make(LoadSpec spec) {
  PACKTRAIN_TRY(check_spec(spec));
  PACKTRAIN_ASSIGN(order, make_order(spec));
  const Grant grant = granted();
  PACKTRAIN_TRY(check_amounts(spec, grant.cores));
  EngineLimits limits = choose_limits(spec, grant.cores);
  const uint64_t memory = spec.memory != 0
                              ? spec.memory
                              : grant.memory_available / 2 / std::max<uint32_t>(spec.processes_here, 1);
  PACKTRAIN_ASSIGN(plan, plan_memory(needs_of(spec, limits), memory, spec.memory != 0));
  limits.memory = plan;
  spec.memory = memory;
  return std::unique_ptr<Loader>(std::make_unique<DatasetLoader>(std::move(spec), std::move(order), limits));
}

}  // namespace packtrain
