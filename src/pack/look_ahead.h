// The samples of a shuffled plan lie all over its catalog: of a million, every look at one would wait for
// memory. Who walks through the order asks for what stands a few places ahead.
#pragma once

#include <cstdint>

#include "pack/plan.h"

namespace packtrain {

// Rows are asked for first, then what they point at: each step needs what the one before brought in.
inline constexpr uint64_t kRowsAhead = 16, kCellsAhead = 8;

// Asks for all of an item: few of these end on the line of memory that they begin on.
template <class T>
void ask_for(const T* item) {
  __builtin_prefetch(item);
  __builtin_prefetch(reinterpret_cast<const char*>(item + 1) - 1);
}

// A sample's cells end where the next sample's begin, so that one is wanted too.
inline void ask_for_sample(const Catalog& catalog, uint64_t sample) {
  __builtin_prefetch(&catalog.samples[sample]);
  if (sample + 1 < catalog.samples.size()) __builtin_prefetch(&catalog.samples[sample + 1]);
}

// `at`, `end`: places in the plan's order.
inline void look_ahead(const Plan& plan, uint64_t at, uint64_t end) {
  const Catalog& catalog = plan.catalog;
  if (at + kRowsAhead < end) ask_for_sample(catalog, plan.order[at + kRowsAhead]);
  if (at + kCellsAhead < end) {
    const uint64_t sample = plan.order[at + kCellsAhead];
    const uint64_t first = catalog.samples[sample].first_cell;
    if (first < catalog.cells.size()) ask_for(&catalog.cells[first]);
    __builtin_prefetch(catalog.names.data() + catalog.samples[sample].stem.at);
  }
}

// For who goes from cell to cell: `later` is one to come, of `sample`; `sooner` one that was `later` before.
inline void look_ahead_at(const Catalog& catalog, uint64_t later, uint64_t sample, uint64_t sooner) {
  if (later != kLabelCell) {
    ask_for(&catalog.cells[later]);
  } else {
    __builtin_prefetch(&catalog.samples[sample]);  // which the label's cell is made of
  }
  if (sooner != kLabelCell) __builtin_prefetch(catalog.names.data() + catalog.cells[sooner].path.at);
}

}  // namespace packtrain
