// What is in a dataset, in numbers: `packtrain info`.
#pragma once

#include "base/json.h"
#include "packtrain/index.h"
#include "packtrain/progress.h"
#include "packtrain/status.h"

namespace packtrain {

// Counts, splits, fields, classes, sizes, image sizes, evenness of shards, how it came to be. One pass over
// the rows; payload is read only for the heads of a few images where their sizes are not recorded.
Result<Json> describe(const Dataset& dataset, const Progress& progress = {});

}  // namespace packtrain
