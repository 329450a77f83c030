#include "pack/memory_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace packtrain {
namespace {

constexpr uint64_t kValue = MemoryGate::kSmall;

TEST(MemoryGateTest, ThreadsTogetherHoldNoMoreThanTheLimit) {
  MemoryGate gate(3 * kValue + 1);
  std::atomic<int> holding{0}, most{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 50; ++turn) {
        const auto hold = gate.hold(kValue);
        ASSERT_TRUE(hold.ok());
        const int now = ++holding;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        --holding;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(most, 1);
  EXPECT_LE(most, 3);
}

TEST(MemoryGateTest, OneValueAloneMayBeLargerThanTheLimit) {
  MemoryGate gate(1);
  for (int turn = 0; turn < 3; ++turn) {
    auto hold = gate.hold(2 * kValue);
    ASSERT_TRUE(hold.ok());
    // What is small is not counted, and does not wait for it.
    EXPECT_TRUE(gate.hold(kValue - 1).ok());
    MemoryGate::Hold moved = std::move(*hold);
    *hold = std::move(moved);
  }
}

TEST(MemoryGateTest, WhatNoMemoryHoldsIsRefused) {
  MemoryGate gate;
  const Status status = gate.hold(uint64_t{1} << 60).status();
  EXPECT_EQ(status.code(), Code::no_room);
  EXPECT_NE(status.message().find("give the job more"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace packtrain
