// What the order `streams` promises beyond what every order does.
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <thread>

#include "base/test_counts.h"
#include "order/test_orders.h"
#include "order/test_statistics.h"

namespace packtrain {
namespace {

constexpr uint64_t kSampleBytes = 110000;

OrderSpec imagenet(uint64_t global_batch, uint32_t world) {
  OrderSpec spec;
  spec.kind = OrderKind::streams;
  spec.samples = kImageNetSamples;
  spec.seed = 5;
  spec.global_batch = global_batch;
  spec.world = world;
  spec.last = LastBatch::keep;
  spec.shards = even_shards(kImageNetSamples, kImageNetShards, kSampleBytes);
  return spec;
}

uint64_t shard_of(uint64_t sample) {
  return (sample * kImageNetShards + kImageNetShards - 1) / kImageNetSamples;
}

TEST(StreamsTest, BatchesComeFromAsManyShardsAsAFullShuffles) {
  const auto order = make_order(imagenet(256, 1));
  const uint64_t steps = order->steps(0, 0);
  double sum = 0;
  size_t least = 256;
  std::vector<Pick> picks;
  for (uint64_t step = 0; step + 1 < steps; ++step) {
    order->batch(0, 0, step, 0, picks);
    std::set<uint64_t> shards;
    for (const Pick& pick : picks) shards.insert(shard_of(pick.sample));
    sum += static_cast<double>(shards.size());
    least = std::min(least, shards.size());
  }
  const double mean = sum / static_cast<double>(steps - 1);
  RecordProperty("mean_shards", std::to_string(mean));
  RecordProperty("least_shards", std::to_string(least));
  EXPECT_GE(mean, 220);
  EXPECT_GE(least, 210u);  // the worst batch of the epoch
}

// A piece is held from the first of its samples to the last.
TEST(StreamsTest, PiecesAreReadOnceByOneRankAndHeldWithinTheWindow) {
  for (const uint32_t world : {4, 1, 64}) {
    if (few_will_do() && world != 4) break;
    const auto order = make_order(imagenet(256, world));
    struct Held {
      uint32_t rank, count, left;
    };
    std::map<uint64_t, Held> pieces;
    uint64_t held = 0, most_held = 0;
    std::vector<Pick> picks;
    for (uint64_t step = 0; step < most_steps(*order, 0); ++step) {
      for (uint32_t rank = 0; rank < world; ++rank) {
        order->batch(1, 0, step, rank, picks);
        for (const Pick& pick : picks) {
          const auto [piece, is_new] =
              pieces.try_emplace(pick.piece_first, Held{rank, pick.piece_count, pick.piece_count});
          if (is_new) held += pick.piece_count * kSampleBytes;
          ASSERT_EQ(piece->second.rank, rank);
          ASSERT_EQ(piece->second.count, pick.piece_count);
          ASSERT_GT(piece->second.left, 0u);
          ASSERT_LT(pick.sample - pick.piece_first, pick.piece_count);
          if (--piece->second.left == 0) held -= pick.piece_count * kSampleBytes;
        }
      }
      most_held = std::max(most_held, held);
    }
    EXPECT_EQ(held, 0u);
    EXPECT_LE(most_held, uint64_t{4} << 30);
    EXPECT_GE(most_held, uint64_t{1} << 30);
    // The pieces lie side by side, within shards, and are large.
    uint64_t next = 0;
    for (const auto& [first, piece] : pieces) {
      ASSERT_EQ(first, next);
      ASSERT_EQ(shard_of(first), shard_of(first + piece.count - 1));
      ASSERT_LE(piece.count * kSampleBytes, 2u << 20);
      next += piece.count;
    }
    EXPECT_EQ(next, kImageNetSamples);
    EXPECT_GE(kImageNetSamples * kSampleBytes / pieces.size(), 3u << 19);
  }
}

// What a rank keeps is let go of by it.
TEST(StreamsTest, EveryPickKnowsTheLastPositionOfItsPiece) {
  for (const uint32_t world : {1, 3}) {
    const auto order = make_order(small_spec(OrderKind::streams, 5000, 96, world, LastBatch::pad, 7, 8));
    std::map<uint64_t, uint64_t> last, said;  // of each piece
    for (uint64_t step = 0; step < order->steps(0, 0); ++step) {
      for (const Pick& pick : global_batch(*order, 2, 0, step)) {
        const auto [at, is_new] = said.try_emplace(pick.piece_first, pick.piece_last);
        ASSERT_EQ(at->second, pick.piece_last);
        if (!pick.padding) last[pick.piece_first] = std::max(last[pick.piece_first], pick.position);
      }
    }
    EXPECT_GE(last.size(), 500u);
    EXPECT_EQ(last, said);
  }
}

// A run may go on where its chains cannot be shared equally.
TEST(StreamsTest, FewPiecesAreSharedByRanksThatDoNotDivideTheChains) {
  for (const uint32_t world : {3, 5, 6, 7, 12, 48, 63, 100}) {
    auto spec = small_spec(OrderKind::streams, 60'000, uint64_t{world} * 12, world, LastBatch::drop, 20, 64);
    const auto order = make_order(spec);
    std::set<std::pair<uint64_t, uint32_t>> reads;  // of pieces, by ranks
    std::map<uint64_t, uint32_t> pieces;
    std::vector<std::set<uint64_t>> chains(world);
    std::vector<Pick> picks;
    for (uint64_t step = 0; step < order->steps(0, 0); ++step) {
      for (uint32_t rank = 0; rank < world; ++rank) {
        order->batch(0, 0, step, rank, picks);
        ASSERT_EQ(picks.size(), 12u);
        for (const Pick& pick : picks) {
          reads.emplace(pick.piece_first, rank);
          pieces[pick.piece_first] = pick.piece_count;
          chains[rank].insert(pick.position % 64);
        }
      }
    }
    // Of each class of ranks, fewer chains than ranks are shared, each by few.
    const uint64_t g = std::gcd(64u, world), ranks = world / g, left_over = 64 / g % ranks;
    const double shared = static_cast<double>(g * (ranks + 2 * left_over)) / 64;
    EXPECT_LE(static_cast<double>(reads.size()), static_cast<double>(pieces.size()) * (1 + shared)) << world;
    uint64_t most = 0;
    for (const auto& own : chains) most = std::max<uint64_t>(most, own.size());
    EXPECT_LE(most, 64 / g / ranks + std::min<uint64_t>(left_over, 3)) << world;
    EXPECT_GE(order->bytes_held(), most * 7000);  // a window of a chain has nearly 8,000 bytes
  }
}

TEST(StreamsTest, WindowsOfDifferentChainsDoNotBeginTogether) {
  const auto order = make_order(imagenet(256, 1));
  std::set<uint64_t> seen;
  std::vector<Pick> picks;
  uint64_t most_new = 0, all_new = 0;
  const uint64_t from = 500, steps = 1000;  // after the first windows
  for (uint64_t step = 0; step < from + steps; ++step) {
    order->batch(0, 0, step, 0, picks);
    uint64_t fresh = 0;
    for (const Pick& pick : picks) fresh += seen.insert(pick.piece_first).second;
    if (step < from) continue;
    most_new = std::max(most_new, fresh);
    all_new += fresh;
  }
  // 256 samples are 14 pieces; were all windows to begin at once, a batch would need nearly 256.
  EXPECT_LT(most_new, 10 * (all_new / steps));
}

TEST(StreamsTest, ShardsChangeRanksFromEpochToEpoch) {
  const auto order = make_order(imagenet(256, 64));
  std::set<uint64_t> first, second;
  std::vector<Pick> picks;
  for (uint64_t step = 0; step < 500; ++step) {
    order->batch(0, 0, step, 7, picks);
    for (const Pick& pick : picks) first.insert(shard_of(pick.sample));
    order->batch(1, 0, step, 7, picks);
    for (const Pick& pick : picks) second.insert(shard_of(pick.sample));
  }
  std::vector<uint64_t> both;
  std::set_intersection(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(both));
  EXPECT_GE(first.size(), 18u);
  EXPECT_LE(both.size(), 4u);
}

TEST(StreamsTest, ClassSortedDataHasNearlyAsManyClassesAsARandomDraw) {
  const auto order = make_order(imagenet(256, 1));
  double sum = 0;
  std::vector<Pick> picks;
  for (uint64_t step = 0; step < 5000; ++step) {
    order->batch(2, 0, step, 0, picks);
    std::set<uint64_t> classes;
    for (const Pick& pick : picks) classes.insert(pick.sample * 1000 / kImageNetSamples);
    sum += static_cast<double>(classes.size());
  }
  EXPECT_GE(sum / 5000, 0.97 * distinct_in_draws(1000, 256));
}

TEST(StreamsTest, AWindowIsShuffledExactly) {
  // One chain, one window, five samples: each at each place equally often over seeds.
  constexpr uint32_t kSeeds = 20000;
  std::vector<uint32_t> counts(25);
  std::vector<Pick> picks;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    auto spec = small_spec(OrderKind::streams, 5, 5, 1, LastBatch::drop, 2, 1);
    spec.seed = seed;
    make_order(std::move(spec))->batch(0, 0, 0, 0, picks);
    for (uint64_t i = 0; i < 5; ++i) ++counts[i * 5 + picks[i].sample];
  }
  EXPECT_LT(chi_squared(counts, kSeeds / 5.0), chi_squared_limit(16));
}

TEST(StreamsTest, SamplesLargerThanAPieceMakeSmallerWindows) {
  auto spec = small_spec(OrderKind::streams, 2000, 16, 1, LastBatch::drop, 10, 16);
  for (StreamShard& shard : spec.shards) shard.bytes = shard.count * 4000;  // four times a piece
  const auto order = make_order(std::move(spec));
  std::vector<Pick> picks;
  order->batch(0, 0, 60, 0, picks);
  for (const Pick& pick : picks) EXPECT_EQ(pick.piece_count, 1u);
}

TEST(StreamsTest, PaddingRepeatsWhatTheRankHasRead) {
  const auto order = make_order(small_spec(OrderKind::streams, 1000, 300, 4, LastBatch::pad, 7, 64));
  std::map<uint64_t, uint32_t> owner;
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<Pick> picks;
    for (uint64_t step = 0; step < 4; ++step) {
      for (uint32_t rank = 0; rank < 4; ++rank) {
        order->batch(0, 0, step, rank, picks);
        for (const Pick& pick : picks) {
          if (pass == 0 && !pick.padding) owner[pick.sample] = rank;
          if (pass == 1 && pick.padding) {
            EXPECT_EQ(owner.at(pick.sample), rank);
          }
        }
      }
    }
  }
}

TEST(StreamsTest, ThreadsSeeTheSameOrder) {
  const auto spec = small_spec(OrderKind::streams, 20000, 64, 1, LastBatch::drop, 20, 64);
  const auto reference = make_order(spec), shared = make_order(spec);
  std::vector<std::thread> threads;
  std::vector<uint64_t> different(4);
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<Pick> picks;
      for (uint64_t step = 0; step < 300; ++step) {
        const uint64_t epoch = (step + t) % 3, at = (step * 7 + t * 100) % 312;
        shared->batch(epoch, 0, at, 0, picks);
        different[t] += by_position(picks) != by_position(global_batch(*reference, epoch, 0, at));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(different, std::vector<uint64_t>(4));
}

TEST(StreamsTest, TheNumberOfChainsFollowsTheRanks) {
  EXPECT_EQ(make_order(small_spec(OrderKind::streams, 10, 4, 4, LastBatch::drop, 1, 0))->spec().chains, 64u);
  EXPECT_EQ(make_order(small_spec(OrderKind::streams, 10, 3, 3, LastBatch::drop, 1, 0))->spec().chains, 192u);
  EXPECT_EQ(make_order(small_spec(OrderKind::streams, 10, 128, 128, LastBatch::drop, 1, 0))->spec().chains,
            128u);
}

TEST(StreamsTest, WhatCannotBeCoveredIsRefused) {
  const auto refused = [](OrderSpec spec) { return Order::make(std::move(spec)).status().message(); };
  auto spec = small_spec(OrderKind::streams, 100, 4, 1, LastBatch::drop, 2, 64);
  spec.shards[1].first += 1;
  EXPECT_NE(refused(spec), "");
  spec.shards.pop_back();
  EXPECT_EQ(refused(spec), "the shards of the order hold 50 samples, but there are 100");
  spec = small_spec(OrderKind::streams, 100, 4, 1, LastBatch::drop, 2, 64);
  spec.window_bytes = 0;
  EXPECT_NE(refused(spec), "");
  EXPECT_NE(refused(small_spec(OrderKind::streams, 10, 1u << 30, 1u << 30, LastBatch::drop, 1, 0)), "");
}

}  // namespace
}  // namespace packtrain
