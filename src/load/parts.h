// What the parts of a loader come to: whether they can be loaded, in which order, and by what name a state
// knows them.
#pragma once

#include <memory>

#include "packtrain/load.h"

namespace packtrain {

// Says which number of the spec cannot be, if any.
Status check_spec(const LoadSpec& spec);

// The order that the spec asks for. Fills in what LoadSpec::order leaves to the loader.
Result<std::shared_ptr<const Order>> make_order(LoadSpec& spec);

// Sets dataset, split and selection: they differ where other samples, or samples in other fractions, would
// come.
void set_identity(const LoadSpec& spec, OrderState& state);

// What each sample takes in a batch, about: fields that are delivered as bytes vary.
uint64_t bytes_a_sample(const LoadSpec& spec);

// Whether any part lies where each answer takes long.
bool lies_far(const LoadSpec& spec);

}  // namespace packtrain
