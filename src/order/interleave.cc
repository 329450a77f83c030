// A tree that halves the parts. Of the first k places that reach a node, round(k * share) go left: the next
// one goes left if that number grows with it. Counts are thus within one of the exact share at each node, at
// any place, and a batch holds the parts in their fractions.
#include "order/interleave.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace packtrain {
namespace {

uint64_t left_of(uint64_t places, uint64_t share) {
  constexpr unsigned __int128 kHalf = uint64_t{1} << 63;
  return static_cast<uint64_t>((static_cast<unsigned __int128>(places) * share + kHalf) >> 64);
}

}  // namespace

Interleave::Interleave(std::span<const double> fractions) {
  assert(!fractions.empty() && fractions.size() < kLeaf);
  root_ = add(fractions, 0);
}

uint32_t Interleave::add(std::span<const double> fractions, uint32_t first) {
  if (fractions.size() == 1) return kLeaf | first;
  const size_t middle = fractions.size() / 2;
  const double left_sum = std::accumulate(fractions.begin(), fractions.begin() + middle, 0.0);
  const double sum = std::accumulate(fractions.begin() + middle, fractions.end(), left_sum);
  // A share that is rounded to all or nothing would leave one side without places for ever.
  const double share = left_sum / sum;
  const double scaled = std::clamp(std::ldexp(share, 64), 1.0, std::ldexp(1.0, 64) - 2048);
  const auto node = static_cast<uint32_t>(nodes_.size());
  nodes_.emplace_back();
  const uint32_t left = add(fractions.first(middle), first);
  const uint32_t right = add(fractions.subspan(middle), first + static_cast<uint32_t>(middle));
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
