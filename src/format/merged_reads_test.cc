#include "format/merged_reads.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/cached_read.h"
#include "io/test_storage.h"

namespace packtrain {
namespace {

// Headers every few kB, one stretch far behind, two that overlap, one that is empty; in no order.
std::vector<Stretch> some_stretches() {
  std::vector<Stretch> wanted;
  for (uint64_t i = 0; i < 200; ++i) wanted.push_back({(199 - i) * 7000, 100});
  wanted.push_back({3'000'000, 5000});
  wanted.push_back({3'000'100, 50});
  wanted.push_back({17, 0});
  return wanted;
}

std::string some_text() {
  std::string text;
  while (text.size() < 3'100'000) text += std::to_string(text.size()) + " ";
  return text;
}

void expect_all(Storage& storage, const File& file, const std::string& text) {
  const std::vector<Stretch> wanted = some_stretches();
  std::map<size_t, std::string> got;
  const Status status = read_merged(storage, file, wanted, [&](size_t position, Bytes bytes) {
    EXPECT_TRUE(got.emplace(position, as_text(bytes)).second) << position << " came twice";
    return Status();
  });
  ASSERT_TRUE(status.ok()) << status.text();
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [position, bytes] : got)
    EXPECT_EQ(bytes, text.substr(wanted[position].offset, wanted[position].bytes));
}

TEST(MergedReadsTest, NearStretchesShareReads) {
  const std::string text = some_text();
  MemoryStorage memory;
  ASSERT_TRUE(write_whole(memory, "/a", as_bytes(text)).ok());
  CountingStorage counting(memory);
  auto file = counting.open("/a");
  ASSERT_TRUE(file.ok());
  expect_all(counting, **file, text);
  EXPECT_LE(counting.reads_done(), 5U);
}

TEST(MergedReadsTest, WhatIsInMemoryIsCopiedWithoutWhatLiesBetween) {
  const std::string text = some_text();
  const std::string path = testing::TempDir() + "/merged_reads_test." + std::to_string(::getpid());
  ASSERT_TRUE(write_whole(posix_storage(), path, as_bytes(text)).ok());
  auto file = posix_storage().open(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::remove(path);
  expect_all(posix_storage(), **file, text);
  std::vector<std::byte> whole(text.size());
  if (!read_if_cached(**file, 0, whole)) GTEST_SKIP() << "this filesystem does not tell what is in memory";
  MemoryStorage never_asked;
  CountingStorage counting(never_asked);
  expect_all(counting, **file, text);
  EXPECT_EQ(counting.reads_done(), 0U);
}

// Thousands of stretches in memory, the last of the file first.
TEST(MergedReadsTest, SeveralThreadsTakeStretchesThatAreInMemoryEachOnce) {
  const std::string text = some_text();
  const std::string path = testing::TempDir() + "/merged_reads_apart." + std::to_string(::getpid());
  ASSERT_TRUE(write_whole(posix_storage(), path, as_bytes(text)).ok());
  auto file = posix_storage().open(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::remove(path);
  constexpr size_t kStretches = 5000;
  std::vector<Stretch> wanted;
  for (size_t i = 0; i < kStretches; ++i) wanted.push_back({(kStretches - 1 - i) * 600, 50 + i % 7});
  std::vector<std::string> got(kStretches);
  std::vector<std::atomic<int>> calls(kStretches);
  const auto take = [&](size_t position, Bytes bytes) {
    ++calls[position];
    got[position] = as_text(bytes);
    return Status();
  };
  Status status = read_merged(posix_storage(), **file, wanted, take, EachCall::side_by_side);
  ASSERT_TRUE(status.ok()) << status.text();
  for (size_t i = 0; i < kStretches; ++i) {
    EXPECT_EQ(calls[i], 1) << i;
    EXPECT_EQ(got[i], text.substr(wanted[i].offset, wanted[i].bytes)) << i;
  }
  // Whoever meets a failure first: told is the one that lies first in the file.
  for (int round = 0; round < 10; ++round) {
    status = read_merged(
        posix_storage(), **file, wanted,
        [](size_t position, Bytes) {
          return position % 1000 == 700 ? Status(Code::stopped, std::to_string(position)) : Status();
        },
        EachCall::side_by_side);
    EXPECT_EQ(status.code(), Code::stopped);
    EXPECT_EQ(status.message(), "4700");
  }
}

// Of a file of which nothing, or every other megabyte, is in memory: dense stretches in front and behind, and
// ones that lie far apart between them.
class NearReadsTest : public testing::TestWithParam<EachCall> {
 protected:
  static constexpr uint64_t kFar = uint64_t{40} << 10;
  void SetUp() override {
    for (uint64_t i = 0; i < 1500; ++i) wanted_.push_back({i * 3000, 40 + i % 9});
    const uint64_t apart = wanted_.back().offset + kFar;
    for (uint64_t i = 0; i < 1500; ++i) wanted_.push_back({apart + i * kFar, 30 + i % 11});
    const uint64_t behind = wanted_.back().offset + kFar;
    for (uint64_t i = 0; i < 1500; ++i) wanted_.push_back({behind + i * 3000, 20 + i % 5});
    text_.resize(wanted_.back().offset + 100);
    for (size_t i = 0; i < text_.size(); ++i) text_[i] = static_cast<char>(i * 7 ^ i >> 8 ^ i >> 16);
    ASSERT_TRUE(write_whole(posix_storage(), path_, as_bytes(text_)).ok());
    auto file = posix_storage().open(path_);
    ASSERT_TRUE(file.ok());
    file_ = std::move(*file);
  }
  void TearDown() override { std::filesystem::remove(path_); }
  // Advice, which the system may not follow: then what is in memory is read from there.
  void forget(bool all) {
    const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    constexpr off_t kPiece = 1 << 20;
    for (off_t at = 0; at < static_cast<off_t>(text_.size()); at += all ? kPiece : 2 * kPiece)
      EXPECT_EQ(::posix_fadvise(descriptor, at, kPiece, POSIX_FADV_DONTNEED), 0);
    ::close(descriptor);
  }

  const std::string path_ = testing::TempDir() + "/near_reads." + std::to_string(::getpid());
  std::vector<Stretch> wanted_;
  std::string text_;
  std::unique_ptr<File> file_;
};

TEST_P(NearReadsTest, EveryStretchComesOnce) {
  for (const bool all : {true, false}) {
    forget(all);
    std::vector<std::string> got(wanted_.size());
    std::vector<std::atomic<int>> calls(wanted_.size());
    const auto take = [&](size_t position, Bytes bytes) {
      ++calls[position];
      got[position] = as_text(bytes);
      return Status();
    };
    const Status status = read_merged(posix_storage(), *file_, wanted_, take, GetParam());
    ASSERT_TRUE(status.ok()) << status.text();
    for (size_t i = 0; i < wanted_.size(); ++i) {
      ASSERT_EQ(calls[i], 1) << i;
      ASSERT_EQ(got[i], text_.substr(wanted_[i].offset, wanted_[i].bytes)) << i;
    }
  }
}

TEST_P(NearReadsTest, OfSeveralFailuresTheFirstInTheFileIsTold) {
  for (const size_t first : {7, 1499, 1600, 2999, 3000, 4400}) {
    forget(first % 2 == 0);
    const auto take = [&](size_t position, Bytes) {
      const bool fails = position >= first && (position - first) % 50 == 0;
      return fails ? Status(Code::stopped, std::to_string(position)) : Status();
    };
    const Status status = read_merged(posix_storage(), *file_, wanted_, take, GetParam());
    EXPECT_EQ(status.code(), Code::stopped);
    EXPECT_EQ(status.message(), std::to_string(first));
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, NearReadsTest, testing::Values(EachCall::one_by_one, EachCall::side_by_side),
                         [](const auto& made) {
                           return made.param == EachCall::one_by_one ? "one_by_one" : "side_by_side";
                         });

TEST(MergedReadsTest, AFileThatIsCutMeanwhileIsAnError) {
  const std::string path = testing::TempDir() + "/merged_reads_cut." + std::to_string(::getpid());
  ASSERT_TRUE(write_whole(posix_storage(), path, as_bytes(some_text())).ok());
  auto file = posix_storage().open(path);
  ASSERT_TRUE(file.ok());
  const std::string text = some_text();
  const std::vector<Stretch> wanted = some_stretches();
  bool right = true;
  const Status status = read_merged(posix_storage(), **file, wanted, [&](size_t position, Bytes bytes) {
    std::filesystem::resize_file(path, 1000);
    right = right && as_text(bytes) == text.substr(wanted[position].offset, wanted[position].bytes);
    return Status();
  });
  std::filesystem::remove(path);
  // Where nothing is looked at in place, all may have been read before the first of it was handed on.
  if (status.ok())
    EXPECT_TRUE(right) << "what is not there any more was made up";
  else
    EXPECT_EQ(status.code(), Code::corrupt) << status.text();
}

TEST(MergedReadsTest, AFailureEndsIt) {
  MemoryStorage memory;
  ASSERT_TRUE(write_whole(memory, "/a", as_bytes(some_text())).ok());
  auto file = memory.open("/a");
  ASSERT_TRUE(file.ok());
  const std::vector<Stretch> behind = {{10, 10}, {5'000'000, 10}};
  EXPECT_FALSE(read_merged(memory, **file, behind, [](size_t, Bytes) { return Status(); }).ok());
  size_t calls = 0;
  const Status told = read_merged(memory, **file, some_stretches(), [&](size_t, Bytes) {
    ++calls;
    return Status(Code::stopped, "enough");
  });
  EXPECT_EQ(told.code(), Code::stopped);
  EXPECT_EQ(calls, 1U);
}

}  // namespace
}  // namespace packtrain
