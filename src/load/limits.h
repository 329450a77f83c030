// How much a loader does at once, and what it needs for that.
#pragma once

#include <memory>

#include "load/engine.h"
#include "load/memory_plan.h"

namespace packtrain {

// Says which amount must be a slip, if any.
Status check_amounts(const LoadSpec& spec, uint32_t cores);

// All but the memory.
EngineLimits choose_limits(const LoadSpec& spec, uint32_t cores);

// The order that the spec asks for, which is filled in. A window of streams that is left open (0) becomes the
// largest power of two up to the usual one whose pieces are within `memory`, where all ranks can be expected
// to come to the same: memory= was given, or there is one rank. Pieces that are left open (0) follow the
// window.
Result<std::shared_ptr<const Order>> make_order_within(LoadSpec& spec, const EngineLimits& limits,
                                                       uint64_t memory);

MemoryNeeds needs_of(const LoadSpec& spec, const Order& order, const EngineLimits& limits);

}  // namespace packtrain
