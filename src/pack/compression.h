// Which fields are compressed, and why: decided when the plan is made, from a look at some values.
#pragma once

#include <string>

#include "pack/plan.h"
#include "packtrain/format.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// Fills the plan's compress, compressed and findings. `asked` is --compress: "none", "auto" or a codec.
//
// Compression saves reading and costs decoding. A raw byte read from storage that gives a core S bytes a
// second takes 1/S; compressed to `ratio` and decoded at D bytes a second it takes ratio/S + 1/D. So
// compression wins while S < D (1 - ratio), the break-even speed. Shards are packed once and read in places
// that are not known yet, so "auto" compresses what still wins on fast storage, of kFastStorage bytes a
// second and core.
//
// What is written must follow from source and options alone, hence the decision is made with a nominal D of
// codec and length; what is told uses the D measured here and now. Looks at about 32 values and 4 MiB of each
// field, evenly spaced; of what is in compressed archives, at the first ones.
Status decide_compression(Storage& storage, const Format& format, const std::string& asked, Plan& plan);

}  // namespace packtrain
