// Whether a source still is what a plan was made from, and what of it is not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pack/catalog.h"
#include "pack/plan.h"

namespace packtrain {

// A hash of all that a scan found: names, sizes, dates, labels and texts. Equal for equal sources.
std::string source_fingerprint(const Catalog& catalog);

// How a difference ends that no --skip-bad can pass over.
inline constexpr std::string_view kIsNew = " is new", kSaysOther = " has another label, text or size";

// Why the sources no longer are what the plan was made from, by name, at most `limit`; empty if they are.
// Whatever happened to the files of the samples `left_out` (of the plan, sorted) is no difference. Takes no
// memory to speak of where nothing differs; otherwise the stems of `now` become keys. `touched` becomes the
// samples of the plan, one for each difference that is a loose file which is gone or has changed.
std::vector<std::string> differences(const Plan& planned, Catalog& now, const std::vector<uint64_t>& left_out,
                                     size_t limit, std::vector<uint64_t>& touched);

}  // namespace packtrain
