// Rows of a list that name one file more than once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace packtrain {

struct Catalog;

struct Repeats {
  uint64_t rows = 0;  // that name a file which an earlier row names
  std::string words;  // a sentence on those files; "" if there are none
};

// Of the samples from `first` on, also which of them have different labels or belong to different splits.
// `list` is what the list is called.
Repeats find_repeats(const Catalog& catalog, size_t first, const std::string& list);

}  // namespace packtrain
