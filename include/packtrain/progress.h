// How long work tells its caller where it is, and how the caller stops it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace packtrain {

struct ProgressEvent {
  std::string_view phase;               // "scan", "write", "verify", …
  uint64_t items = 0, items_total = 0;  // total 0: not known yet
  uint64_t bytes = 0, bytes_total = 0;
  std::string_view unit = "samples";  // what an item is: "files", "samples", "members"
};

// Called from one thread at a time, at most about ten times a second. Returning false stops the
// work at the next safe point with Code::stopped. May be empty.
using Progress = std::function<bool(const ProgressEvent&)>;

}  // namespace packtrain
