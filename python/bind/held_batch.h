// A batch as Python holds it, and one of its fields.
#pragma once

#include <optional>
#include <vector>

#include "bind.h"
#include "packtrain/load.h"

namespace packtrain::bind {

// A batch and what its bytes mean. Arrays on it keep it alive.
struct HeldBatch {
  BatchPtr batch;
  std::optional<ImageSpec> image;
};

// One field of the samples of a batch, as bytes or arrays that are made when asked for.
struct HeldField {
  nb::object owner;  // the batch, as Python knows it
  const HeldBatch* held;
  size_t field;
  std::optional<std::vector<size_t>> places;  // of the batch; none: all, in order

  size_t size() const { return places ? places->size() : held->batch->size(); }
  size_t place_at(size_t number) const { return places ? (*places)[number] : number; }
};

}  // namespace packtrain::bind
