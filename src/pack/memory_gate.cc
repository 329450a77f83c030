#include "pack/memory_gate.h"

#include <algorithm>

#include "base/words.h"
#include "packtrain/place.h"

namespace packtrain {
namespace {

constexpr uint64_t kLeastHeld = uint64_t{64} << 20, kMostHeld = uint64_t{1} << 30;

}  // namespace

Status fits_memory(uint64_t bytes) {
  const uint64_t left = granted().memory_available;
  if (left == 0 || bytes <= left) return {};
  return Status(Code::no_room,
                "a value unpacks to " + bytes_in_words(bytes) + ", and " + bytes_in_words(left) +
                    " of memory are left; give the job more, or leave the value out of the source "
                    "if it should not be that large");
}

uint64_t MemoryGate::usual_limit() {
  return std::clamp(granted().memory_available / 4, kLeastHeld, kMostHeld);
}

Result<MemoryGate::Hold> MemoryGate::hold(uint64_t bytes) {
  if (bytes < kSmall) return Hold();
  PACKTRAIN_TRY(fits_memory(bytes));
  Lock lock(mutex_);
  while (held_ > 0 && (bytes > limit_ || held_ > limit_ - bytes)) lock.wait(changed_);
  held_ += bytes;
  return Hold(this, bytes);
}

void MemoryGate::give_back(uint64_t bytes) {
  {
    Lock lock(mutex_);
    held_ -= bytes;
  }
  changed_.notify_all();
}

}  // namespace packtrain
