// How the positions of an epoch fall into steps: global batch k of what is left after `consumed` is
// [consumed + kB, consumed + (k+1)B), whatever the number of ranks.
#pragma once

#include <cstdint>

#include "packtrain/order.h"

namespace packtrain {

// The positions of one global batch. Those from `samples` on are padding.
struct GlobalBatch {
  uint64_t first = 0, count = 0;
};

// Empty behind the last step. The last one holds what is left (LastBatch::keep) or is filled up (pad).
GlobalBatch global_batch_at(const OrderSpec& spec, uint64_t consumed, uint64_t step);

// Global batches in the rest of an epoch.
uint64_t global_steps(const OrderSpec& spec, uint64_t consumed);

// Fails where no order can be: says which number is wrong and what it may be.
Status check_batching(const OrderSpec& spec);

}  // namespace packtrain
