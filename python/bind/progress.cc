// include/packtrain/progress.h: long calls, and what their callbacks get.
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>

#include "base/threads.h"
#include "gil.h"
#include "report.h"

namespace packtrain::bind {

namespace {

// How long a signal may wait for the calling thread to look.
constexpr std::chrono::milliseconds kLongestWait{50};

// Where the thread that works and the thread that called meet. Thread-safe.
class Conversation {
 public:
  // For the worker: the newest event replaces one that was not taken yet. False: stop.
  bool tell(const ProgressEvent& event) {
    const std::lock_guard lock(mutex_);
    news_ = ProgressReport{.phase = std::string(event.phase),
                           .items = event.items,
                           .items_total = event.items_total,
                           .bytes = event.bytes,
                           .bytes_total = event.bytes_total,
                           .unit = std::string(event.unit)};
    changed_.notify_one();
    return !stop_;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_one();
  }

  struct Turn {
    std::optional<ProgressReport> news;
    bool ended = false;
  };
  // For the caller: comes back at news, at the end, or after kLongestWait.
  Turn listen() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLongestWait, [&] { return ended_ || news_.has_value(); });
    return {std::exchange(news_, std::nullopt), ended_};
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::optional<ProgressReport> news_;
  bool ended_ = false, stop_ = false;
};

}  // namespace

void run_long(const ProgressCallback& callback, const std::function<void(const Progress&)>& work) {
  Conversation conversation;
  std::exception_ptr raised;
  Status started;
  {
    const WithoutGil free;
    Threads worker;
    started = worker.start("packtrain-call", [&] {
      work([&](const ProgressEvent& event) { return conversation.tell(event); });
      conversation.end();
    });
    for (bool ended = !started.ok(); !ended;) {
      auto turn = conversation.listen();
      ended = turn.ended;
      if (raised) continue;
      const WithGil held;
      try {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (turn.news && callback && (*callback)(nb::cast(std::move(*turn.news))).is(nb::handle(Py_False)))
          conversation.stop();
      } catch (const nb::python_error&) {
        raised = std::current_exception();
        conversation.stop();
      }
    }
  }
  check(started);
  if (raised) std::rethrow_exception(raised);
}

void bind_progress(nb::module_& module) {
  ReportClass<ProgressReport>(module, "Progress",
                              "Where a long call is. A callback that returns False stops the call.")
      .field("phase", &ProgressReport::phase, "What is being done: 'scan', 'write', 'verify', ...")
      .field("items", &ProgressReport::items, "How many are done.")
      .field("items_total", &ProgressReport::items_total, "Of how many; 0 while that is not known.")
      .field("bytes", &ProgressReport::bytes, "How many bytes are done.")
      .field("bytes_total", &ProgressReport::bytes_total, "Of how many; 0 while that is not known.")
      .field("unit", &ProgressReport::unit, "What an item is: 'files', 'samples', 'members'.");
}

}  // namespace packtrain::bind
