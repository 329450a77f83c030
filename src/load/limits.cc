#include "load/limits.h"

#include <algorithm>

#include "base/words.h"
#include "load/parts.h"

namespace packtrain {
namespace {

constexpr uint64_t kLeastAhead = 16 << 20;  // bytes of batches that are worth making ahead
constexpr uint32_t kMostAhead = 16;         // batches
constexpr uint32_t kStepsReadAhead = 4;     // steps whose bytes are asked for before they can be decoded
// Encoded bytes that are on their way or wait to be decoded. A far filesystem answers late, and needs more.
constexpr uint64_t kReadAheadNear = 16 << 20, kReadAheadFar = 128 << 20;
// Beyond these, a number is a slip: more threads than cores only wait, and each holds memory.
constexpr uint32_t kMostThreads = 1024, kMostThreadsACore = 16, kMostPrefetch = 1 << 16;

// What is read and not yet used, at most. Pieces of streams stay until their last sample is used; the room
// for what comes next is beside that, and room for samples that are larger than others, and for gaps. Nothing
// here may depend on the node, since windows of streams follow from it.
uint64_t bytes_ahead(const Order& order, const EngineLimits& limits) {
  constexpr uint64_t kPartForGaps = 8;
  const uint64_t held = order.bytes_held();
  if (held == 0) return limits.read_ahead;
  return held + held / kPartForGaps + std::min(held, kReadAheadFar);
}

// A small window of large pieces would come from few places.
uint64_t piece_for(uint64_t window) {
  const uint64_t usual = OrderSpec().piece_bytes;
  return window < OrderSpec().window_bytes / 2 ? usual / 2 : usual;
}

// The memory= with which the order could be had, if its window were as small as it gets.
uint64_t least_memory(const LoadSpec& spec, const EngineLimits& limits) {
  LoadSpec least = spec;
  least.order.window_bytes = 1;
  least.order.piece_bytes = std::min(least.order.piece_bytes, piece_for(1));
  const auto order = make_order(least);
  return order.ok() ? needs_of(least, **order, limits).sum() : 0;
}

std::string advice_of(const LoadSpec& spec, const EngineLimits& limits, uint64_t needed, uint64_t most) {
  const bool can_be = rounded_up(needed) <= most;
  const std::string more =
      can_be ? "raise memory= to " + std::to_string(rounded_up(needed))
             : "ask for more memory for the job: more than " + bytes_in_words(most) + " cannot be had here";
  if (spec.order.kind != OrderKind::streams) return "choose a smaller batch or prefetch, or " + more;
  std::string advice = more;
  if (spec.order.world > 1) advice += ", load on more ranks, each of which keeps its part of the window";
  const uint64_t least = least_memory(spec, limits);
  if (least < needed && rounded_up(least) <= most) {
    advice += ", or begin a new run with a smaller window: with ";
    advice += spec.order.world > 1 ? "the same memory= or window= on every rank" : "memory= or window=";
    advice += " (memory=" + std::to_string(rounded_up(least)) + " is the least)";
  }
  return advice + ", or with order=\"global\"";
}

}  // namespace

Status check_amounts(const LoadSpec& spec, uint32_t cores) {
  const uint64_t threads = std::max<uint64_t>(kMostThreads, uint64_t{kMostThreadsACore} * cores);
  if (spec.threads > threads)
    return Status(Code::invalid, "threads= is at most " + count_in_words(threads) + " here, not " +
                                     count_in_words(spec.threads) + "; more than there are cores, " +
                                     count_in_words(cores) + ", seldom help");
  if (spec.prefetch > kMostPrefetch)
    return Status(Code::invalid, "prefetch= is at most " + count_in_words(kMostPrefetch) + " batches, not " +
                                     count_in_words(spec.prefetch));
  return {};
}

EngineLimits choose_limits(const LoadSpec& spec, uint32_t cores) {
  EngineLimits limits;
  limits.threads = spec.threads != 0 ? spec.threads : cores;
  const bool raw = !spec.image && spec.delivers_bytes();
  limits.readers = raw ? std::clamp<uint32_t>(limits.threads, 1, 4) : 1;
  const uint64_t batch = spec.order.global_batch / spec.order.world;
  limits.batch_bytes = std::max<uint64_t>(batch * bytes_a_sample(spec), 1);
  limits.open_steps =
      spec.prefetch != 0
          ? spec.prefetch
          : static_cast<uint32_t>(std::clamp<uint64_t>(kLeastAhead / limits.batch_bytes, 2, kMostAhead));
  limits.planned_steps = limits.open_steps + kStepsReadAhead;
  limits.far = lies_far(spec);
  limits.read_ahead = limits.far ? kReadAheadFar : kReadAheadNear;
  return limits;
}

Result<std::shared_ptr<const Order>> make_order_within(LoadSpec& spec, const EngineLimits& limits,
                                                       uint64_t memory) {
  if (spec.order.kind != OrderKind::streams) return make_order(spec);
  const bool is_open = spec.order.window_bytes == 0;
  // What is available differs from node to node, and ranks with different windows would not share an epoch.
  const bool may_shrink = is_open && (spec.memory != 0 || spec.order.world == 1);
  LoadSpec tried = spec;
  for (uint64_t window = is_open ? OrderSpec().window_bytes : spec.order.window_bytes;; window /= 2) {
    tried.order.window_bytes = window;
    if (spec.order.piece_bytes == 0) tried.order.piece_bytes = piece_for(window);
    PACKTRAIN_ASSIGN(order, make_order(tried));
    const bool fits = needs_of(tried, *order, limits).sum() <= memory;
    // With one piece of each chain it is as small as it gets.
    const bool is_least = window / 2 < tried.order.chains * tried.order.piece_bytes;
    if (!fits && may_shrink && !is_least) continue;
    spec = std::move(tried);
    return order;
  }
}

MemoryNeeds needs_of(const LoadSpec& spec, const Order& order, const EngineLimits& limits) {
  MemoryNeeds needs;
  needs.batch_bytes = limits.batch_bytes;
  needs.batches = uint64_t{limits.open_steps} + 2;  // those ahead, one with the user, one being asked for
  needs.read_ahead = bytes_ahead(order, limits);
  needs.threads = limits.threads;
  needs.images =
      static_cast<uint32_t>((spec.image ? 1 : 0) +
                            std::count_if(spec.values.begin(), spec.values.end(), [](const ValueSpec& value) {
                              return value.kind == ValueKind::image;
                            }));
  needs.advice = [&spec, &limits](uint64_t needed, uint64_t most) {
    return advice_of(spec, limits, needed, most);
  };
  return needs;
}

}  // namespace packtrain
