// Several processes that pack together: who plans, who waits, and what the dead left behind.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// Removes temporary files and folders in `folder` whose makers are gone, and those of the token `own`.
Status remove_dead_parts(Storage& storage, const std::string& folder, std::string_view own = {});

// "process 12 on host x", for one that has temporary files in `folder` and is not known to be gone; else "".
std::string process_at_work(Storage& storage, const std::string& folder);

// While it lives, a thread writes a growing number to `path` every few seconds, so that others see that
// someone is at work. Removed at the end.
class Heartbeat {
 public:
  Heartbeat(Storage& storage, std::string path);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  const Status& started() const;  // or why it does not beat

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Waits until `path` exists. False if it does not and the heartbeat at `life` has not changed for
// `patience_seconds`: whoever was to write it is gone.
Result<bool> wait_for_file(Storage& storage, const std::string& path, const std::string& life,
                           double patience_seconds, const std::function<bool()>& go_on);

}  // namespace packtrain
