#include "pack/sequential_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <random>
#include <string>

#include "io/test_storage.h"

namespace packtrain {
namespace {

std::string random_text(size_t bytes) {
  std::mt19937_64 random(3);
  std::string text(bytes, '\0');
  for (char& byte : text) byte = static_cast<char>(random());
  return text;
}

// Everything that is left of a stretch, or the status in words.
std::string rest(SequentialReader& reader) {
  std::string text;
  while (true) {
    const Result<Bytes> bytes = reader.next();
    if (!bytes.ok()) return bytes.status().text();
    if (bytes->empty()) return text;
    text += as_text(*bytes);
  }
}

class SequentialReaderTest : public ::testing::Test {
 protected:
  void SetUp() override { put(memory_, "a", text_); }
  const std::string text_ = random_text((9 << 20) + 17);
  MemoryStorage memory_;
  ThrottledStorage slow_{memory_, {.per_read = std::chrono::milliseconds(2)}};
};

TEST_F(SequentialReaderTest, EveryStretchComesWholeAndInOrder) {
  for (Storage* storage : {static_cast<Storage*>(&memory_), static_cast<Storage*>(&slow_)}) {
    auto file = storage->open("a");
    ASSERT_TRUE(file.ok());
    SequentialReader reader(*storage);
    for (const auto& [begin, end] : {std::pair<uint64_t, uint64_t>{0, text_.size()},
                                     {5, 5},
                                     {7, 8},
                                     {262144, 524288},
                                     {1000001, text_.size() - 3}}) {
      reader.start(**file, begin, end);
      EXPECT_EQ(rest(reader), text_.substr(begin, end - begin)) << begin << " to " << end;
      EXPECT_TRUE(reader.next()->empty());
    }
  }
}

TEST_F(SequentialReaderTest, ReadsAheadWhereItHadToWait) {
  constexpr uint64_t kShort =
      2 << 20;  // its slow reads are still remembered at its end, however fast the rest
  auto file = slow_.open("a");
  ASSERT_TRUE(file.ok());
  SequentialReader reader(slow_);
  reader.start(**file, 0, kShort);
  EXPECT_FALSE(reader.reads_ahead());
  EXPECT_EQ(rest(reader), text_.substr(0, kShort));
  EXPECT_TRUE(reader.reads_ahead());
  reader.start(**file, 0, kShort);
  EXPECT_TRUE(reader.reads_ahead()) << "what was learned is kept";
}

TEST_F(SequentialReaderTest, AStretchThatWasLeftDoesNotShowInTheNext) {
  put(memory_, "b", "other");
  auto file = slow_.open("a"), other = slow_.open("b");
  ASSERT_TRUE(file.ok() && other.ok());
  SequentialReader reader(slow_);
  for (int pieces = 1; pieces < 6; ++pieces) {
    reader.start(**file, 0, text_.size());
    for (int i = 0; i < pieces; ++i) ASSERT_TRUE(reader.next().ok());
    reader.start(**other, 1, 4);
    EXPECT_EQ(rest(reader), "the");
  }
}

TEST_F(SequentialReaderTest, AFailedReadIsToldWhereItsBytesWouldHaveCome) {
  for (uint64_t nth = 1; nth < 8; ++nth) {
    FaultyStorage faulty(slow_, {.fail_read = nth});
    auto file = faulty.open("a");
    ASSERT_TRUE(file.ok());
    SequentialReader reader(faulty);
    reader.start(**file, 0, text_.size());
    Status status;
    uint64_t pieces = 0;
    for (; status.ok(); ++pieces) {
      const Result<Bytes> bytes = reader.next();
      ASSERT_FALSE(bytes.ok() && bytes->empty()) << "the end came before the failure";
      status = bytes.status();
    }
    EXPECT_EQ(status.code(), Code::io);
    EXPECT_EQ(pieces, nth);
  }
}

TEST_F(SequentialReaderTest, WhatIsInMemoryIsLookedAtInPlace) {
  const TemporaryFolder folder;
  put(posix_storage(), folder / "a", text_);
  auto file = posix_storage().open(folder / "a");
  ASSERT_TRUE(file.ok());
  SequentialReader reader(posix_storage(), true);
  for (const auto& [begin, end] :
       {std::pair<uint64_t, uint64_t>{0, text_.size()}, {7, 8}, {5, 5}, {4097, text_.size() - 3}}) {
    reader.start(**file, begin, end);
    EXPECT_EQ(rest(reader), text_.substr(begin, end - begin)) << begin << " to " << end;
    EXPECT_TRUE(reader.next()->empty());
  }
}

TEST_F(SequentialReaderTest, AFileThatIsCutUnderneathIsAnError) {
  const TemporaryFolder folder;
  put(posix_storage(), folder / "a", text_);
  auto file = posix_storage().open(folder / "a");
  ASSERT_TRUE(file.ok());
  for (const uint64_t left : {uint64_t{5} << 20, (uint64_t{3} << 20) + 100, uint64_t{0}}) {
    SequentialReader reader(posix_storage(), true);
    reader.start(**file, 0, text_.size());
    ASSERT_TRUE(reader.next().ok());
    ASSERT_EQ(::truncate((folder / "a").c_str(), static_cast<off_t>(left)), 0);
    Status status;
    for (bool more = true; more && status.ok();) {
      const Result<Bytes> bytes = reader.next();
      status = bytes.status();
      more = bytes.ok() && !bytes->empty();
    }
    EXPECT_EQ(status.code(), Code::corrupt) << left << " bytes were left: " << status.text();
  }
}

}  // namespace
}  // namespace packtrain
