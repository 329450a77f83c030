// Turns: who may use a loader now. Python's threads, its signal handlers and its end come at any moment; the
// loader serves one call at a time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "packtrain/load.h"

namespace packtrain::bind {

// A loader as Python has it. start() and next() are refused while another call is under way; stop() ends that
// call first, unless it comes from within it, by a signal handler: then that call does it. All without the
// GIL, but for next(), which gives it up where it waits. In a child of fork(), where a call that was under
// way never ends, nobody waits for it. Thread-safe.
class SharedLoader : public std::enable_shared_from_this<SharedLoader> {
 public:
  static std::shared_ptr<SharedLoader> make(std::unique_ptr<Loader> loader);
  ~SharedLoader();

  Status start(uint64_t epoch, uint64_t consumed, std::optional<uint64_t> then);
  // With the GIL. `interrupted`: a signal handler has raised.
  Result<BatchPtr> next(bool& interrupted);
  // With the GIL: what next() would give at once. Nothing if it would wait or be refused.
  std::optional<Result<BatchPtr>> next_if_ready();
  void stop();
  struct Place {
    uint64_t epoch = 0, consumed = 0;
  };
  const Place& place() const { return place_; }  // with the batch that was given last; with the GIL
  Loader& loader() { return *loader_; }          // for what may be asked at any moment
  const Loader& loader() const { return *loader_; }

  // The interpreter ends: every loader is stopped. A thread that is in a call, or comes with one, stays
  // there.
  static void leave_all();

 private:
  explicit SharedLoader(std::unique_ptr<Loader> loader) : loader_(std::move(loader)) {}
  Status begin_call();
  void end_call();
  void note_place(const Result<BatchPtr>& result);

  struct Turn {
    std::mutex mutex;
    std::condition_variable ended;
    bool under_way = false;              // a call
    std::thread::id caller;              // of that call
    std::atomic<bool> stopping = false;  // somebody wants that call to end
  };
  const std::unique_ptr<Loader> loader_;
  std::unique_ptr<Turn> turn_ = std::make_unique<Turn>();
  Place place_;  // guarded by the GIL
};

}  // namespace packtrain::bind
