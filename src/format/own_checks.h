// The checks that a container carries of stretches in which many values lie: a zip's CRC-32 of a member that
// is a whole array, Parquet's of a page. Whoever reads one value cannot compare them; whoever goes over all
// of a container does.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "packtrain/format.h"
#include "packtrain/index.h"
#include "packtrain/progress.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// Those of a container that another tool wrote, by their place in it. None where packtrain recorded checks of
// every byte, and where the format has none.
Result<std::vector<CheckedStretch>> own_checks(Storage& storage, const ShardSpec& spec,
                                               const std::string& path);

// Whether the stretch has its check; reads it front to back. `each` is called with the bytes of every read.
Result<bool> has_own_check(Storage& storage, const File& file, const CheckedStretch& stretch,
                           const std::function<Status(uint64_t)>& each);

std::string own_check_differs(const CheckedStretch& stretch);  // in words

// Whether nothing would tell that the block's bytes are damaged, but for a check of a longer stretch.
bool lacks_check(const Manifest& manifest, const Block& block);

// Compares those checks of all containers behind a dataset that cover values without a check. A difference is
// Code::corrupt. Reads these stretches, in the order in which they lie; free where there are none.
Status compare_own_checks(Storage& storage, const Dataset& dataset, const Progress& progress);

}  // namespace packtrain
