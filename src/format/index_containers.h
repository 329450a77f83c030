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
// names of all, if every container is a class tree; that costs a second walk where they have different ones.
// Named labels of tables are mapped by their names onto one list; labels without names beside them are told
// of, or refused where the list does not reach.
Result<IndexBuilder> index_containers(Storage& storage, std::span<const ContainerPath> containers,
                                      const IndexOptions& options);

// Tells of samples with one key in one split, and what to do about them. `finished` is an index as it was
// finished, with its shards in their order.
void note_equal_keys(const IndexBuilder::Finished& finished, const IndexOptions& options);

// Absolute and without "." and "..".
std::string absolute_path(std::string_view path);

}  // namespace packtrain
