// Rows of a list that name one file more than once.
#pragma once

#include <cstddef>
#include <string>

namespace packtrain {

struct Catalog;

// A sentence on the files that several samples from `first` on are made of, and on those among them whose
// samples have different labels or belong to different splits; "" if there are none. `list` is what the list
// is called.
std::string repeats_in_words(const Catalog& catalog, size_t first, const std::string& list);

}  // namespace packtrain
