#include "turns.h"

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "bind.h"

namespace packtrain::bind {
namespace {

struct AllLoaders {
  std::mutex mutex;
  std::vector<std::weak_ptr<SharedLoader>> loaders;
  std::atomic<bool> leaving = false;
  std::thread::id leaver;
};

// Never destroyed: threads that have stayed behind may look at it until the process is gone.
AllLoaders& all() {
  static auto* loaders = new AllLoaders;
  return *loaders;
}

bool must_stay() { return all().leaving.load() && std::this_thread::get_id() != all().leaver; }

[[noreturn]] void stay() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

std::shared_ptr<SharedLoader> SharedLoader::make(std::unique_ptr<Loader> loader) {
  std::shared_ptr<SharedLoader> shared(new SharedLoader(std::move(loader)));
  std::lock_guard lock(all().mutex);
  std::erase_if(all().loaders, [](const auto& one) { return one.expired(); });
  all().loaders.push_back(shared);
  return shared;
}

void SharedLoader::leave_all() {
  std::vector<std::shared_ptr<SharedLoader>> loaders;
  {
    std::lock_guard lock(all().mutex);
    all().leaver = std::this_thread::get_id();
    all().leaving.store(true);
    for (const auto& one : all().loaders) {
      if (auto loader = one.lock()) loaders.push_back(std::move(loader));
    }
  }
  for (const auto& loader : loaders) loader->stop();
}

Status SharedLoader::begin_call() {
  if (all().leaving.load())
    return Status(Code::invalid, "the interpreter is ending: nothing is loaded any more");
  std::lock_guard lock(mutex_);
  if (under_way_) {
    return Status(
        Code::invalid,
        "the loader is in the middle of another call, of another thread or beneath a signal handler; "
        "use it from one thread at a time, or make one for each");
  }
  under_way_ = true;
  caller_ = std::this_thread::get_id();
  return {};
}

void SharedLoader::end_call() {
  for (;;) {
    if (stopping_.exchange(false)) loader_->stop();
    std::lock_guard lock(mutex_);
    if (stopping_.load()) continue;  // wanted since
    under_way_ = false;
    ended_.notify_all();
    return;
  }
}

Status SharedLoader::start(uint64_t epoch, uint64_t consumed) {
  if (Status begun = begin_call(); !begun.ok()) {
    if (must_stay()) stay();
    return begun;
  }
  Status status = loader_->start(epoch, consumed);
  end_call();
  if (must_stay()) stay();
  return status;
}

void SharedLoader::stop() {
  std::unique_lock lock(mutex_);
  if (under_way_) {
    stopping_.store(true);
    if (caller_ == std::this_thread::get_id()) return;
    ended_.wait(lock, [this] { return !under_way_; });
    return;
  }
  under_way_ = true;
  caller_ = std::this_thread::get_id();
  lock.unlock();
  loader_->stop();
  end_call();
}

Result<BatchPtr> SharedLoader::next(bool& interrupted) {
  if (Status begun = begin_call(); !begun.ok()) {
    // Asked after the refusal: the end may have come in between, and its stop() is what is under way then.
    if (must_stay()) {
      nb::gil_scoped_release free;
      stay();
    }
    return begun;
  }
  const std::function<bool()> go_on = [&] {
    if (stopping_.load()) return false;
    nb::gil_scoped_acquire held;
    interrupted = PyErr_CheckSignals() != 0;
    return !interrupted && !stopping_.load();
  };
  std::optional<Result<BatchPtr>> result;
  // A batch that is there is taken at once: to give up the GIL and get it back costs more than that.
  if (loader_->is_ready()) {
    result.emplace(loader_->next());
    end_call();
  } else {
    nb::gil_scoped_release free;
    result.emplace(loader_->next(go_on));
    end_call();
    if (must_stay()) stay();
  }
  return std::move(*result);
}

}  // namespace packtrain::bind
