// Where the rows of a Zarr array lie: its chunks, or the inner chunks of its shards, as the parts of a
// column.
#pragma once

#include <string>

#include "format/zarr_metadata.h"
#include "format/zarr_store.h"

namespace packtrain {

// `folder` is the array's, "" the root. Reads the indexes of shards, and the texts of an array of texts, but
// no other chunk. A missing chunk is a hole that holds the fill value; one that is not understood is
// Code::unsupported.
Result<ArrayColumn> zarr_column(Storage& storage, ZarrStore& store, const std::string& folder,
                                std::string name, const ZarrArray& array);

}  // namespace packtrain
