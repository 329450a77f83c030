#include "load/memory_plan.h"

#include <algorithm>

#include "base/words.h"

namespace packtrain {
namespace {

// Of what nobody needs, one part in so many is for large images, the rest for batches that the user keeps.
constexpr uint64_t kShareOfImages = 2;

}  // namespace

uint64_t rounded_up(uint64_t bytes) {
  uint64_t unit = 1;
  while (bytes / unit >= 100) unit *= 10;
  return (bytes + unit - 1) / unit * unit;
}

uint64_t MemoryPlan::memory_for_image(uint64_t bytes) const {
  const uint64_t more = bytes > kImageMemory ? bytes - kImageMemory : 0;
  // Shares are rounded down.
  return needed + (more + 1) * decoders * kShareOfImages;
}

Result<MemoryPlan> plan_memory(const MemoryNeeds& needs, const MemoryLimits& limits) {
  MemoryPlan plan;
  plan.needed = needs.sum();
  plan.most = limits.most;
  const bool is_beyond = limits.memory > limits.most;
  const uint64_t memory = std::min(limits.memory, limits.most);
  if (plan.needed > memory) {
    return Status(Code::no_room,
                  "loading needs about " + bytes_in_words(plan.needed) + " (" +
                      std::to_string(needs.batches) + " batches of " + bytes_in_words(needs.batch_bytes) +
                      " and " + bytes_in_words(needs.read_ahead) + " to read ahead), but only " +
                      bytes_in_words(memory) +
                      (limits.asked_for && !is_beyond ? " are allowed by memory=" : " may be taken") + "; " +
                      needs.advice(plan.needed, limits.most));
  }
  // Whoever gives a process more than it can have would see it killed in the middle of an epoch.
  if (is_beyond) {
    return Status(Code::no_room, "memory=" + std::to_string(limits.memory) + " is more than the " +
                                     bytes_in_words(limits.most) +
                                     " that may be taken here (the limit is that of " + limits.most_from +
                                     ", less what is held already): give at most memory=" +
                                     std::to_string(limits.most) + ", or ask for more memory for the job");
  }
  plan.threads = std::max<uint32_t>(needs.threads, 1);
  plan.decoders = plan.threads * std::max<uint32_t>(needs.images, 1);
  plan.read_ahead = needs.read_ahead;
  plan.images = needs.images > 0 ? (memory - plan.needed) / kShareOfImages : 0;
  plan.batches = memory - plan.read_ahead - plan.images;
  return plan;
}

}  // namespace packtrain
