#include <gtest/gtest.h>

#include <set>

#include "order/test_orders.h"
#include "order/test_statistics.h"

namespace packtrain {
namespace {

// Three classes of 100, 800 and 100 samples, mixed.
int64_t class_of(uint64_t sample) { return sample % 10 == 0 ? 0 : sample % 10 == 9 ? 2 : 1; }

OrderSpec weighted(std::vector<double> weights, uint64_t global_batch, uint32_t world) {
  auto spec = small_spec(OrderKind::global, 1000, global_batch, world, LastBatch::drop);
  spec.weights = std::move(weights);
  spec.class_of = class_of;
  return spec;
}

TEST(WeightsTest, ClassesComeByWeightAndTheirSamplesEquallyOften) {
  const auto order = make_order(weighted({6, 3, 1}, 1000, 1));
  std::vector<uint32_t> samples(1000), classes(3);
  constexpr uint32_t kEpochs = 200;
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (const Pick& pick : global_batch(*order, epoch, 0, 0)) {
      ++samples[pick.sample];
      ++classes[static_cast<size_t>(class_of(pick.sample))];
    }
  }
  const double draws = kEpochs * 1000.0;
  EXPECT_NEAR(classes[0] / draws, 0.6, 0.006);
  EXPECT_NEAR(classes[1] / draws, 0.3, 0.006);
  EXPECT_NEAR(classes[2] / draws, 0.1, 0.006);
  for (size_t of = 0; of < 3; ++of) {
    std::vector<uint32_t> members;
    for (uint64_t sample = 0; sample < 1000; ++sample)
      if (class_of(sample) == static_cast<int64_t>(of)) members.push_back(samples[sample]);
    const auto size = static_cast<double>(members.size());
    EXPECT_LT(chi_squared(members, classes[of] / size), chi_squared_limit(size - 1)) << of;
  }
}

TEST(WeightsTest, DrawsDoNotDependOnRanksBatchOrStart) {
  const auto alone = make_order(weighted({1, 1, 1}, 192, 1));
  std::map<uint64_t, uint64_t> drawn;
  for (uint64_t step = 0; step < alone->steps(0, 0); ++step)
    drawn.merge(by_position(global_batch(*alone, 4, 0, step)));
  for (const uint32_t world : {2, 3, 4, 8, 64}) {
    const auto shared = make_order(weighted({1, 1, 1}, 64 * 3, world));
    for (const Pick& pick : global_batch(*shared, 4, 333, 1)) EXPECT_EQ(drawn.at(pick.position), pick.sample);
  }
}

TEST(WeightsTest, AClassWithoutWeightOrWithoutSamplesIsNeverDrawn) {
  const auto order = make_order(weighted({0, 1, 1, 5}, 1000, 1));
  uint64_t second = 0;
  for (const Pick& pick : global_batch(*order, 0, 0, 0)) {
    EXPECT_NE(class_of(pick.sample), 0);
    second += class_of(pick.sample) == 1;
    EXPECT_NE(class_of(order->replacement(0, pick.position, 1)), 0);
  }
  EXPECT_NEAR(static_cast<double>(second), 500, 80);
}

TEST(WeightsTest, WhatCannotBeDrawnIsRefused) {
  const auto refused = [](OrderSpec spec) { return Order::make(std::move(spec)).status().message(); };
  EXPECT_NE(refused(weighted({1, 1}, 10, 1)).find("sample 9 has class 2"), std::string::npos);
  EXPECT_NE(refused(weighted({0, 0, 0, 3}, 10, 1)), "");
  EXPECT_NE(refused(weighted({1, -1, 1}, 10, 1)).find("class 1 is -1"), std::string::npos);
  EXPECT_NE(refused(weighted({1, NAN, 1}, 10, 1)), "");
  EXPECT_NE(refused(weighted({1e308, 1e308, 1e308}, 10, 1)), "");
  auto spec = weighted({1, 1, 1}, 10, 1);
  spec.kind = OrderKind::source;
  EXPECT_NE(refused(spec).find("'source'"), std::string::npos);
  spec = weighted({1, 1, 1}, 10, 1);
  spec.class_of = nullptr;
  EXPECT_NE(refused(spec), "");
}

TEST(WeightsTest, NoSamplesHaveNoSteps) {
  auto spec = weighted({1, 1, 1}, 10, 1);
  spec.samples = 0;
  EXPECT_EQ(make_order(std::move(spec))->steps(0, 0), 0u);
}

}  // namespace
}  // namespace packtrain
