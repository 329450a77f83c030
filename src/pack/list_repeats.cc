#include "pack/list_repeats.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/big_vector.h"
#include "base/hash.h"
#include "base/words.h"
#include "pack/catalog.h"

namespace packtrain {
namespace {

// Sorted, rows of one file lie side by side, in the order of the list.
struct Row {
  uint64_t hash;  // of the path
  uint64_t sample;
  bool operator<(const Row& other) const {
    return hash != other.hash ? hash < other.hash : sample < other.sample;
  }
};

std::string_view path_of(const Catalog& catalog, uint64_t sample) {
  for (uint64_t c = catalog.samples[sample].first_cell; c < catalog.end_cell(sample); ++c)
    if (catalog.cells[c].origin == Origin::file) return catalog.name(catalog.cells[c].path);
  return {};
}

}  // namespace

Repeats find_repeats(const Catalog& catalog, size_t first, const std::string& list) {
  BigVector<Row> rows;
  rows.reserve(catalog.samples.size() - first);
  for (uint64_t sample = first; sample < catalog.samples.size(); ++sample)
    rows.push_back({xxh64(as_bytes(path_of(catalog, sample))), sample});
  std::sort(rows.begin(), rows.end());

  uint64_t repeated = 0, surplus = 0, contradicting = 0, in_several_splits = 0;
  std::string_view example, worse_example;
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    const std::string_view path = path_of(catalog, rows[begin].sample);
    bool differs = false, is_apart = false;
    for (end = begin + 1; end < rows.size() && rows[end].hash == rows[begin].hash; ++end) {
      if (path_of(catalog, rows[end].sample) != path) break;
      const CatalogSample &one = catalog.samples[rows[begin].sample],
                          &other = catalog.samples[rows[end].sample];
      differs |= other.label != one.label;
      is_apart |= other.split != one.split;
    }
    if (end == begin + 1) continue;
    surplus += end - begin - 1;
    if (repeated++ == 0) example = path;
    if (is_apart) ++in_several_splits;
    if (differs && contradicting++ == 0) worse_example = path;
  }
  if (repeated == 0) return {};
  std::string words = list + " names " + counted(repeated, "file") + " more than once (" +
                      printable(contradicting > 0 ? worse_example : example) +
                      (repeated > 1 ? " is one)" : ")") + ": each row is a sample of its own";
  if (contradicting > 0)
    words += ", and the labels of " + counted(contradicting, "file") + " contradict each other";
  if (in_several_splits > 0)
    words += ", and " + counted(in_several_splits, "file") + (in_several_splits > 1 ? " are" : " is") +
             " in several splits";
  return {surplus, words + "; if that is not meant, give the list one row for each file"};
}

}  // namespace packtrain
