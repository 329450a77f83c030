// What is read ahead: the memory it lies in, and the pieces that are kept.
#include "load/read_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "base/keyed_random.h"
#include "load/piece_table.h"

namespace packtrain {
namespace {

TEST(ReadMemoryTest, StretchesNeverOverlapAndAllComesBack) {
  ReadMemory memory(100'000);
  ASSERT_TRUE(memory.map().ok());
  KeyedRandom random(1);
  struct Taken {
    MutableBytes bytes;
    uint8_t mark;
  };
  std::vector<Taken> taken;
  uint64_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    if (random.below(2) == 0) {
      const MutableBytes bytes = memory.take(1 + random.below(5'000));
      refused += bytes.empty();
      if (bytes.empty()) continue;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % 64, 0u);
      taken.push_back({bytes, static_cast<uint8_t>(round)});
      std::memset(bytes.data(), taken.back().mark, bytes.size());
    } else if (!taken.empty()) {
      const size_t which = random.below(taken.size());
      for (const std::byte byte : taken[which].bytes)
        ASSERT_EQ(static_cast<uint8_t>(byte), taken[which].mark);
      memory.give_back(taken[which].bytes);
      taken[which] = taken.back();
      taken.pop_back();
    }
    uint64_t sum = 0;
    for (const Taken& one : taken) sum += (one.bytes.size() + 63) / 64 * 64;
    ASSERT_EQ(memory.in_use(), sum);
  }
  EXPECT_GT(refused, 0u);  // it was full now and then
  EXPECT_LE(memory.touched(), memory.size());
  for (const Taken& one : taken) memory.give_back(one.bytes);
  EXPECT_EQ(memory.take(memory.size()).size(), memory.size());  // one stretch again
  EXPECT_TRUE(memory.take(1).empty());
}

TEST(ReadMemoryTest, LittleIsTouchedWhereLittleIsUsed) {
  ReadMemory memory(64 << 20);
  ASSERT_TRUE(memory.map().ok());
  for (int i = 0; i < 1000; ++i) memory.give_back(memory.take(1 << 20));
  EXPECT_EQ(memory.touched(), 1u << 20);
}

TEST(ReadMemoryTest, NoAddressSpaceIsASentence) {
  ReadMemory memory(uint64_t{1} << 60);
  const Status status = memory.map();
  EXPECT_EQ(status.code(), Code::no_room);
  EXPECT_NE(status.message().find("ulimit -v"), std::string::npos);
}

TEST(PieceTableTest, PiecesAreFoundUntilTheirLastPosition) {
  PieceTable table;
  std::map<uint64_t, std::pair<uint64_t, Extent*>> expected;  // by first sample
  std::vector<Extent> extents(500);
  KeyedRandom random(2);
  uint64_t position = 0, ended = 0;
  for (int round = 0; round < 20'000; ++round) {
    const uint64_t first = random.below(3'000) * 64;  // low bits alike
    ASSERT_EQ(table.find(first), expected.contains(first) ? expected[first].second : nullptr);
    if (!expected.contains(first)) {
      const uint64_t last = position + random.below(400);
      Extent* const extent = &extents[random.below(extents.size())];
      table.add(first, last, extent);
      expected[first] = {last, extent};
    }
    position += random.below(3);
    uint64_t gone = 0;
    while (Extent* const extent = table.take_ended(position)) {
      const auto found = std::find_if(expected.begin(), expected.end(), [&](const auto& one) {
        return one.second.second == extent && one.second.first < position;
      });
      ASSERT_NE(found, expected.end());
      expected.erase(found);
      ++gone;
    }
    ended += gone;
    for (const auto& [one, piece] : expected) ASSERT_GE(piece.first, position) << one;
  }
  EXPECT_GT(ended, 10'000u);
  while (table.take_ended(UINT64_MAX)) ++ended;
  EXPECT_EQ(table.find(expected.begin()->first), nullptr);
}

}  // namespace
}  // namespace packtrain
