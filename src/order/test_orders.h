// For tests: orders of any kind over made-up shards, and what all of their ranks get.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "packtrain/order.h"

namespace packtrain {

constexpr uint64_t kImageNetSamples = 1281167;
constexpr uint64_t kImageNetShards = 1281;

// Shards of nearly equal size.
inline std::vector<StreamShard> even_shards(uint64_t samples, uint64_t shards, uint64_t sample_bytes) {
  std::vector<StreamShard> all;
  for (uint64_t i = 0; i < shards; ++i) {
    const uint64_t first = samples * i / shards, end = samples * (i + 1) / shards;
    all.push_back({first, end - first, (end - first) * sample_bytes});
  }
  return all;
}

// Pieces of 10 samples, windows of 8 pieces a chain.
inline OrderSpec small_spec(OrderKind kind, uint64_t samples, uint64_t global_batch, uint32_t world,
                            LastBatch last, uint64_t shards = 7, uint32_t chains = 192) {
  OrderSpec spec;
  spec.kind = kind;
  spec.samples = samples;
  spec.seed = 42;
  spec.global_batch = global_batch;
  spec.world = world;
  spec.last = last;
  if (kind == OrderKind::streams) {
    spec.shards = even_shards(samples, shards, 100);
    spec.chains = chains;
    spec.piece_bytes = 1000;
    spec.window_bytes = uint64_t{8000} * (chains == 0 ? 64 : chains);
  }
  return spec;
}

inline std::shared_ptr<const Order> make_order(OrderSpec spec) {
  auto order = Order::make(std::move(spec));
  EXPECT_TRUE(order.ok()) << order.status().text();
  return order.ok() ? *order : nullptr;
}

// One global batch: what the ranks get, rank after rank.
inline std::vector<Pick> global_batch(const Order& order, uint64_t epoch, uint64_t consumed, uint64_t step) {
  std::vector<Pick> all, part;
  for (uint32_t rank = 0; rank < order.spec().world; ++rank) {
    order.batch(epoch, consumed, step, rank, part);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Position to sample, in the order of positions.
inline std::map<uint64_t, uint64_t> by_position(const std::vector<Pick>& picks) {
  std::map<uint64_t, uint64_t> all;
  for (const Pick& pick : picks) all[pick.position] = pick.sample;
  return all;
}

inline uint64_t most_steps(const Order& order, uint64_t consumed) {
  uint64_t most = 0;
  for (uint32_t rank = 0; rank < order.spec().world; ++rank)
    most = std::max(most, order.steps(consumed, rank));
  return most;
}

}  // namespace packtrain
