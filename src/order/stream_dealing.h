// StreamDealing: which positions of a batch a rank gets in the order `streams`.
#pragma once

#include <cstdint>
#include <vector>

#include "order/batching.h"

namespace packtrain {

// Position p is of chain p mod C. Where the world size divides C, rank p mod world has it: a rank meets the
// same chains in every batch, and no other rank meets them.
//
// A run that was begun on another number of ranks may not divide so. Then p mod g, with g = gcd(world, C),
// parts positions, chains and ranks into g classes, each of C/g chains for world/g ranks. Of its chains each
// rank owns as many as any other, and what is left over, fewer chains than ranks, is shared: of those each
// rank gets as many positions of a batch as it lacks. Every full batch can be dealt so, wherever it begins:
// owned chains take turns rank by rank, so that none gives its owner more than a rank's part of the batch.
//
// Immutable.
class StreamDealing {
 public:
  StreamDealing(uint32_t chains, uint32_t world);

  bool shares() const { return ranks_ > 1; }  // any chain
  uint64_t count(GlobalBatch batch, uint32_t rank) const;
  // Picks whose positions are set, in ascending order.
  void deal(GlobalBatch batch, uint32_t rank, std::vector<Pick>& out) const;
  // How many chains a rank has to do with at a time, about.
  uint64_t chains_of_rank() const;

 private:
  struct Range {  // of the positions of a class: k, k + g, k + 2g …
    uint64_t begin, end;
  };
  Range range_of(GlobalBatch batch, uint32_t rank) const;
  // How many of the first `places` positions of a class are of chains that a rank of the class owns.
  uint64_t owned_before(uint64_t places, uint64_t rank) const;
  void add_shared(Range range, uint64_t rank, std::vector<Pick>& out) const;

  uint64_t classes_;         // g
  uint64_t chains_, ranks_;  // of a class
  uint64_t owned_;           // of these chains: the first ones, chain c by rank c mod ranks_
};

}  // namespace packtrain
