// From containers to an index of them: shared by make_index and open_dataset.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "packtrain/format.h"

namespace packtrain {

// A container where it is read from, and what the index calls it.
struct ContainerPath {
  std::string path, recorded;
  std::string split = {};  // that it is; empty: it has its own, or none
};

// Indexes them in order into one builder. Class folders are numbered alike in all of them: by the sorted
// names of all, if every container is a class tree. Costs a second walk where containers have different
// classes.
Result<IndexBuilder> index_containers(Storage& storage, std::span<const ContainerPath> containers,
                                      const IndexOptions& options);

// Absolute and without "." and "..".
std::string absolute_path(std::string_view path);

}  // namespace packtrain
