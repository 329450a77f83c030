#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/keyed_random.h"
#include "packtrain/load.h"

namespace packtrain {
namespace {

// Gives back every index, and tells what it takes.
uint64_t bytes_of(const std::vector<uint64_t>& indices) {
  const auto selection = Selection::make(indices);
  EXPECT_EQ(selection->size(), indices.size());
  for (size_t i = 0; i < indices.size(); ++i) EXPECT_EQ(selection->at(i), indices[i]) << i;
  if (!indices.empty()) {
    EXPECT_EQ(selection->largest(), *std::max_element(indices.begin(), indices.end()));
  }
  EXPECT_EQ(selection->hash(), xxh128_hex(std::as_bytes(std::span(indices))));  // that of earlier states
  return selection->bytes();
}

TEST(SelectionTest, RangesAndStepsCostNothing) {
  EXPECT_EQ(bytes_of({}), 0u);
  EXPECT_EQ(bytes_of({7}), 0u);
  EXPECT_EQ(bytes_of({3, 3, 3}), 0u);
  std::vector<uint64_t> range, every_third, backwards;
  for (uint64_t i = 0; i < 10'000; ++i) {
    range.push_back(500 + i);
    every_third.push_back(i * 3 + 1);
    backwards.push_back(1'000'000 - 7 * i);
  }
  EXPECT_EQ(bytes_of(range), 0u);
  EXPECT_EQ(bytes_of(every_third), 0u);
  EXPECT_EQ(bytes_of(backwards), 0u);
}

TEST(SelectionTest, AscendingOnesCostAFewBits) {
  KeyedRandom random(1);
  for (const uint64_t one_in : {2, 10, 25}) {
    std::vector<uint64_t> chosen;
    for (uint64_t i = 1000; i < 201'000; ++i)
      if (random.below(one_in) == 0) chosen.push_back(i);
    EXPECT_LE(bytes_of(chosen), 200'000 / 8 * 9 / 8 * 5 / 4u);  // vectors grow by more than they must
  }
  std::vector<uint64_t> few;
  for (uint64_t i = 0; i < 1000; ++i) few.push_back(i * 1000 + random.below(1000));
  EXPECT_EQ(bytes_of(few), few.size() * 4);
}

TEST(SelectionTest, AnyOrderAndRepetitionIsKept) {
  KeyedRandom random(2);
  std::vector<uint64_t> any, large;
  for (uint64_t i = 0; i < 5000; ++i) {
    any.push_back(random.below(100'000));
    large.push_back(random.below(uint64_t{1} << 40));
  }
  any.push_back(UINT32_MAX);
  EXPECT_EQ(bytes_of(any), any.size() * 4);
  EXPECT_EQ(bytes_of(large), large.size() * 8);
}

}  // namespace
}  // namespace packtrain
