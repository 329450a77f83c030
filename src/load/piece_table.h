// PieceTable: the pieces of streams that are to be used again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/keyed_random.h"
#include "load/step.h"

namespace packtrain {

// Found by their first sample, let go of by the position behind which no sample of theirs comes. Memory is
// kept, so that in steady state none is asked for. One thread at a time.
class PieceTable {
 public:
  Extent* find(uint64_t first) const {  // null: it is not there
    if (slots_.empty()) return nullptr;
    return slots_[slot_of(first)].extent;
  }
  // `last`: the position of the last of its samples.
  void add(uint64_t first, uint64_t last, Extent* extent) {
    if (2 * (ends_.size() + 1) > slots_.size()) grow();
    slots_[slot_of(first)] = {first, extent};
    ends_.emplace_back(last, first);
    std::push_heap(ends_.begin(), ends_.end(), std::greater<>());
  }
  // Takes out a piece none of whose samples comes at `position` or behind it; null: there is none.
  Extent* take_ended(uint64_t position) {
    if (ends_.empty() || ends_.front().first >= position) return nullptr;
    const uint64_t first = ends_.front().second;
    std::pop_heap(ends_.begin(), ends_.end(), std::greater<>());
    ends_.pop_back();
    return remove(slot_of(first));
  }

 private:
  struct Slot {
    uint64_t first = 0;
    Extent* extent = nullptr;  // null: empty
  };
  // Where it is, or would be.
  size_t slot_of(uint64_t first) const {
    const size_t mask = slots_.size() - 1;
    size_t at = mix64(first) & mask;
    while (slots_[at].extent && slots_[at].first != first) at = (at + 1) & mask;
    return at;
  }
  Extent* remove(size_t at) {
    Extent* const extent = slots_[at].extent;
    const size_t mask = slots_.size() - 1;
    // What stands behind it may have wanted its place.
    for (size_t next = (at + 1) & mask; slots_[next].extent; next = (next + 1) & mask) {
      const size_t home = mix64(slots_[next].first) & mask;
      if (((next - home) & mask) < ((next - at) & mask)) continue;
      slots_[at] = slots_[next];
      at = next;
    }
    slots_[at] = {};
    return extent;
  }
  void grow() {
    const std::vector<Slot> old = std::move(slots_);
    slots_.assign(std::max<size_t>(64, 2 * old.size()), Slot());
    for (const Slot& slot : old)
      if (slot.extent) slots_[slot_of(slot.first)] = slot;
  }

  std::vector<Slot> slots_;                          // a power of two of them, at most half of them full
  std::vector<std::pair<uint64_t, uint64_t>> ends_;  // a heap of last positions, and whose they are
};

}  // namespace packtrain
