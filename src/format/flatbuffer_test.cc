#include "format/flatbuffer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "packtrain/storage.h"

namespace packtrain {
namespace {

using Slots = std::vector<FlatWriter::Slot>;

// Two texts in two tables of a vector, numbers of all sizes, and structs that must be aligned.
std::vector<std::byte> some_buffer() {
  FlatWriter writer;
  const size_t root = writer.root(Slots{{0, 2, 0xABCD}, {1, 1, 7}, {3, 4}, {4, 8, 1234567890123}, {6, 4}});
  const size_t children = writer.tables(root, 3, 2);
  for (size_t i = 0; i < 2; ++i) {
    const size_t child = writer.element(children, i, Slots{{0, 4}, {2, 4}});
    writer.text(child, 0, i == 0 ? "first" : "");
    writer.table(child, 2, Slots{{0, 4, i}});
  }
  const uint64_t pairs[] = {1, 2, 3, 4};
  writer.structs(root, 6, std::as_bytes(std::span(pairs)), 16);
  const Bytes made = writer.finish();
  return {made.begin(), made.end()};
}

// Reads every value there may be; the codes of all failures must be corrupt.
void read_all(Bytes buffer) {
  const auto expect_sound = [](const auto& result) {
    EXPECT_TRUE(result.ok() || result.status().code() == Code::corrupt) << result.status().text();
    return result.ok();
  };
  const auto root = FlatTable::root(buffer);
  if (!expect_sound(root)) return;
  for (uint16_t slot = 0; slot < 9; ++slot) {
    expect_sound(root->number<uint8_t>(slot, 0));
    expect_sound(root->number<uint64_t>(slot, 0));
    expect_sound(root->text(slot));
    expect_sound(root->structs(slot, 16));
    if (const auto table = root->table(slot); expect_sound(table)) expect_sound(table->text(0));
    const auto tables = root->tables(slot);
    if (!expect_sound(tables)) continue;
    for (size_t i = 0; i < tables->size(); ++i) {
      if (const auto table = tables->at(i); expect_sound(table)) expect_sound(table->text(0));
    }
  }
}

TEST(FlatbufferTest, WhatWasWrittenIsRead) {
  const auto buffer = some_buffer();
  EXPECT_EQ(buffer.size() % 8, 0u);
  const auto root = FlatTable::root(buffer);
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(*root->number<uint16_t>(0, 1), 0xABCD);
  EXPECT_EQ(*root->number<uint8_t>(1, 1), 7);
  EXPECT_EQ(*root->number<int64_t>(4, 1), 1234567890123);
  const auto children = root->tables(3);
  ASSERT_TRUE(children.ok());
  ASSERT_EQ(children->size(), 2u);
  EXPECT_EQ(*children->at(0)->text(0), "first");
  EXPECT_EQ(*children->at(1)->text(0), "");
  EXPECT_EQ(*children->at(1)->table(2)->number<int32_t>(0, 9), 1);
  const auto structs = root->structs(6, 16);
  ASSERT_TRUE(structs.ok());
  ASSERT_EQ(structs->count, 2u);
  EXPECT_EQ(load_le<uint64_t>(structs->bytes.data() + 24), 4u);
  EXPECT_EQ((structs->bytes.data() - buffer.data()) % 8, 0);
}

TEST(FlatbufferTest, SlotsWithoutAValueHaveTheirDefault) {
  const auto buffer = some_buffer();
  const auto root = FlatTable::root(buffer);
  ASSERT_TRUE(root.ok());
  for (const uint16_t slot : {uint16_t{2}, uint16_t{5}, uint16_t{7}, uint16_t{65535}}) {
    EXPECT_EQ(*root->number<int32_t>(slot, -5), -5);
    EXPECT_EQ(*root->text(slot), "");
    EXPECT_FALSE(root->table(slot)->present());
    EXPECT_EQ(root->tables(slot)->size(), 0u);
    EXPECT_EQ(root->structs(slot, 8)->count, 0u);
  }
  EXPECT_FALSE(FlatTable().has(0));
}

TEST(FlatbufferTest, TruncationAndFlippedBitsStayWithinTheBuffer) {
  const auto buffer = some_buffer();
  for (size_t length = 0; length < buffer.size(); ++length) {
    // A copy of its own, so that a sanitizer sees a byte too many.
    read_all(std::vector<std::byte>(buffer.begin(), buffer.begin() + static_cast<ptrdiff_t>(length)));
  }
  std::mt19937 rng(5);
  for (int round = 0; round < 20'000; ++round) {
    auto flipped = buffer;
    for (int flips = 0; flips < 2; ++flips) flipped[rng() % flipped.size()] ^= std::byte(1 << rng() % 8);
    read_all(flipped);
  }
}

}  // namespace
}  // namespace packtrain
