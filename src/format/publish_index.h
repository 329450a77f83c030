// How a finished index becomes a folder: whole or not at all, and never in the place of anything else.
#pragma once

#include <string>

#include "packtrain/index.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

struct PublishOptions {
  bool durable = true;
  // Also replace an index whose manifest cannot be read. Only where the folder's name cannot be anybody
  // else's: in the cache.
  bool replace_damaged = false;
};

// Lists the index's files in its manifest and gives the bytes of manifest.json; sets the manifest's id.
std::string seal_manifest(IndexBuilder::Finished& finished);

// Whether an index may be put at `folder`: nothing is there, or an empty folder, or an index of packtrain's
// and nothing else (its manifest is whole, no shard lies inside, there is no further file). Otherwise
// Code::invalid with what to do.
Status check_index_place(Storage& storage, const std::string& folder, const PublishOptions& options = {});

// Writes index.npz, names.npz and manifest.json into a folder beside `folder` and gives it that name when it
// is whole, if check_index_place allows. An older index is moved aside first and removed last: whenever this
// ends, one of the two is there under a name that begins with that of the folder.
Status publish_index(Storage& storage, const std::string& folder, IndexBuilder::Finished& finished,
                     const PublishOptions& options);

}  // namespace packtrain
