#include "pack/task.h"

#include <chrono>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/process_token.h"
#include "base/threads.h"
#include "base/words.h"

namespace packtrain {
namespace {

constexpr auto kBeat = std::chrono::seconds(5);
constexpr std::string_view kTemporary = ".tmp-";

}  // namespace

Status remove_dead_parts(Storage& storage, const std::string& folder, std::string_view own) {
  std::vector<std::string> dead;
  PACKTRAIN_TRY(storage.list(folder, [&](FolderEntry&& entry) {
    const size_t at = entry.name.rfind(kTemporary);
    if (at == std::string::npos) return true;
    const std::string_view token = std::string_view(entry.name).substr(at + kTemporary.size());
    if (token == own || token_is_dead(token)) dead.push_back(std::move(entry.name));
    return true;
  }));
  for (const std::string& name : dead) {
    if (Status status = remove_tree(storage, path_below(folder, name));
        !status.ok() && status.code() != Code::not_found) {
      return status;
    }
  }
  return {};
}

std::string process_at_work(Storage& storage, const std::string& folder) {
  std::string worker;
  (void)storage.list(folder, [&](FolderEntry&& entry) {
    const size_t at = entry.name.rfind(kTemporary);
    if (at == std::string::npos) return true;
    const std::string token = entry.name.substr(at + kTemporary.size());
    const size_t host = token.find('-'), process = token.find('-', host + 1);
    if (host == token.npos || process == token.npos || token_is_dead(token)) return true;
    worker = "process " + token.substr(host + 1, process - host - 1) + " on host " + token.substr(0, host);
    return false;
  });
  return worker;
}

struct Heartbeat::State {
  Storage& storage;
  std::string path;
  Mutex mutex;
  std::condition_variable changed;
  bool over GUARDED_BY(mutex) = false;
  Status started;
  Threads threads;
};

Heartbeat::Heartbeat(Storage& storage, std::string path)
    : state_(new State{storage, std::move(path), {}, {}, false, {}, {}}) {
  State* state = state_.get();
  state->started = state->threads.start("pack-life", [state] {
    WriteOptions options;
    options.durable = false;
    options.replace = true;
    options.token = process_token();
    for (uint64_t beat = 0;; ++beat) {
      const std::string text = options.token + " " + std::to_string(beat) + "\n";
      // A beat that cannot be written is missed by those who wait; the work itself will say why.
      (void)write_whole(state->storage, state->path, as_bytes(text), options);
      Lock lock(state->mutex);
      if (!state->over) lock.wait_for(state->changed, kBeat);
      if (state->over) return;
    }
  });
}

const Status& Heartbeat::started() const { return state_->started; }

Heartbeat::~Heartbeat() {
  {
    Lock lock(state_->mutex);
    state_->over = true;
    state_->changed.notify_all();
  }
  state_->threads.join();
  (void)state_->storage.remove(
      state_->path);  // another's beat may have replaced it; it comes back with the next
}

Result<bool> wait_for_file(Storage& storage, const std::string& path, const std::string& life,
                           double patience_seconds, const std::function<bool()>& go_on) {
  std::string last;
  auto last_change = std::chrono::steady_clock::now();
  auto pause = std::chrono::milliseconds(20);
  while (true) {
    auto info = storage.stat(path);
    if (info.ok()) return true;
    if (info.status().code() != Code::not_found) return info.status();
    auto read = read_whole(storage, life);  // may vanish at any moment
    std::string beat = read.ok() ? std::move(*read) : std::string();
    const auto now = std::chrono::steady_clock::now();
    if (beat != last) {
      last = std::move(beat);
      last_change = now;
    }
    if (std::chrono::duration<double>(now - last_change).count() > patience_seconds) return false;
    if (go_on && !go_on())
      return Status(Code::stopped, "stopped while waiting for the plan; run the same command again");
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(1000));  // polite to a shared filesystem
  }
}

}  // namespace packtrain
