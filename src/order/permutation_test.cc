#include <gtest/gtest.h>

#include <algorithm>

#include "base/keyed_random.h"
#include "base/test_counts.h"
#include "order/test_statistics.h"
#include "packtrain/order.h"

namespace packtrain {
namespace {

constexpr uint64_t kImageNet = 1281167;

bool is_permutation(uint64_t count, uint64_t key) {
  const Permutation permutation(count, key);
  std::vector<bool> seen(count);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t value = permutation.at(i);
    if (value >= count || seen[value]) return false;
    seen[value] = true;
  }
  return true;
}

TEST(PermutationTest, HoldsEveryValueOnceForSmallCounts) {
  for (uint64_t count = 0; count <= 4096; ++count) ASSERT_TRUE(is_permutation(count, count * 7 + 1)) << count;
}

TEST(PermutationTest, HoldsEveryValueOnceAroundPowersOfTwo) {
  const int most = count_of(18, 20, 24);
  for (int k = 12; k <= most; ++k)
    for (uint64_t count : {(1ULL << k) - 1, 1ULL << k, (1ULL << k) + 1})
      ASSERT_TRUE(is_permutation(count, 3)) << count;
}

TEST(PermutationTest, ShuffledAnewItIsThatOfTheOtherKey) {
  for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{4096}, uint64_t{4097}, kImageNet}) {
    Permutation renewed(count, 3);
    renewed.shuffle(8);
    const Permutation fresh(count, 8);
    for (uint64_t i = 0; i < count; i += 1 + count / 1000) ASSERT_EQ(renewed.at(i), fresh.at(i)) << count;
  }
}

TEST(PermutationTest, HoldsEveryValueOnceForImageNet) {
  for (uint64_t key = 0; key < 3; ++key) ASSERT_TRUE(is_permutation(kImageNet, key));
}

TEST(PermutationTest, DoesNotRepeatWhereOnlySomePositionsCanBeTried) {
  const uint64_t tried = count_of(1 << 13, 1 << 15, 1 << 17);
  std::vector<uint64_t> counts;
  for (int k = 21; k <= 32; ++k)
    for (uint64_t count : {(1ULL << k) - 1, 1ULL << k, (1ULL << k) + 1}) counts.push_back(count);
  counts.push_back(1ULL << 40);
  counts.push_back((1ULL << 62) + 1);
  for (const uint64_t count : counts) {
    const Permutation permutation(count, 11);
    // The two ends and a run in the middle.
    std::vector<uint64_t> values;
    for (const uint64_t from : {uint64_t{0}, count / 2, count - tried})
      for (uint64_t i = 0; i < tried; ++i) values.push_back(permutation.at(from + i));
    std::sort(values.begin(), values.end());
    EXPECT_LT(values.back(), count);
    EXPECT_EQ(std::adjacent_find(values.begin(), values.end()), values.end()) << count;
  }
}

TEST(PermutationTest, DependsOnTheKeyAndOnNothingElse) {
  for (const uint64_t count : {uint64_t{100}, kImageNet}) {
    const Permutation one(count, 5), again(count, 5), other(count, 6);
    uint64_t same = 0;
    for (uint64_t i = 0; i < 100; ++i) {
      EXPECT_EQ(one.at(i), again.at(i));
      same += one.at(i) == other.at(i);
    }
    EXPECT_LT(same, 10u);
  }
}

// These values are the order of every run that was checkpointed: a change here breaks them all.
TEST(PermutationTest, StaysWhatItWas) {
  const auto head = [](uint64_t count) {
    const Permutation permutation(count, 2026);
    std::vector<uint64_t> values;
    for (uint64_t i = 0; i < 5; ++i) values.push_back(permutation.at(i));
    return values;
  };
  EXPECT_EQ(head(10), (std::vector<uint64_t>{8, 0, 3, 5, 9}));
  EXPECT_EQ(head(5000), (std::vector<uint64_t>{4859, 169, 1590, 1454, 4746}));
  EXPECT_EQ(head(kImageNet), (std::vector<uint64_t>{440486, 661637, 382522, 337186, 278422}));
  EXPECT_EQ(position_key(1, 2, 3, 4), 6178677195382196727u);
}

TEST(PermutationTest, BringsEverySampleToEveryPositionEquallyOften) {
  const uint32_t seeds = count_of(4000, 20000, 20000);
  for (const uint64_t count : {5, 10, 50, 100, 1000}) {
    std::vector<uint32_t> counts(count * count);
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      const Permutation permutation(count, seed);
      for (uint64_t i = 0; i < count; ++i) ++counts[i * count + permutation.at(i)];
    }
    const double expected = double{1} * seeds / static_cast<double>(count);
    // Rows and columns have fixed sums, hence the degrees of freedom.
    const auto degrees = static_cast<double>((count - 1) * (count - 1));
    EXPECT_LT(chi_squared(counts, expected), chi_squared_limit(degrees)) << count;
    EXPECT_GT(chi_squared(counts, expected), degrees - 6 * std::sqrt(2 * degrees)) << count;
  }
}

TEST(PermutationTest, IsUnbiasedWhereItIsComputed) {
  constexpr uint32_t kSeeds = 20000;
  constexpr uint64_t kBins = 64;
  for (const uint64_t count : {uint64_t{4097}, uint64_t{8192}, uint64_t{10000}, kImageNet}) {
    for (const uint64_t position : {uint64_t{0}, uint64_t{1}, count / 2, count - 1}) {
      std::vector<uint32_t> counts(kBins), gaps(kBins);
      for (uint64_t seed = 0; seed < kSeeds; ++seed) {
        const Permutation permutation(count, seed);
        const uint64_t value = permutation.at(position);
        ++counts[value * kBins / count];
        // The way to a neighbour's value, around the circle.
        const uint64_t next = permutation.at((position + 1) % count);
        ++gaps[(next + count - value) % count * kBins / count];
      }
      EXPECT_LT(chi_squared(counts, double{kSeeds} / kBins), chi_squared_limit(kBins - 1))
          << count << " " << position;
      EXPECT_LT(chi_squared(gaps, double{kSeeds} / kBins), chi_squared_limit(kBins - 1))
          << count << " " << position;
    }
  }
}

TEST(PermutationTest, PairsOfValuesAreEquallyFrequent) {
  constexpr uint32_t kSeeds = 40000;
  constexpr uint64_t kCount = 10;
  // Ordered pairs at positions (0, 1), (0, 9) and (4, 5): 90 of them.
  for (const auto& [a, b] : {std::pair{0, 1}, std::pair{0, 9}, std::pair{4, 5}}) {
    std::vector<uint32_t> counts(kCount * kCount);
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const Permutation permutation(kCount, seed);
      ++counts[permutation.at(a) * kCount + permutation.at(b)];
    }
    std::vector<uint32_t> pairs;
    for (uint64_t i = 0; i < counts.size(); ++i)
      if (i / kCount != i % kCount) pairs.push_back(counts[i]);
    EXPECT_LT(chi_squared(pairs, kSeeds / 90.0), chi_squared_limit(89));
  }
}

TEST(PermutationTest, NeighboursAreUncorrelated) {
  const Permutation permutation(kImageNet, 9);
  std::vector<double> values;
  uint64_t successors = 0;
  for (uint64_t i = 0; i < kImageNet; ++i) {
    values.push_back(static_cast<double>(permutation.at(i)));
    successors += i > 0 && values[i] == values[i - 1] + 1;
  }
  for (const size_t distance : {1, 2, 3, 64, 256, 1000}) {
    const auto pairs = values.size() - distance;
    EXPECT_LT(std::abs(correlation({values.data(), pairs}, {values.data() + distance, pairs})),
              4 / std::sqrt(static_cast<double>(pairs)))
        << distance;
  }
  EXPECT_LE(successors, 8u);  // one on average
}

}  // namespace
}  // namespace packtrain
