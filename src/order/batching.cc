#include "order/batching.h"

#include <fmt/format.h>

#include <algorithm>

namespace packtrain {
namespace {

// Leaves room for sums of a position and a batch in 64 bits.
constexpr uint64_t kMostSamples = uint64_t{1} << 62;

uint64_t left_after(const OrderSpec& spec, uint64_t consumed) {
  return spec.samples - std::min(consumed, spec.samples);
}

}  // namespace

uint64_t global_steps(const OrderSpec& spec, uint64_t consumed) {
  const uint64_t left = left_after(spec, consumed);
  const uint64_t whole = left / spec.global_batch;
  return spec.last == LastBatch::drop || left % spec.global_batch == 0 ? whole : whole + 1;
}

GlobalBatch global_batch_at(const OrderSpec& spec, uint64_t consumed, uint64_t step) {
  if (step >= global_steps(spec, consumed)) return {};
  const uint64_t first = consumed + step * spec.global_batch;
  const uint64_t count =
      spec.last == LastBatch::keep ? std::min(spec.global_batch, spec.samples - first) : spec.global_batch;
  return {first, count};
}

Status check_batching(const OrderSpec& spec) {
  if (spec.world == 0) return Status(Code::invalid, "a world size of 0: there must be at least one rank");
  if (spec.global_batch == 0) return Status(Code::invalid, "a batch of 0 samples: it must hold at least one");
  if (spec.samples > kMostSamples || spec.global_batch > kMostSamples)
    return Status(Code::invalid, fmt::format("{} samples in batches of {}: at most 2^62 can be ordered",
                                             spec.samples, spec.global_batch));
  const uint64_t above = spec.global_batch % spec.world;
  if (above == 0) return {};
  const uint64_t lower = spec.global_batch - above, upper = lower + spec.world;
  return Status(
      Code::invalid,
      fmt::format("a global batch of {} cannot be shared equally by {} ranks; the nearest that can: {}",
                  spec.global_batch, spec.world,
                  lower == 0 ? fmt::format("{}", upper) : fmt::format("{} and {}", lower, upper)));
}

}  // namespace packtrain
