// What a loader may take, and what is said where that is too little or too much.
#include "load/memory_plan.h"

#include <gtest/gtest.h>

#include "packtrain/place.h"

namespace packtrain {
namespace {

constexpr uint64_t kMegabyte = 1'000'000;

MemoryNeeds needs_of_200_megabytes() {
  MemoryNeeds needs;
  needs.batch_bytes = 30 * kMegabyte;
  needs.batches = 6;
  needs.read_ahead = 20 * kMegabyte;
  needs.advice = [](uint64_t needed, uint64_t most) {
    return "need " + std::to_string(needed) + " of " + std::to_string(most);
  };
  return needs;
}

std::string refusal(const MemoryLimits& limits) {
  const auto plan = plan_memory(needs_of_200_megabytes(), limits);
  EXPECT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), Code::no_room);
  return plan.status().message();
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(MemoryPlan, WhatIsAskedForMayBeAllThatMayBeTaken) {
  const auto plan = plan_memory(
      needs_of_200_megabytes(),
      {.memory = 300 * kMegabyte, .asked_for = true, .most = 300 * kMegabyte, .most_from = "the machine"});
  ASSERT_TRUE(plan.ok()) << plan.status().text();
  EXPECT_EQ(plan->batches + plan->read_ahead + plan->images, 300 * kMegabyte);
}

TEST(MemoryPlan, MoreThanMayBeTakenIsRefusedWithWhatMayBe) {
  const std::string text = refusal({.memory = 640 * kMegabyte,
                                    .asked_for = true,
                                    .most = 300 * kMegabyte,
                                    .most_from = "cgroup memory.max of /job"});
  EXPECT_TRUE(says(text, "memory=640000000 is more than the ")) << text;
  EXPECT_TRUE(says(text, "cgroup memory.max of /job")) << text;
  EXPECT_TRUE(says(text, "give at most memory=300000000")) << text;
}

TEST(MemoryPlan, AdviceKnowsWhatMayBeTaken) {
  for (const uint64_t memory : {100 * kMegabyte, 640 * kMegabyte}) {
    const std::string text = refusal({.memory = memory, .asked_for = true, .most = 150 * kMegabyte});
    EXPECT_TRUE(says(text, "need 200000000 of 150000000")) << text;
    EXPECT_EQ(says(text, "are allowed by memory="), memory == 100 * kMegabyte) << text;
  }
}

}  // namespace
}  // namespace packtrain
