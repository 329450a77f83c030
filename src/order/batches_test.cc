// Properties that every kind of order has.
#include <gtest/gtest.h>

#include <set>

#include "base/keyed_random.h"
#include "base/test_counts.h"
#include "order/test_orders.h"
#include "order/test_statistics.h"

namespace packtrain {
namespace {

constexpr OrderKind kKinds[] = {OrderKind::source, OrderKind::global, OrderKind::streams};

// Nothing is lost or repeated but what `last` says; every rank has as many steps as any other.
void check_epoch(const Order& order, uint64_t epoch) {
  const OrderSpec& spec = order.spec();
  const uint64_t n = spec.samples, batch = spec.global_batch;
  const uint64_t steps = most_steps(order, 0);
  for (uint32_t rank = 0; rank < spec.world; ++rank) {
    ASSERT_GE(order.steps(0, rank) + (spec.last == LastBatch::keep ? 1 : 0), steps);
  }
  ASSERT_EQ(steps, spec.last == LastBatch::drop ? n / batch : (n + batch - 1) / batch);

  std::vector<bool> seen(n);
  uint64_t unique = 0, padding = 0;
  std::vector<Pick> picks;
  for (uint64_t step = 0; step < steps; ++step) {
    for (uint32_t rank = 0; rank < spec.world; ++rank) {
      order.batch(epoch, 0, step, rank, picks);
      if (spec.last != LastBatch::keep || (step + 1) * batch <= n) {
        ASSERT_EQ(picks.size(), batch / spec.world);
      }
      ASSERT_EQ(picks.empty(), step >= order.steps(0, rank));
      for (const Pick& pick : picks) {
        ASSERT_LT(pick.sample, n);
        ASSERT_EQ(pick.position / batch, step);
        ASSERT_EQ(pick.padding, pick.position >= n);
        if (pick.padding) {
          ++padding;
          continue;
        }
        ASSERT_FALSE(seen[pick.sample]) << pick.sample;
        seen[pick.sample] = true;
        ++unique;
      }
    }
  }
  ASSERT_EQ(unique, spec.last == LastBatch::drop ? steps * batch : n);
  ASSERT_EQ(padding, spec.last == LastBatch::pad ? steps * batch - n : 0);
  order.batch(epoch, 0, steps, 0, picks);
  ASSERT_TRUE(picks.empty());
}

TEST(BatchesTest, RanksAreEqualAndMeetEverySampleOnce) {
  KeyedRandom random(1);
  const int tries = count_of(1000, 10000, 20000);
  for (int i = 0; i < tries; ++i) {
    const OrderKind kind = kKinds[random.below(3)];
    const auto last = static_cast<LastBatch>(random.below(3));
    const auto world = static_cast<uint32_t>(i % 10 == 0 ? 64 : 1 + random.below(12));
    const uint64_t samples = random.below(i % 3 == 0 ? 40 : 1500);
    const uint64_t shards = i % 4 == 0 ? 1 : 1 + random.below(50);
    const uint64_t batch = world * (1 + random.below(i % 5 == 0 ? 200 : 8));
    const auto order = make_order(small_spec(kind, samples, batch, world, last, shards, 0));
    ASSERT_TRUE(order);
    ASSERT_NO_FATAL_FAILURE(check_epoch(*order, random.below(5)))
        << order_kind_name(kind) << " samples " << samples << " shards " << shards << " ranks " << world
        << " batch " << batch << " last " << static_cast<int>(last);
  }
}

TEST(BatchesTest, OneShardServesSixtyFourRanks) {
  for (const OrderKind kind : kKinds)
    for (const LastBatch last : {LastBatch::drop, LastBatch::pad, LastBatch::keep})
      for (const uint64_t samples : {0, 1, 63, 64, 65, 1000, 4160})
        ASSERT_NO_FATAL_FAILURE(check_epoch(*make_order(small_spec(kind, samples, 64, 64, last, 1, 0)), 3));
}

TEST(BatchesTest, HoldTheSameSamplesForAnyWorldSize) {
  for (const OrderKind kind : kKinds) {
    for (const LastBatch last : {LastBatch::drop, LastBatch::pad, LastBatch::keep}) {
      const auto alone = make_order(small_spec(kind, 5000, 192, 1, last));
      for (const uint64_t consumed : {0, 1, 777}) {
        const uint64_t steps = most_steps(*alone, consumed);
        for (const uint32_t world : {2, 3, 4, 8, 64}) {
          const auto shared = make_order(small_spec(kind, 5000, 192, world, last));
          ASSERT_EQ(most_steps(*shared, consumed), steps);
          for (uint64_t step = 0; step < steps; ++step)
            ASSERT_EQ(by_position(global_batch(*alone, 2, consumed, step)),
                      by_position(global_batch(*shared, 2, consumed, step)))
                << order_kind_name(kind) << " world " << world << " step " << step;
        }
      }
    }
  }
}

TEST(BatchesTest, ResumeBringsExactlyTheUnseenSamples) {
  KeyedRandom random(2);
  constexpr uint32_t kWorlds[] = {1, 2, 3, 4, 6, 8, 64};
  for (int i = 0; i < count_of(100, 600, 600); ++i) {
    const OrderKind kind = kKinds[i % 3];
    const uint64_t samples = 1 + random.below(4000), epoch = random.below(100);
    std::vector<int> seen(samples);
    uint64_t consumed = 0;
    // Several runs, each with other ranks and another batch, each stopped at some step; the last one ends.
    for (int run = 0; run < 4; ++run) {
      const uint32_t world = kWorlds[random.below(std::size(kWorlds))];
      const uint64_t batch = world * (1 + random.below(9));
      const auto order = make_order(small_spec(kind, samples, batch, world, LastBatch::keep));
      uint64_t steps = most_steps(*order, consumed);
      if (run < 3) steps = random.below(steps + 1);
      const uint64_t before = consumed;
      for (uint64_t step = 0; step < steps; ++step) {
        for (const Pick& pick : global_batch(*order, epoch, before, step)) {
          ++seen[pick.sample];
          ++consumed;
        }
      }
    }
    ASSERT_EQ(consumed, samples);
    ASSERT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<ptrdiff_t>(samples));
  }
}

// As a run begins it: with 64 chains, or more where its own ranks need them. It goes on on any number of
// ranks.
TEST(BatchesTest, StreamsGoOnFromAnyWorldSizeToAnyOther) {
  constexpr uint32_t kWorlds[] = {1, 2, 3, 4, 5, 6, 7, 8, 64};
  constexpr uint64_t kSamples = 1500, kEpoch = 3;
  for (const LastBatch last : {LastBatch::drop, LastBatch::pad, LastBatch::keep}) {
    for (const uint32_t before : kWorlds) {
      const auto first = make_order(
          small_spec(OrderKind::streams, kSamples, uint64_t{before} * 3, before, LastBatch::keep, 7, 0));
      const auto alone = [&](uint64_t batch) {
        return make_order(small_spec(OrderKind::streams, kSamples, batch, 1, last, 7, first->spec().chains));
      };
      for (const uint32_t after : kWorlds) {
        OrderSpec spec = small_spec(OrderKind::streams, kSamples, uint64_t{after} * 4, after, last, 7,
                                    first->spec().chains);
        spec.window_bytes = first->spec().window_bytes;
        OrderSpec like = alone(spec.global_batch)->spec();
        like.window_bytes = spec.window_bytes;
        const auto second = make_order(spec), reference = make_order(like);
        const uint64_t steps = 1 + (before * 7 + after) % std::min<uint64_t>(20, first->steps(0, 0) - 1);
        const uint64_t consumed = steps * first->spec().global_batch;
        std::vector<int> seen(kSamples);
        for (uint64_t step = 0; step < steps; ++step)
          for (const Pick& pick : global_batch(*first, kEpoch, 0, step)) ++seen[pick.sample];
        const uint64_t rest = most_steps(*second, consumed);
        ASSERT_EQ(rest, reference->steps(consumed, 0));
        for (uint32_t rank = 0; rank < after; ++rank)
          ASSERT_GE(second->steps(consumed, rank) + (last == LastBatch::keep ? 1 : 0), rest);
        for (uint64_t step = 0; step < rest; ++step) {
          const auto picks = global_batch(*second, kEpoch, consumed, step);
          ASSERT_EQ(by_position(picks), by_position(global_batch(*reference, kEpoch, consumed, step)))
              << before << " to " << after << " ranks, step " << step;
          for (const Pick& pick : picks) seen[pick.sample] += pick.padding ? 0 : 1;
          std::vector<Pick> own;
          for (uint32_t rank = 0; rank < after && last != LastBatch::keep; ++rank) {
            second->batch(kEpoch, consumed, step, rank, own);
            ASSERT_EQ(own.size(), 4u);
          }
        }
        const uint64_t done = last == LastBatch::drop ? consumed + rest * spec.global_batch : kSamples;
        ASSERT_EQ(static_cast<uint64_t>(std::count(seen.begin(), seen.end(), 1)), done);
        ASSERT_EQ(static_cast<uint64_t>(std::count(seen.begin(), seen.end(), 0)), kSamples - done);
      }
    }
  }
}

TEST(BatchesTest, ResumeAtTheEndOrBehindItHasNoSteps) {
  for (const OrderKind kind : kKinds) {
    const auto order = make_order(small_spec(kind, 100, 8, 2, LastBatch::pad));
    std::vector<Pick> picks(3);
    for (const uint64_t consumed : {uint64_t{100}, uint64_t{101}, UINT64_MAX}) {
      EXPECT_EQ(order->steps(consumed, 0), 0u);
      order->batch(0, consumed, 0, 1, picks);
      EXPECT_TRUE(picks.empty());
    }
  }
}

TEST(BatchesTest, ABatchLargerThanTheSetIsDroppedPaddedOrKept) {
  for (const OrderKind kind : kKinds) {
    EXPECT_EQ(make_order(small_spec(kind, 10, 64, 2, LastBatch::drop))->steps(0, 0), 0u);
    const auto padded = make_order(small_spec(kind, 10, 64, 2, LastBatch::pad));
    ASSERT_EQ(padded->steps(0, 1), 1u);
    const auto picks = global_batch(*padded, 0, 0, 0);
    ASSERT_EQ(picks.size(), 64u);
    std::set<uint64_t> samples;
    for (const Pick& pick : picks) samples.insert(pick.sample);
    EXPECT_EQ(samples.size(), 10u);
    EXPECT_EQ(std::count_if(picks.begin(), picks.end(), [](const Pick& pick) { return pick.padding; }), 54);
    const auto kept = make_order(small_spec(kind, 10, 64, 2, LastBatch::keep));
    std::vector<Pick> part;
    kept->batch(0, 0, 0, 1, part);
    EXPECT_EQ(part.size(), 5u);
  }
}

TEST(BatchesTest, EpochsAndSeedsDifferAndAreUncorrelated) {
  for (const OrderKind kind : {OrderKind::global, OrderKind::streams}) {
    constexpr uint64_t kSamples = 100000;
    const auto values = [&](uint64_t seed, uint64_t epoch) {
      auto spec = small_spec(kind, kSamples, 1000, 1, LastBatch::drop, 1000, 64);
      spec.seed = seed;
      const auto order = make_order(std::move(spec));
      std::vector<double> all;
      for (uint64_t step = 0; step < kSamples / 1000; ++step)
        for (const Pick& pick : global_batch(*order, epoch, 0, step))
          all.push_back(static_cast<double>(pick.sample));
      return all;
    };
    const auto first = values(7, 0);
    // In a stream a place of a batch belongs to one chain, all of whose 16 shards it draws from.
    const double limit = kind == OrderKind::global ? 4 / std::sqrt(kSamples) : 0.05;
    for (const auto& other : {values(7, 1), values(7, 2), values(8, 0), values(8, 1)}) {
      EXPECT_LT(std::abs(correlation(first, other)), limit);
      uint64_t same = 0;
      for (uint64_t i = 0; i < kSamples; ++i) same += first[i] == other[i];
      EXPECT_LT(same, 10u);  // one on average
    }
    EXPECT_EQ(first, values(7, 0));
  }
}

TEST(BatchesTest, ClassSortedDataHasAsManyClassesPerBatchAsARandomDraw) {
  constexpr uint64_t kClasses = 1000, kBatch = 256;
  OrderSpec spec = small_spec(OrderKind::global, kImageNetSamples, kBatch, 1, LastBatch::drop);
  const auto order = make_order(spec);
  double sum = 0;
  std::vector<Pick> picks;
  constexpr uint64_t kSteps = 2000;
  for (uint64_t step = 0; step < kSteps; ++step) {
    order->batch(0, 0, step * 2, 0, picks);
    std::set<uint64_t> classes;
    for (const Pick& pick : picks) classes.insert(pick.sample * kClasses / kImageNetSamples);
    sum += static_cast<double>(classes.size());
  }
  // A batch has a standard deviation of 4.5 classes, the mean of 2,000 batches one of 0.1.
  EXPECT_NEAR(sum / kSteps, distinct_in_draws(kClasses, kBatch), 0.4);
}

// A run that was checkpointed goes on with these orders: a change here breaks it.
TEST(BatchesTest, StayWhatTheyWere) {
  const auto digest = [](const Order& order) {
    uint64_t sum = 0;
    for (uint64_t step = 0; step < order.steps(0, 0); ++step)
      for (const Pick& pick : global_batch(order, 3, 0, step))
        sum = join_keys(sum, join_keys(pick.part, pick.sample));
    return sum;
  };
  EXPECT_EQ(digest(*make_order(small_spec(OrderKind::global, 10000, 100, 1, LastBatch::pad))),
            8832736867373362700u);
  EXPECT_EQ(digest(*make_order(small_spec(OrderKind::streams, 10000, 100, 1, LastBatch::pad))),
            4007055403236320548u);
  auto weighted = small_spec(OrderKind::global, 10000, 100, 1, LastBatch::pad);
  weighted.weights = {1, 2, 3};
  weighted.class_of = [](uint64_t sample) { return static_cast<int64_t>(sample % 3); };
  EXPECT_EQ(digest(*make_order(std::move(weighted))), 17534549556537944944u);
  MixSpec mix;
  mix.parts = {{100, 0.25}, {5000, 0.75}};
  mix.epoch_length = 10000;
  mix.global_batch = 100;
  const auto mixed = make_mix(std::move(mix));
  ASSERT_TRUE(mixed.ok());
  EXPECT_EQ(digest(**mixed), 5976379059219821300u);
}

TEST(BatchesTest, ReplacementsDependOnThePlaceAndTheAttempt) {
  for (const OrderKind kind : kKinds) {
    const auto one = make_order(small_spec(kind, 1000, 64, 1, LastBatch::drop));
    const auto two = make_order(small_spec(kind, 1000, 32, 2, LastBatch::pad));
    std::set<uint64_t> samples;
    for (uint64_t attempt = 1; attempt <= 100; ++attempt) {
      const uint64_t sample = one->replacement(3, 17, attempt);
      EXPECT_LT(sample, 1000u);
      EXPECT_EQ(sample, two->replacement(3, 17, attempt));
      samples.insert(sample);
    }
    EXPECT_GT(samples.size(), 80u);
    EXPECT_NE(one->replacement(3, 17, 1), one->replacement(3, 18, 1));
  }
}

TEST(BatchesTest, NumbersThatCannotBeAreNamed) {
  const auto message = [](OrderSpec spec) {
    const auto order = Order::make(std::move(spec));
    return order.ok() ? std::string() : order.status().message();
  };
  const auto spec = small_spec(OrderKind::global, 100, 64, 3, LastBatch::drop);
  EXPECT_EQ(message(spec),
            "a global batch of 64 cannot be shared equally by 3 ranks; the nearest that can: 63 and 66");
  EXPECT_EQ(message(small_spec(OrderKind::global, 100, 2, 3, LastBatch::drop)),
            "a global batch of 2 cannot be shared equally by 3 ranks; the nearest that can: 3");
  EXPECT_NE(message(small_spec(OrderKind::global, 100, 0, 3, LastBatch::drop)), "");
  EXPECT_NE(message(small_spec(OrderKind::global, 100, 1, 0, LastBatch::drop)), "");
  EXPECT_NE(message(small_spec(OrderKind::global, UINT64_MAX, 1, 1, LastBatch::drop)), "");
}

}  // namespace
}  // namespace packtrain
