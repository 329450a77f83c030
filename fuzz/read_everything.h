// What a fuzz target does with a container that was accepted: reads all of it, so that an index that points
// somewhere it must not is found out.
#pragma once

#include <vector>

#include "packtrain/index.h"

namespace packtrain {

inline void read_everything(const Dataset& dataset) {
  constexpr uint64_t kMostBytes = uint64_t{64} << 20;  // in all: a claim of more is no finding
  uint64_t bytes = 0;
  std::vector<std::byte> field_bytes;
  for (uint64_t sample = 0; sample < dataset.samples(); ++sample) {
    (void)dataset.key(sample);
    (void)dataset.label(sample);
    for (uint32_t field = 0; field < dataset.manifest().fields.size(); ++field) {
      (void)dataset.path(sample, field);
      FieldLocation place = dataset.locate(sample, field);
      bytes += place.length;
      if (place.length > kMostBytes || bytes > kMostBytes) return;
      if (place.present) (void)dataset.read(sample, field, field_bytes);
    }
  }
}

}  // namespace packtrain
