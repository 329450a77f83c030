// What a conversion of images costs, found by trying it on some of them.
#pragma once

#include "pack/plan.h"
#include "packtrain/pack.h"
#include "packtrain/status.h"

namespace packtrain {

// Converts up to 64 images, evenly spaced over the source: the same ones for the same source, whatever the
// order and the number of threads. Those that cannot be read or decoded are passed over here; whoever writes
// them will name them. All zero if the plan converts nothing.
Result<ConversionCost> measure_conversion(Storage& storage, const Plan& plan, const PackOptions& options);

}  // namespace packtrain
