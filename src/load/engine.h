// Engine: the threads between the order and the batches.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/fifo.h"
#include "base/mutex.h"
#include "base/threads.h"
#include "load/batch_pool.h"
#include "load/filler.h"
#include "load/memory_plan.h"
#include "load/planner.h"
#include "load/step.h"

namespace packtrain {

// How much is under way at once.
struct EngineLimits {
  uint32_t threads = 1;            // that decode
  uint32_t readers = 1;            // that read
  uint32_t reads_in_flight = 64;   // of each reader
  uint32_t open_steps = 2;         // steps that have a batch to fill
  uint64_t batch_bytes = 0;        // what a batch takes, about
  uint32_t planned_steps = 6;      // steps whose bytes are asked for
  uint64_t read_ahead = 64 << 20;  // bytes asked for and not decoded yet, beside the pieces of streams
  MemoryPlan memory;
  uint64_t mapped_bytes = 0;  // of shards whose samples are copied out of a mapping, at most
  bool far = false;           // each answer of the storage takes long
};

// What happened since the engine was made, over all its threads. A plain value.
struct EngineCounts {
  uint64_t bytes_read = 0;
  double read_wait = 0, decode = 0, blocked = 0;

  EngineCounts& operator+=(const EngineCounts& more) {
    bytes_read += more.bytes_read;
    read_wait += more.read_wait;
    decode += more.decode;
    blocked += more.blocked;
    return *this;
  }
};

// Runs from begin() until it dies. Readers ask the planner for steps and bring their bytes; decoding threads
// fill the batches of the open steps, earliest first; take() hands them out in order.
class Engine {
 public:
  Engine(const LoadSpec& spec, std::shared_ptr<const Order> order, std::shared_ptr<BatchPool> pool,
         ShardViews& views, const EngineLimits& limits);
  ~Engine();  // waits for reads in flight and for the samples that are being decoded
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Once; the arguments are those of Loader::start.
  Status begin(uint64_t epoch, uint64_t consumed, std::optional<uint64_t> then);
  // The next step, filled. Waits, as Loader::next does; `waited` tells how long. `spent`: one that was taken
  // before and is done with, or null, whose memory is used again.
  Result<std::unique_ptr<Step>> take(const std::function<bool()>& go_on, double& waited,
                                     std::unique_ptr<Step>& spent);
  std::unique_ptr<Step> take_if_ready(std::unique_ptr<Step>& spent);  // null: it would have to wait
  bool is_ready() const;                                              // whether take() need not wait
  EngineCounts counts() const;
  uint64_t read_ahead_held() const { return extents_.held(); }

 private:
  struct Decoder {
    std::unique_ptr<Filler> filler;
    std::atomic<uint64_t> bytes_read = 0;
    std::atomic<double> read_wait = 0, decode = 0, blocked = 0;
  };

  void run(const std::function<void()>& body);
  void read_all();
  void decode_all(Decoder& decoder);
  bool may_plan() REQUIRES(mutex_);
  bool should_plan() REQUIRES(mutex_);
  void plan_one() REQUIRES(mutex_);
  void open_steps() REQUIRES(mutex_);
  Status open(Step& step) REQUIRES(mutex_);
  bool bring(Extent& extent);
  void make_ready(Task* task) REQUIRES(mutex_);
  size_t take_extents(std::vector<Extent*>& into, size_t most) REQUIRES(mutex_);
  bool is_stuck() REQUIRES(mutex_);
  void hand_over(Extent& extent) REQUIRES(mutex_);
  bool front_is_done() const REQUIRES(mutex_) { return !steps_.empty() && steps_.front()->done(); }
  // The first step. `hurry`: a decoding thread has to be told that there is room, which it does not see
  // itself.
  std::unique_ptr<Step> pop_front(bool& hurry) REQUIRES(mutex_);
  Task* take_tasks() REQUIRES(mutex_);
  void pad(Step& step, std::vector<BadPlace>& bad);
  void arrived(std::span<Read* const> finished);

  const LoadSpec& spec_;
  const std::shared_ptr<const Order> order_;
  const std::shared_ptr<BatchPool> pool_;
  const EngineLimits limits_;
  const size_t tasks_at_once_;
  const bool pads_;  // some fields, once a step is filled
  ExtentPool extents_;

  mutable Mutex mutex_;
  std::condition_variable reader_wakes_, decoder_wakes_, consumer_wakes_;
  Planner planner_;  // used by the thread that set planning_
  bool planning_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;  // no more steps will come
  bool stopping_ GUARDED_BY(mutex_) = false;
  Fifo<std::unique_ptr<Step>> steps_ GUARDED_BY(mutex_);  // planned, in order; the first may be taken
  size_t open_ GUARDED_BY(mutex_) = 0;                    // how many of them are open: the first ones
  // At first one alone: nobody is served by a second batch that takes cores from the first.
  size_t may_be_open_ GUARDED_BY(mutex_) = 1;
  bool may_have_room_ GUARDED_BY(mutex_) = false;  // for a step to be opened: one was taken
  bool looking_out_ GUARDED_BY(mutex_) = false;    // one of the decoding threads is, for room
  Status no_batch_ GUARDED_BY(mutex_);             // why the next step cannot be opened
  Status failure_ GUARDED_BY(mutex_);              // why a thread has ended, so that no batch will come
  std::vector<std::unique_ptr<Step>> idle_steps_ GUARDED_BY(mutex_);
  Fifo<Extent*> to_read_ GUARDED_BY(mutex_);
  size_t reading_ GUARDED_BY(mutex_) = 0;    // extents on their way
  bool is_first_ GUARDED_BY(mutex_) = true;  // the first batch is being made
  size_t filling_ GUARDED_BY(mutex_) = 0;    // decoding threads with tasks
  std::atomic<uint64_t> bytes_read_ = 0;

  std::vector<std::unique_ptr<Decoder>> decoders_;
  Threads threads_;  // last: joined before anything else goes
};

}  // namespace packtrain
