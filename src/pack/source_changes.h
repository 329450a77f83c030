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

// Why the sources no longer are what the plan was made from, by name, at most `limit`; empty if they are.
// Whatever happened to the files of the samples `left_out` (of the plan, sorted) is no difference. Takes no
// memory to speak of where nothing differs; otherwise the stems of `now` become keys.
struct SourceChanges {
  std::vector<std::string> found;
  // The samples of the plan whose loose files are gone or have changed, sorted; and whether that is all.
  std::vector<uint64_t> touched;
  bool only_touched = true;
};
SourceChanges differences(const Plan& planned, Catalog& now, const std::vector<uint64_t>& left_out,
                          size_t limit);

}  // namespace packtrain
