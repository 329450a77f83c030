#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/keyed_random.h"
#include "order/interleave.h"
#include "order/test_orders.h"

namespace packtrain {
namespace {

std::shared_ptr<const Order> mix(uint64_t epoch_length, uint64_t batch, uint32_t world,
                                 LastBatch last = LastBatch::drop, OrderKind kind = OrderKind::global) {
  MixSpec spec;
  spec.parts = {{100, 0.7}, {1000, 0.2}, {37, 0.1}};
  spec.epoch_length = epoch_length;
  spec.kind = kind;
  spec.seed = 3;
  spec.global_batch = batch;
  spec.world = world;
  spec.last = last;
  auto order = make_mix(std::move(spec));
  EXPECT_TRUE(order.ok()) << order.status().text();
  return *order;
}

TEST(InterleaveTest, CountsAreExactAtEveryPlace) {
  KeyedRandom random(1);
  for (int i = 0; i < 50; ++i) {
    std::vector<double> fractions(1 + random.below(20));
    double sum = 0;
    for (double& fraction : fractions) sum += fraction = random.between(0.001, 1);
    const Interleave interleave(fractions);
    const double depth = std::ceil(std::log2(static_cast<double>(fractions.size())));
    std::vector<uint64_t> counts(fractions.size());
    for (uint64_t position = 0; position < 5000; ++position) {
      const auto place = interleave.at(position);
      ASSERT_LT(place.part, fractions.size());
      ASSERT_EQ(place.number, counts[place.part]++);
      const double expected = static_cast<double>(position + 1) * fractions[place.part] / sum;
      ASSERT_LE(std::abs(static_cast<double>(counts[place.part]) - expected), 0.5 + depth / 2);
    }
  }
}

TEST(InterleaveTest, SimpleFractionsAlternate) {
  const double halves[] = {1, 1};
  const Interleave interleave(halves);
  for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(interleave.at(i).part, i % 2);
  const double tenths[] = {0.7, 0.3};
  const Interleave uneven(tenths);
  for (uint64_t block = 0; block < 1000; ++block) {
    uint64_t first = 0;
    for (uint64_t i = 0; i < 10; ++i) first += uneven.at(block * 10 + i).part == 0;
    ASSERT_EQ(first, 7u) << block;
  }
}

TEST(InterleaveTest, FarPlacesAndTinyFractionsAreFound) {
  const double fractions[] = {1e-300, 1, 1e-9};
  const Interleave interleave(fractions);
  for (const uint64_t position : {uint64_t{1} << 40, uint64_t{1} << 63, UINT64_MAX})
    EXPECT_LT(interleave.at(position).part, 3u);
  const double pairs[] = {1, 1, 1e-300, 1e-300};  // the smaller two are lost in a sum with the others
  const Interleave lost(pairs);
  EXPECT_EQ(lost.at(0).part + lost.at(1).part, 1u);
  uint64_t rare = 0;
  for (uint64_t i = 0; i < 1000; ++i) rare += interleave.at((uint64_t{1} << 40) + i).part != 1;
  EXPECT_LE(rare, 1u);
}

TEST(MixTest, EachPartGoesThroughItsOwnEpochs) {
  for (const OrderKind kind : {OrderKind::global, OrderKind::source}) {
    const auto order = mix(500, 10, 1, LastBatch::drop, kind);
    const uint64_t sizes[] = {100, 1000, 37};
    std::vector<uint64_t> drawn[3];
    for (uint64_t epoch = 0; epoch < 12; ++epoch)
      for (uint64_t step = 0; step < order->steps(0, 0); ++step)
        for (const Pick& pick : global_batch(*order, epoch, 0, step)) {
          ASSERT_LT(pick.part, 3u);
          drawn[pick.part].push_back(pick.sample);
        }
    EXPECT_EQ(drawn[0].size(), 4200u);
    EXPECT_EQ(drawn[1].size(), 1200u);
    EXPECT_EQ(drawn[2].size(), 600u);
    for (int part = 0; part < 3; ++part) {
      std::set<std::vector<uint64_t>> orders;
      uint64_t whole = 0;
      for (uint64_t at = 0; at + sizes[part] <= drawn[part].size(); at += sizes[part]) {
        const std::vector<uint64_t> once(drawn[part].begin() + static_cast<ptrdiff_t>(at),
                                         drawn[part].begin() + static_cast<ptrdiff_t>(at + sizes[part]));
        EXPECT_EQ(std::set<uint64_t>(once.begin(), once.end()).size(), sizes[part]);
        orders.insert(once);
        ++whole;
      }
      EXPECT_GE(whole, 1u);
      EXPECT_EQ(orders.size(), kind == OrderKind::global ? whole : 1);
    }
  }
}

TEST(MixTest, BatchesDoNotDependOnRanksOrStart) {
  const auto alone = mix(1000, 192, 1, LastBatch::keep);
  std::map<uint64_t, std::pair<uint32_t, uint64_t>> drawn;
  for (uint64_t step = 0; step < alone->steps(0, 0); ++step)
    for (const Pick& pick : global_batch(*alone, 7, 0, step)) drawn[pick.position] = {pick.part, pick.sample};
  ASSERT_EQ(drawn.size(), 1000u);
  for (const uint32_t world : {2, 3, 4, 8, 64}) {
    const auto shared = mix(1000, 192, world, LastBatch::keep);
    uint64_t count = 0;
    for (uint64_t step = 0; step < most_steps(*shared, 123); ++step)
      for (const Pick& pick : global_batch(*shared, 7, 123, step)) {
        ASSERT_EQ(drawn.at(pick.position), (std::pair{pick.part, pick.sample}));
        ++count;
      }
    EXPECT_EQ(count, 877u);
  }
}

TEST(MixTest, PaddingAndReplacementsBelongToThePartOfTheirPlace) {
  const auto order = mix(100, 64, 2, LastBatch::pad);
  const uint64_t sizes[] = {100, 1000, 37};
  uint64_t padding = 0;
  for (uint64_t step = 0; step < 2; ++step)
    for (const Pick& pick : global_batch(*order, 1, 0, step)) {
      padding += pick.padding;
      EXPECT_LT(pick.sample, sizes[pick.part]);
      for (uint64_t attempt = 1; attempt < 20; ++attempt)
        EXPECT_LT(order->replacement(1, pick.position, attempt), sizes[pick.part]);
    }
  EXPECT_EQ(padding, 28u);
}

TEST(MixTest, FractionsNeedNotAddUpToOne) {
  const auto stream = [](double a, double b, double c) {
    MixSpec spec;
    spec.parts = {{100, a}, {1000, b}, {37, c}};
    spec.epoch_length = 2000;
    const auto order = make_mix(std::move(spec));
    std::vector<std::pair<uint32_t, uint64_t>> drawn;
    for (uint64_t step = 0; step < 2000; ++step)
      for (const Pick& pick : global_batch(**order, 0, 0, step)) drawn.emplace_back(pick.part, pick.sample);
    return drawn;
  };
  EXPECT_EQ(stream(0.5, 0.3, 0.2), stream(50, 30, 20));
  EXPECT_NE(stream(0.5, 0.3, 0.2), stream(0.5, 0.2, 0.3));
}

TEST(MixTest, AnEpochIsAsLongAsAllPartsUnlessSaid) { EXPECT_EQ(mix(0, 1, 1)->spec().samples, 1137u); }

TEST(MixTest, WhatCannotBeMixedIsRefused) {
  const auto refused = [](std::vector<MixPart> parts, OrderKind kind = OrderKind::global) {
    MixSpec spec;
    spec.parts = std::move(parts);
    spec.kind = kind;
    return make_mix(std::move(spec)).status().message();
  };
  EXPECT_NE(refused({}), "");
  EXPECT_NE(refused({{10, 0}}).find("dataset 0"), std::string::npos);
  EXPECT_NE(refused({{10, 1}, {10, -1}}).find("dataset 1"), std::string::npos);
  EXPECT_NE(refused({{10, NAN}}), "");
  EXPECT_NE(refused({{10, 1e308}, {10, 1e308}}), "");
  EXPECT_NE(refused({{10, 1}, {0, 1}}).find("no samples"), std::string::npos);
  EXPECT_NE(refused({{10, 1}}, OrderKind::streams).find("'streams'"), std::string::npos);
  EXPECT_NE(refused({{10, 1}, {10, 1}, {10, 1e-200}, {10, 1e-200}}).find("dataset 2"), std::string::npos);
  EXPECT_EQ(refused({{10, 1}}), "");
}

}  // namespace
}  // namespace packtrain
