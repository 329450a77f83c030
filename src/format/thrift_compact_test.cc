#include "format/thrift_compact.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

namespace packtrain {
namespace {

std::vector<std::byte> some_metadata() {
  ThriftWriter writer;
  writer.begin_element();
  writer.integer(1, ThriftType::i32, -5);
  writer.integer(2, ThriftType::i64, std::numeric_limits<int64_t>::min());
  writer.small(3, 64);
  writer.boolean(4, true);
  writer.text(40, "a number far from the last");
  writer.begin_list(41, ThriftType::structure, 20);
  for (int i = 0; i < 20; ++i) {
    writer.begin_element();
    writer.integer(1, ThriftType::i16, i);
    writer.end_structure();
  }
  writer.begin_structure(42);
  writer.begin_list(1, ThriftType::binary, 2);
  writer.text_element("x");
  writer.text_element("");
  writer.begin_list(2, ThriftType::i32, 1);
  writer.integer_element(300);
  writer.end_structure();
  writer.integer(43, ThriftType::i64, 1234567890123);
  writer.end_structure();
  return {writer.bytes().begin(), writer.bytes().end()};
}

TEST(ThriftCompactTest, WhatWasWrittenIsReadAndTheRestSkipped) {
  const auto bytes = some_metadata();
  ThriftReader reader(bytes);
  int64_t least = 0, last = 0, sum = 0;
  std::string text;
  const Status status = reader.structure([&](int16_t id, ThriftType type) -> Result<bool> {
    if (id == 2 || id == 43) {
      PACKTRAIN_ASSIGN(value, reader.integer());
      (id == 2 ? least : last) = value;
      return true;
    }
    if (id == 40) {
      PACKTRAIN_ASSIGN(value, reader.text());
      text = value;
      return true;
    }
    if (id != 41) return false;
    EXPECT_EQ(type, ThriftType::list);
    ThriftType element{};
    PACKTRAIN_ASSIGN(count, reader.list(element));
    EXPECT_EQ(count, 20u);
    for (size_t i = 0; i < count; ++i) {
      const Status parsed = reader.structure([&](int16_t, ThriftType) -> Result<bool> {
        PACKTRAIN_ASSIGN(value, reader.integer());
        sum += value;
        return true;
      });
      PACKTRAIN_TRY(parsed);
    }
    return true;
  });
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(reader.position(), bytes.size());
  EXPECT_EQ(least, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(last, 1234567890123);
  EXPECT_EQ(text, "a number far from the last");
  EXPECT_EQ(sum, 190);
}

TEST(ThriftCompactTest, TruncationAndFlippedBitsStayWithinTheBytes) {
  const auto bytes = some_metadata();
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_EQ(ThriftReader(cut).skip(ThriftType::structure, 0).code(), Code::corrupt) << length;
  }
  std::mt19937 rng(5);
  for (int round = 0; round < 20'000; ++round) {
    auto flipped = bytes;
    flipped[rng() % flipped.size()] ^= std::byte(1 << rng() % 8);
    const Status status = ThriftReader(flipped).skip(ThriftType::structure, 0);
    EXPECT_TRUE(status.ok() || status.code() == Code::corrupt) << status.text();
  }
}

TEST(ThriftCompactTest, NestingHasALimit) {
  // Lists of lists: 0x19 is a list of one list.
  const std::vector<std::byte> nested(100'000, std::byte{0x19});
  EXPECT_EQ(ThriftReader(nested).skip(ThriftType::list, 0).code(), Code::corrupt);
}

}  // namespace
}  // namespace packtrain
