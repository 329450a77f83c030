// A tree that halves the parts. Of the first k places that reach a node, round(k * share) go left: the next
// one goes left if that number grows with it. Counts are thus within one of the exact share at each node, at
// any place, and a batch holds the parts in their fractions.
#include "order/interleave.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace packtrain {
namespace {

uint64_t left_of(uint64_t places, uint64_t share) {
  constexpr unsigned __int128 kHalf = uint64_t{1} << 63;
  return static_cast<uint64_t>((static_cast<unsigned __int128>(places) * share + kHalf) >> 64);
}

}  // namespace

Interleave::Interleave(std::span<const double> fractions) {
  assert(!fractions.empty() && fractions.size() < kLeaf);
  std::vector<double> sums = {0};
  for (const double fraction : fractions) sums.push_back(sums.back() + fraction);
  root_ = add(sums, 0, static_cast<uint32_t>(fractions.size()));
}

uint32_t Interleave::add(std::span<const double> sums, uint32_t first, uint32_t end) {
  if (end - first == 1) return kLeaf | first;
  const uint32_t middle = first + (end - first) / 2;
  // A share that is rounded to all or nothing would leave one side without places for ever.
  const double share = (sums[middle] - sums[first]) / (sums[end] - sums[first]);
  const double scaled = std::clamp(std::ldexp(share, 64), 1.0, std::ldexp(1.0, 64) - 2048);
  const auto node = static_cast<uint32_t>(nodes_.size());
  nodes_.emplace_back();
  const uint32_t left = add(sums, first, middle), right = add(sums, middle, end);
  nodes_[node] = {static_cast<uint64_t>(scaled), left, right};
  return node;
}

Interleave::Place Interleave::at(uint64_t position) const {
  uint32_t at = root_;
  while ((at & kLeaf) == 0) {
    const Node& node = nodes_[at];
    const uint64_t left = left_of(position, node.left);
    const bool goes_left = left_of(position + 1, node.left) > left;
    position = goes_left ? left : position - left;
    at = goes_left ? node.left_child : node.right_child;
  }
  return {at & ~kLeaf, position};
}

}  // namespace packtrain
