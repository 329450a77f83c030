// What `show` counts. Time is one pass over the labels, memory does not grow with the samples.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "packtrain/index.h"

namespace packtrain {

// The samples that a page is about: all, or those of one split.
struct SampleRange {
  uint64_t first = 0, count = 0;
};
Result<SampleRange> range_of_split(const Manifest& manifest, const std::string& split);

struct ClassFacts {
  std::vector<uint64_t> counts;  // by label; empty: no labels, or numbers that are not classes
  uint64_t unlabelled = 0;
};
ClassFacts count_classes(const Dataset& dataset, const SampleRange& range);
std::string class_name(const Manifest& manifest, int64_t label);

// Bytes of all fields of a sample, of at most 200,000 samples evenly spaced; sorted.
std::vector<uint64_t> sample_sizes(const Dataset& dataset, const SampleRange& range);

// (width, height) to how many; from the index, of as many samples; empty if none are recorded.
using ShapeCounts = std::map<std::pair<uint32_t, uint32_t>, uint64_t>;
ShapeCounts recorded_shapes(const Dataset& dataset, const SampleRange& range);

// The shards that hold samples of the range.
std::vector<ShardSpec> shards_of(const Dataset& dataset, const SampleRange& range);

// `wanted` samples of the range by the seed, as evenly over the classes as can be; sorted by label, then
// number.
std::vector<uint64_t> choose_samples(const Dataset& dataset, const SampleRange& range,
                                     const ClassFacts& classes, uint32_t wanted, uint64_t seed);

}  // namespace packtrain
