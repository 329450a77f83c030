#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/words.h"
#include "io/fork.h"
#include "load/engine.h"
#include "load/limits.h"
#include "load/parts.h"
#include "load/shard_views.h"
#include "packtrain/load.h"
#include "packtrain/place.h"

namespace packtrain {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostNamed = 100;   // bad samples that the report names
constexpr uint64_t kMappedPart = 8;  // of the memory granted, so much may be shards that are mapped

// Counters have one writer, the thread whose turn it is, and are read by any.
template <class T>
void increase(std::atomic<T>& counter, T by) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

class DatasetLoader final : public Loader {
 public:
  DatasetLoader(LoadSpec spec, std::shared_ptr<const Order> order, const EngineLimits& limits)
      : spec_(std::move(spec)),
        order_(std::move(order)),
        limits_(limits),
        pool_(std::make_shared<BatchPool>(limits.memory.batches)),
        views_(std::make_unique<ShardViews>(limits.mapped_bytes)),
        born_in_(fork_generation()) {}

  ~DatasetLoader() override {
    // In a child of fork() the threads are not there: joining them would wait for ever.
    if (is_of_this_process()) return;
    (void)engine_.release();
    (void)views_.release();  // whose lock a thread may have held when the process was copied
  }
  bool is_of_this_process() const override { return fork_generation() == born_in_; }

  Status start(uint64_t epoch, uint64_t consumed, std::optional<uint64_t> then) override;
  void stop() override;
  Result<BatchPtr> next(const std::function<bool()>& go_on) override;
  std::optional<Result<BatchPtr>> next_if_ready() override;
  Status note_bad(uint32_t source, uint64_t index, const Status& why) override;
  bool is_ready() const override {
    return !is_of_this_process() || delivered_ == steps_ || !engine_ || engine_->is_ready();
  }
  uint64_t steps() const override { return steps_; }
  uint64_t steps_of_whole_epoch() const override { return order_->steps(0, spec_.rank); }
  uint64_t consumed() const override { return consumed_; }
  uint64_t epoch() const override { return epoch_; }
  OrderState state() const override;
  Status check(const OrderState& state) const override;
  LoadReport report() const override;
  const LoadSpec& spec() const override { return spec_; }

 private:
  Status here() const {
    if (is_of_this_process()) [[likely]]
      return {};
    return Status(
        Code::invalid,
        "this loader belongs to the process that made it, and does not work after fork(): make a new "
        "one in the child");
  }
  void end_engine();
  std::string name_of(uint32_t part, uint64_t sample) const;
  Status at_sample(const Status& status, uint32_t part, uint64_t sample) const;
  void count_bad(uint32_t part, uint64_t sample, const Status& why);
  Status check_budget(uint32_t part, uint64_t sample, const Status& why) const;
  Status settle_bad(Step& step);
  Result<bool> is_asked();
  Result<BatchPtr> deliver(std::unique_ptr<Step> step, double waited);

  const LoadSpec spec_;
  const std::shared_ptr<const Order> order_;
  const EngineLimits limits_;
  const std::shared_ptr<BatchPool> pool_;
  std::unique_ptr<ShardViews> views_;
  const uint64_t born_in_;  // the process, by its fork_generation()
  std::unique_ptr<Engine> engine_;
  uint64_t epoch_ = 0, consumed_ = 0, steps_ = 0, delivered_ = 0;
  std::optional<uint64_t> then_;  // the epoch that the engine goes on with, if it is not the next one
  uint64_t errors_in_epoch_ = 0;

  mutable Mutex mutex_;
  uint64_t errors_ GUARDED_BY(mutex_) = 0, replaced_ GUARDED_BY(mutex_) = 0;
  std::vector<BadLoad> bad_ GUARDED_BY(mutex_);  // the first of them
  EngineCounts earlier_ GUARDED_BY(mutex_);      // of engines that are gone
  // Without the lock: what every batch counts.
  std::atomic<uint64_t> batches_ = 0, samples_ = 0, warnings_ = 0;
  std::atomic<double> seconds_waited_ = 0;
  std::atomic<Clock::time_point> first_asked_{Clock::time_point()}, last_given_{Clock::time_point()};
  std::unique_ptr<Step> spent_;  // given to the engine with the next call
  std::vector<bool> dropped_;
};

Status DatasetLoader::start(uint64_t epoch, uint64_t consumed, std::optional<uint64_t> then) {
  PACKTRAIN_TRY(here());
  if (consumed > order_->spec().samples) {
    return Status(Code::invalid, "the state says that " + count_in_words(consumed) +
                                     " samples are done, but there are only " +
                                     count_in_words(order_->spec().samples));
  }
  // The engine goes on into the next epoch by itself.
  const bool goes_on =
      engine_ && delivered_ == steps_ && consumed == 0 && then == then_ && epoch == then.value_or(epoch_ + 1);
  epoch_ = epoch;
  then_ = then;
  consumed_ = consumed;
  delivered_ = 0;
  steps_ = order_->steps(consumed, spec_.rank);
  errors_in_epoch_ = 0;
  if (goes_on) return {};
  end_engine();
  if (steps_ == 0) return {};
  pool_->rest(false);
  auto engine = std::make_unique<Engine>(spec_, order_, pool_, *views_, limits_);
  PACKTRAIN_TRY(engine->begin(epoch, consumed, then));
  Lock lock(mutex_);
  engine_ = std::move(engine);
  return {};
}

void DatasetLoader::stop() {
  if (!is_of_this_process()) return;
  end_engine();
  pool_->rest(true);
  steps_ = delivered_;
}

// Its counts stay; its threads are joined without the lock, which report() may want meanwhile.
void DatasetLoader::end_engine() {
  std::unique_ptr<Engine> ended;
  spent_ = nullptr;
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

// A read that failed names its sample already, where the dataset counts as the loader does.
Status DatasetLoader::at_sample(const Status& status, uint32_t part, uint64_t sample) const {
  const LoadPart& of = spec_.parts[part];
  const auto key = of.dataset->key(sample);
  const std::string name =
      "sample " + std::to_string(sample) + (key.ok() ? " (" + printable(*key) + ")" : std::string());
  std::string where = status.where();
  const size_t at = of.first == 0 ? where.find(name) : where.npos;
  if (at == where.npos) return status.at(name_of(part, sample));
  where.replace(at, name.size(), name_of(part, sample));
  return Status(status.code(), status.message()).at(where);
}

void DatasetLoader::count_bad(uint32_t part, uint64_t sample, const Status& why) {
  ++errors_in_epoch_;
  Lock lock(mutex_);
  ++errors_;
  if (bad_.size() >= kMostNamed) return;
  const LoadPart& of = spec_.parts[part];
  const auto key = of.dataset->key(sample);
  bad_.push_back({part, static_cast<uint64_t>(of.index_of(sample)),
                  key.ok() ? std::string(*key) : std::string(), why.text()});
}

Status DatasetLoader::check_budget(uint32_t part, uint64_t sample, const Status& why) const {
  if (errors_in_epoch_ <= spec_.max_errors) return {};
  return Status(why.code(), why.message() + "; that makes " + counted(errors_in_epoch_, "bad sample") +
                                " in this epoch, more than max_errors allows")
      .at(name_of(part, sample));
}

Status DatasetLoader::note_bad(uint32_t source, uint64_t index, const Status& why) {
  PACKTRAIN_TRY(here());
  if (source >= spec_.parts.size() || index >= spec_.parts[source].samples)
    return Status(Code::invalid, "there is no such sample to be noted as bad");
  const uint64_t sample = spec_.parts[source].first + index;
  count_bad(source, sample, why);
  increase(samples_, ~uint64_t{0});  // one less
  return check_budget(source, sample, why);
}

// Counts and names the bad samples of a step, and does with them what on_error says.
Status DatasetLoader::settle_bad(Step& step) {
  std::sort(step.bad.begin(), step.bad.end(),
            [](const BadPlace& a, const BadPlace& b) { return a.place < b.place; });
  // Nothing is wrong with a sample whose shard cannot be opened for lack of descriptors.
  for (const BadPlace& bad : step.bad)
    if (bad.status.code() == Code::limit) return at_sample(bad.status, bad.part, bad.sample);
  for (const BadPlace& bad : step.bad) count_bad(bad.part, bad.sample, bad.status);
  const BadPlace& first = step.bad.front();
  if (spec_.on_error == OnError::raise) return at_sample(first.status, first.part, first.sample);
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
  Lock lock(mutex_);
  for (const BadPlace& bad : step.bad) replaced_ += bad.replaced ? 1 : 0;
  return {};
}

Result<BatchPtr> DatasetLoader::deliver(std::unique_ptr<Step> step, double waited) {
  ++delivered_;
  consumed_ = step->consumed_after;
  Status status = step->refused;
  if (status.ok() && !step->bad.empty()) status = settle_bad(*step);
  BatchPtr batch = std::move(step->batch);
  const uint64_t step_warnings = step->warnings;
  spent_ = std::move(step);
  if (waited > 0) increase(seconds_waited_, waited);
  last_given_.store(Clock::now(), std::memory_order_relaxed);
  if (!status.ok()) return status;
  increase<uint64_t>(batches_, 1);
  increase<uint64_t>(warnings_, step_warnings);
  increase<uint64_t>(samples_, batch->size());
  return batch;
}

// Whether there is anything to come; notes when it was first asked for.
Result<bool> DatasetLoader::is_asked() {
  PACKTRAIN_TRY(here());
  if (delivered_ == steps_ || !engine_) return false;
  if (first_asked_.load(std::memory_order_relaxed) == Clock::time_point())
    first_asked_.store(Clock::now(), std::memory_order_relaxed);
  return true;
}

std::optional<Result<BatchPtr>> DatasetLoader::next_if_ready() {
  const auto asked = is_asked();
  if (!asked.ok()) return asked.status();
  if (!*asked) return BatchPtr();
  std::unique_ptr<Step> step = engine_->take_if_ready(spent_);
  if (!step) return std::nullopt;
  return deliver(std::move(step), 0);
}

Result<BatchPtr> DatasetLoader::next(const std::function<bool()>& go_on) {
  PACKTRAIN_ASSIGN(asked, is_asked());
  if (!asked) return BatchPtr();
  double waited = 0;
  PACKTRAIN_ASSIGN(step, engine_->take(go_on, waited, spent_));
  return deliver(std::move(step), waited);
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

Status DatasetLoader::check(const OrderState& state) const {
  const OrderState now = this->state();
  OrderState then = state;
  const LoadPart& part = spec_.parts.front();
  const auto is_all = [&](const std::string& name) {
    const auto& splits = part.dataset->manifest().splits;
    return name.empty() || std::any_of(splits.begin(), splits.end(), [&](const SplitSpec& split) {
             return split.name == name && split.count == part.dataset->samples();
           });
  };
  // By its name or without, these are the same samples.
  if (!spec_.mixed && part.is_whole() && is_all(then.split)) then.split = now.split;
  return then.check(now);
}

LoadReport DatasetLoader::report() const {
  if (!is_of_this_process()) return {};
  Lock lock(mutex_);
  LoadReport report;
  report.errors = errors_;
  report.replaced = replaced_;
  report.warnings = warnings_.load(std::memory_order_relaxed);
  report.bad = bad_;
  report.samples = samples_.load(std::memory_order_relaxed);
  report.batches = batches_.load(std::memory_order_relaxed);
  report.seconds_waited = seconds_waited_.load(std::memory_order_relaxed);
  const Clock::time_point last = last_given_.load(std::memory_order_relaxed);
  if (last != Clock::time_point())
    report.seconds =
        std::chrono::duration<double>(last - first_asked_.load(std::memory_order_relaxed)).count();
  EngineCounts counts = earlier_;
  if (engine_) {
    counts += engine_->counts();
    report.memory = engine_->read_ahead_held();
  }
  report.bytes = counts.bytes_read;
  report.read_wait = counts.read_wait;
  report.decode = counts.decode;
  report.blocked = counts.blocked;
  report.threads = limits_.threads;
  report.prefetch = limits_.open_steps;
  report.memory += pool_->held();
  return report;
}

}  // namespace

Result<std::unique_ptr<Loader>> Loader::make(LoadSpec spec) {
  PACKTRAIN_TRY(check_spec(spec));
  const Grant grant = granted();
  PACKTRAIN_TRY(check_amounts(spec, grant.cores));
  EngineLimits limits = choose_limits(spec, grant.cores);
  const bool asked_for = spec.memory != 0;
  const uint64_t memory =
      asked_for ? spec.memory : grant.memory_available / 2 / std::max<uint32_t>(spec.processes_here, 1);
  PACKTRAIN_ASSIGN(order, make_order_within(spec, limits, memory));
  // A loader that takes another's place asks for memory that is still the other's.
  MemoryLimits may_take{.memory = memory, .asked_for = asked_for};
  if (grant.memory != 0) {  // it is known
    may_take.most = spec.takes_over ? std::max(grant.memory_most, memory) : grant.memory_most;
    may_take.most_from = grant.memory_from;
  }
  PACKTRAIN_ASSIGN(plan, plan_memory(needs_of(spec, *order, limits), may_take));
  limits.memory = plan;
  limits.mapped_bytes = grant.memory / kMappedPart / std::max<uint32_t>(spec.processes_here, 1);
  spec.memory = memory;
  return std::unique_ptr<Loader>(std::make_unique<DatasetLoader>(std::move(spec), std::move(order), limits));
}

}  // namespace packtrain
