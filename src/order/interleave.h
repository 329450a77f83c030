// Which of several parts each place of an endless sequence belongs to, in given fractions. Nothing is
// replayed: a place is found in as many steps as log2(parts).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace packtrain {

// Immutable.
class Interleave {
 public:
  explicit Interleave(std::span<const double> fractions);  // each above 0 and finite, and so their sum

  struct Place {
    uint32_t part = 0;
    uint64_t number = 0;  // how many places before it belong to the same part
  };
  Place at(uint64_t position) const;

 private:
  struct Node {
    uint64_t left = 0;  // the share of the left half, in units of 2^-64
    uint32_t left_child = 0, right_child = 0;
  };
  uint32_t add(std::span<const double> fractions, uint32_t first);  // a tree of parts from `first` on

  static constexpr uint32_t kLeaf = uint32_t{1} << 31;  // a child that is a part
  std::vector<Node> nodes_;
  uint32_t root_ = kLeaf;
};

}  // namespace packtrain
