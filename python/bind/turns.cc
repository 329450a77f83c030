#include "turns.h"

#include <unistd.h>

#include <functional>
#include <optional>
#include <vector>

#include "gil.h"

namespace packtrain::bind {
namespace {

struct AllLoaders {
  const pid_t process = ::getpid();
  std::mutex mutex;
  std::vector<std::weak_ptr<SharedLoader>> loaders;
};

// Never destroyed: threads that have stayed behind may look at it until the process is gone. A child of
// fork() has its own: the parent's may be locked for ever, and its loaders are not the child's to stop.
AllLoaders& all() {
  static std::atomic<AllLoaders*> loaders = new AllLoaders;
  AllLoaders* known = loaders.load();
  if (known->process == ::getpid()) return *known;
  auto* own = new AllLoaders;
  if (loaders.compare_exchange_strong(known, own)) return *own;
  delete own;
  return *known;
}

}  // namespace

std::shared_ptr<SharedLoader> SharedLoader::make(std::unique_ptr<Loader> loader) {
  std::shared_ptr<SharedLoader> shared(new SharedLoader(std::move(loader)));
  std::lock_guard lock(all().mutex);
  std::erase_if(all().loaders, [](const auto& one) { return one.expired(); });
  all().loaders.push_back(shared);
  return shared;
}

SharedLoader::~SharedLoader() {
  // Its destructor would wait for threads of the parent that wait in it.
  if (!loader_->is_of_this_process()) (void)turn_.release();
}

void SharedLoader::leave_all() {
  begin_leaving();
  std::vector<std::shared_ptr<SharedLoader>> loaders;
  {
    std::lock_guard lock(all().mutex);
    for (const auto& one : all().loaders) {
      if (auto loader = one.lock()) loaders.push_back(std::move(loader));
    }
  }
  for (const auto& loader : loaders) loader->stop();
}

Status SharedLoader::begin_call() {
  if (is_leaving()) return Status(Code::invalid, "the interpreter is ending: nothing is loaded any more");
  std::lock_guard lock(turn_->mutex);
  if (turn_->under_way) {
    return Status(
        Code::invalid,
        "the loader is in the middle of another call, of another thread or beneath a signal handler; "
        "use it from one thread at a time, or make one for each");
  }
  turn_->under_way = true;
  turn_->caller = std::this_thread::get_id();
  return {};
}

void SharedLoader::end_call() {
  for (;;) {
    if (turn_->stopping.exchange(false)) loader_->stop();
    std::lock_guard lock(turn_->mutex);
    if (turn_->stopping.load()) continue;  // wanted since
    turn_->under_way = false;
    turn_->ended.notify_all();
    return;
  }
}

Status SharedLoader::start(uint64_t epoch, uint64_t consumed, std::optional<uint64_t> then) {
  if (!loader_->is_of_this_process()) return loader_->start(epoch, consumed, then);  // says why not
  if (Status begun = begin_call(); !begun.ok()) return begun;
  Status status = loader_->start(epoch, consumed, then);
  end_call();
  return status;
}

void SharedLoader::stop() {
  if (!loader_->is_of_this_process()) return;
  std::unique_lock lock(turn_->mutex);
  if (turn_->under_way) {
    turn_->stopping.store(true);
    if (turn_->caller == std::this_thread::get_id()) return;
    turn_->ended.wait(lock, [this] { return !turn_->under_way; });
    return;
  }
  turn_->under_way = true;
  turn_->caller = std::this_thread::get_id();
  lock.unlock();
  loader_->stop();
  end_call();
}

Result<BatchPtr> SharedLoader::next(bool& interrupted) {
  if (!loader_->is_of_this_process()) return loader_->next();  // says why not
  if (Status begun = begin_call(); !begun.ok()) {
    // Asked after the refusal: the end may have come in between, and its stop() is what is under way then.
    if (is_leaving()) const WithoutGil free;
    return begun;
  }
  // A batch that is there is taken at once: to give up the GIL and get it back costs more than that, and
  // beside a thread that computes up to 5 ms.
  std::optional<Result<BatchPtr>> result = loader_->next_if_ready();
  if (result) {
    end_call();
  } else {
    const std::function<bool()> go_on = [&] {
      if (turn_->stopping.load()) return false;
      const nb::gil_scoped_acquire held;  // the end of the interpreter waits for this call to end
      interrupted = PyErr_CheckSignals() != 0;
      return !interrupted && !turn_->stopping.load();
    };
    const WithoutGil free;
    result.emplace(loader_->next(go_on));
    end_call();
  }
  note_place(*result);
  return std::move(*result);
}

std::optional<Result<BatchPtr>> SharedLoader::next_if_ready() {
  if (!loader_->is_of_this_process() || !begin_call().ok()) return std::nullopt;
  std::optional<Result<BatchPtr>> result = loader_->next_if_ready();
  end_call();
  if (result) note_place(*result);
  return result;
}

void SharedLoader::note_place(const Result<BatchPtr>& result) {
  if (result.ok() && *result) place_ = {(*result)->epoch(), (*result)->consumed()};
}

}  // namespace packtrain::bind
