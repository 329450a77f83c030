#include "order/stream_dealing.h"

#include <algorithm>
#include <numeric>

namespace packtrain {

StreamDealing::StreamDealing(uint32_t chains, uint32_t world)
    : classes_(std::gcd(chains, world)),
      chains_(chains / classes_),
      ranks_(world / classes_),
      owned_(chains_ / ranks_ * ranks_) {}

StreamDealing::Range StreamDealing::range_of(GlobalBatch batch, uint32_t rank) const {
  const auto before = [&](uint64_t position) {
    return (position + (classes_ - 1 - rank % classes_)) / classes_;
  };
  return {before(batch.first), before(batch.first + batch.count)};
}

uint64_t StreamDealing::owned_before(uint64_t places, uint64_t rank) const {
  const uint64_t rest = std::min(places % chains_, owned_);
  return places / chains_ * (owned_ / ranks_) + (rest + ranks_ - 1 - rank) / ranks_;
}

uint64_t StreamDealing::count(GlobalBatch batch, uint32_t rank) const {
  const Range range = range_of(batch, rank);
  const uint64_t places = range.end - range.begin;
  return places / ranks_ + (rank / classes_ < places % ranks_ ? 1 : 0);
}

// The shared positions of a batch, chain by chain, are cut where each rank has what it lacks: a rank meets
// few of these chains, as a rule the same ones in every batch.
void StreamDealing::add_shared(Range range, uint64_t rank, std::vector<Pick>& out) const {
  const uint64_t each = (range.end - range.begin) / ranks_;
  const auto lacks = [&](uint64_t other) {
    return each - (owned_before(range.end, other) - owned_before(range.begin, other));
  };
  uint64_t skip = 0;
  for (uint64_t other = 0; other < rank; ++other) skip += lacks(other);
  uint64_t wanted = lacks(rank);
  for (uint64_t chain = owned_; chain < chains_ && wanted > 0; ++chain) {
    uint64_t place = range.begin + (chain + chains_ - range.begin % chains_) % chains_;
    for (; place < range.end && wanted > 0; place += chains_) {
      if (skip > 0) {
        --skip;
        continue;
      }
      out.push_back({.position = place});
      --wanted;
    }
  }
}

void StreamDealing::deal(GlobalBatch batch, uint32_t rank, std::vector<Pick>& out) const {
  const Range range = range_of(batch, rank);
  const uint64_t places = range.end - range.begin, number = rank / classes_;
  out.clear();
  if (places % ranks_ != 0 || ranks_ == 1) {  // a short batch, at the end of an epoch
    const uint64_t each = places / ranks_, more = places % ranks_;
    const uint64_t begin = range.begin + each * number + std::min(number, more);
    for (uint64_t i = 0; i < each + (number < more ? 1 : 0); ++i) out.push_back({.position = begin + i});
  } else {
    for (uint64_t round = range.begin / chains_ * chains_; round < range.end; round += chains_) {
      for (uint64_t place = round + number; place < round + owned_; place += ranks_)
        if (place >= range.begin && place < range.end) out.push_back({.position = place});
    }
    add_shared(range, number, out);
    std::sort(out.begin(), out.end(), [](const Pick& a, const Pick& b) { return a.position < b.position; });
  }
  for (Pick& pick : out) pick.position = pick.position * classes_ + rank % classes_;
}

uint64_t StreamDealing::chains_of_rank() const {
  // Those that are left over begin and end within a chain, and move a little from batch to batch.
  constexpr uint64_t kShared = 3;
  return owned_ / ranks_ + std::min(chains_ - owned_, kShared);
}

}  // namespace packtrain
