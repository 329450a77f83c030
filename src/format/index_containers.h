// From containers to the bytes of an index, and an index to a folder: shared by make_index and open_dataset.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "packtrain/format.h"

namespace packtrain {

// A container where it is read from, and what the index calls it.
struct ContainerPath {
  std::string path, recorded;
};

// Indexes them in order into one builder. Class folders are numbered alike in all of them: by the sorted
// names of all, if every container is a class tree. Costs a second walk where containers have different
// classes.
Result<IndexBuilder> index_containers(Storage& storage, std::span<const ContainerPath> containers,
                                      const IndexOptions& options);

// Lists the index's files in its manifest and gives the bytes of manifest.json; sets the manifest's id.
std::string seal_manifest(IndexBuilder::Finished& finished);

// Writes index.npz, names.npz and manifest.json into a folder beside `folder` and gives it that name when it
// is whole. An index that is there already is replaced; anything else there is Code::invalid.
Status publish_index(Storage& storage, std::string_view folder, IndexBuilder::Finished& finished,
                     bool durable);

// Absolute and without "." and "..".
std::string absolute_path(std::string_view path);

}  // namespace packtrain
