// A container's own structure against the index: what a fresh look at the container finds must be what the
// rows say, and the other way round.
#pragma once

#include <string>

#include "pack/findings.h"
#include "pack/memory_gate.h"
#include "pack/verify_shard.h"
#include "packtrain/index.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// Indexes the container again and compares keys, fields, offsets and lengths. `names_sound`: false where
// names.npz is known to be damaged; samples are then matched by their order. Reads directories, not payload.
Status check_structure(Storage& storage, const Dataset& dataset, uint32_t shard, const std::string& path,
                       const std::vector<RowRange>& samples, bool names_sound, Findings& findings);

// Every key is found under its own name, and no other is: [first, end) of the samples.
Status check_names(const Dataset& dataset, uint64_t first, uint64_t end, Findings& findings);

// Fields that are compressed or in pieces: decodes those of samples [first, end) and compares their checks.
Status check_decoded(const Dataset& dataset, uint64_t first, uint64_t end, MemoryGate& gate,
                     Findings& findings);

// What can still be read of a damaged container, in words: walks it to its end.
std::string recoverable_in_words(Storage& storage, const std::string& name, const std::string& path,
                                 uint64_t samples_expected);

}  // namespace packtrain
