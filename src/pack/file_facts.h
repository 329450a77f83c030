// Size and time of every file of a catalog: exactly one look at each.
#pragma once

#include <cstdint>
#include <vector>

#include "pack/catalog.h"
#include "pack/catalog_builder.h"
#include "pack/scan_progress.h"

namespace packtrain {

// Cell::inner_field of a file that came from a list: one that is not there is no failure of the scan.
inline constexpr uint32_t kFromList = 1;

// Whether metadata calls on a path take long enough to be worth many at a time.
bool is_far(std::string_view path);

// Looks at every file that is marked kNotLookedAt; up to `in_flight` at a time where the storage is far
// (waiting, not computing, takes the time there, so this does not depend on cores), and few where it is near.
// Files that are not there, or are none, or cannot be looked at, become kNotThere; those that are not of
// lists are given back too, in order, with the reason.
Result<std::vector<LookFailure>> look_at_files(Storage& storage, uint32_t in_flight, Catalog& catalog,
                                               ScanProgress& progress);

}  // namespace packtrain
