// Epoch: one way through a loader's batches. The batch that is there already is handed over without a line
// of Python; for all else it asks its subclass.
#pragma once

#include <memory>

#include "columns.h"
#include "turns.h"

namespace packtrain::bind {

// How far a loader's newest iterator has come. Guarded by the GIL. It knows its own pointer, as Python's
// objects would each make another one.
struct Course : std::enable_shared_from_this<Course> {
  std::shared_ptr<SharedLoader> engine;  // another one after a state was loaded
  ColumnMask mask;
  bool is_plain = false;    // nothing is done in Python to what the engine gives
  uint64_t generation = 1;  // of iterators that are in use: only the newest may go on; 0 is none of them
  uint64_t taken = 0;       // batches of the newest iterator
  bool inside = false;      // an epoch, whose place the engine knows
};

// The base of an iterator in Python, which has to have a method _next_slowly(): the next batch, however long
// it takes. Guarded by the GIL.
struct Epoch {
  std::shared_ptr<Course> course;
  uint64_t generation = 0;  // not begun
  bool ended = false;
};

void bind_epoch(nb::module_& module);

}  // namespace packtrain::bind
