// One container format against any bytes: its indexer, with and without recovery, and reading by its index.
#pragma once

#include <string_view>

#include "fuzz/read_everything.h"
#include "io/test_storage.h"
#include "packtrain/format.h"

namespace packtrain {

inline void fuzz_container(std::string_view format, std::string_view bytes) {
  MemoryStorage storage;
  put(storage, "x", bytes);
  for (bool recover : {false, true}) {
    IndexBuilder builder;
    std::vector<Damage> damage;
    IndexOptions options;
    options.recover = recover;
    options.damage = &damage;
    if (!find_format(format)->index(storage, "x", options, builder).ok()) continue;
    auto dataset = Dataset::from_memory(storage, "", builder.finish());
    if (dataset.ok()) read_everything(**dataset);
  }
}

}  // namespace packtrain
