// The charts of the page that `show` writes: inline SVG that takes its colours from the page. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pack/show_facts.h"

namespace packtrain {

std::string class_chart(const Manifest& manifest, const ClassFacts& facts);
std::string size_chart(const std::vector<uint64_t>& sorted_sizes);
std::string shape_chart(const ShapeCounts& shapes);
std::string shard_chart(const std::vector<ShardSpec>& shards);

}  // namespace packtrain
