#include "io/cached_view.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "base/threads.h"

namespace packtrain {
namespace {

constexpr size_t kPage = 4096;

class CachedViewTest : public testing::Test {
 protected:
  void SetUp() override {
    for (size_t i = 0; text_.size() < 64 * kPage; ++i) text_ += std::to_string(i) + " ";
    ASSERT_TRUE(write_whole(posix_storage(), path_, as_bytes(text_)).ok());
    auto file = posix_storage().open(path_);
    ASSERT_TRUE(file.ok());
    file_ = std::move(*file);
    if (!CachedView::of(*file_, 0, text_.size()))
      GTEST_SKIP() << "this kernel or filesystem does not tell what is in memory";
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void cut_to(uint64_t bytes) { std::filesystem::resize_file(path_, bytes); }

  const std::string path_ = testing::TempDir() + "/cached_view_test." + std::to_string(::getpid());
  std::string text_;
  std::unique_ptr<File> file_;
};

TEST_F(CachedViewTest, ShowsTheBytesOfTheFile) {
  for (const uint64_t offset : {uint64_t{0}, uint64_t{17}, uint64_t{3 * kPage + 1}}) {
    const auto view = CachedView::of(*file_, offset, text_.size() - offset);
    ASSERT_NE(view, nullptr);
    EXPECT_EQ(as_text(view->bytes()), std::string_view(text_).substr(offset));
    EXPECT_FALSE(view->cut());
  }
  EXPECT_EQ(CachedView::of(*file_, 1, text_.size()), nullptr) << "behind the end";
  EXPECT_EQ(CachedView::of(*file_, 0, 0), nullptr);
}

TEST_F(CachedViewTest, WhatWasLeftCanBeSeenAgain) {
  const auto view = CachedView::of(*file_, 17, text_.size() - 17);
  ASSERT_NE(view, nullptr);
  const std::string_view expected = std::string_view(text_).substr(17);
  for (const auto& [begin, end] : {std::pair(size_t{0}, expected.size()), std::pair(kPage - 17, 5 * kPage),
                                   std::pair(size_t{100}, size_t{200}), std::pair(size_t{0}, size_t{0})}) {
    view->leave(begin, end);
    EXPECT_EQ(as_text(view->bytes()), expected);
  }
  EXPECT_FALSE(view->cut());
  cut_to(8 * kPage);
  view->leave(0, expected.size());
  EXPECT_EQ(as_text(view->bytes().first(8 * kPage - 17)), expected.substr(0, 8 * kPage - 17));
  EXPECT_EQ(view->bytes()[20 * kPage], std::byte{0});
  EXPECT_TRUE(view->cut());
}

TEST_F(CachedViewTest, AFileThatIsCutShowsZerosAndSaysSo) {
  const auto view = CachedView::of(*file_, 0, text_.size());
  ASSERT_NE(view, nullptr);
  cut_to(8 * kPage);
  const Bytes seen = view->bytes();
  EXPECT_EQ(as_text(seen.first(8 * kPage)), std::string_view(text_).substr(0, 8 * kPage));
  const auto zero = [](std::byte byte) { return byte == std::byte{0}; };
  EXPECT_TRUE(std::all_of(seen.begin() + 8 * kPage, seen.end(), zero));
  EXPECT_TRUE(view->cut());
}

TEST_F(CachedViewTest, ACutThatNoSignalTellsIsSeenToo) {
  const auto view = CachedView::of(*file_, 0, text_.size());
  ASSERT_NE(view, nullptr);
  cut_to(text_.size() - 1);
  EXPECT_TRUE(view->cut());
}

TEST_F(CachedViewTest, ThreadsOfOursMayLookToo) {
  const auto view = CachedView::of(*file_, 0, text_.size());
  ASSERT_NE(view, nullptr);
  cut_to(0);
  std::byte last{1};
  Threads thread;
  ASSERT_TRUE(thread.start("looks", [&] { last = view->bytes().back(); }).ok());
  thread.join();
  EXPECT_EQ(last, std::byte{0});
  EXPECT_TRUE(view->cut());
}

TEST_F(CachedViewTest, TheSignalBelongsToWhoeverHadItOnceAllViewsAreGone) {
  struct sigaction before, during, after;
  ASSERT_EQ(::sigaction(SIGBUS, nullptr, &before), 0);
  {
    const auto one = CachedView::of(*file_, 0, text_.size());
    const auto other = CachedView::of(*file_, kPage, kPage);
    ASSERT_EQ(::sigaction(SIGBUS, nullptr, &during), 0);
    EXPECT_NE(during.sa_sigaction, before.sa_sigaction);
  }
  ASSERT_EQ(::sigaction(SIGBUS, nullptr, &after), 0);
  EXPECT_EQ(after.sa_sigaction, before.sa_sigaction);
}

TEST_F(CachedViewTest, CopiesWhatIsInMemory) {
  const auto view = CachedView::of_whole(*file_);
  ASSERT_NE(view, nullptr);
  std::string copy;
  for (const auto& [offset, bytes] :
       {std::pair(size_t{0}, text_.size()), std::pair(size_t{17}, size_t{5}), std::pair(kPage - 1, size_t{2}),
        std::pair(3 * kPage, 2 * kPage), std::pair(text_.size(), size_t{0})}) {
    copy.assign(bytes, 'x');
    EXPECT_TRUE(view->copy(offset, MutableBytes(reinterpret_cast<std::byte*>(copy.data()), copy.size())));
    EXPECT_EQ(copy, text_.substr(offset, bytes)) << offset;
  }
  std::byte two[2];
  EXPECT_FALSE(view->copy(text_.size() - 1, two)) << "behind the end";
  EXPECT_FALSE(view->copy(UINT64_MAX, two));
}

TEST_F(CachedViewTest, ALargeFileIsCopiedInPieces) {
  std::string large;
  while (large.size() < 600 * kPage) large += text_;
  std::filesystem::remove(path_);
  ASSERT_TRUE(write_whole(posix_storage(), path_, as_bytes(large)).ok());
  auto file = posix_storage().open(path_);
  ASSERT_TRUE(file.ok());
  const auto view = CachedView::of_whole(**file);
  ASSERT_NE(view, nullptr);
  std::string copy(large.size() - 5, 'x');
  ASSERT_TRUE(view->copy(5, MutableBytes(reinterpret_cast<std::byte*>(copy.data()), copy.size())));
  EXPECT_EQ(copy, large.substr(5));
}

TEST_F(CachedViewTest, WhatIsNotInMemoryIsNotCopied) {
  const auto view = CachedView::of_whole(*file_);
  ASSERT_NE(view, nullptr);
  const int descriptor = ::open(path_.c_str(), O_RDWR);
  ASSERT_GE(descriptor, 0);
  ::fsync(descriptor);
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  ::close(descriptor);
  std::byte bytes[64];
  if (view->copy(8 * kPage, bytes)) GTEST_SKIP() << "this filesystem keeps everything in memory";
  EXPECT_TRUE(posix_storage().read(*file_, 8 * kPage, bytes).ok());
  EXPECT_TRUE(view->copy(8 * kPage, bytes));
}

TEST_F(CachedViewTest, NothingIsCopiedOfAFileThatIsCut) {
  const auto view = CachedView::of_whole(*file_);
  ASSERT_NE(view, nullptr);
  std::byte bytes[2 * kPage];
  ASSERT_TRUE(view->copy(20 * kPage, bytes));
  cut_to(21 * kPage);
  EXPECT_FALSE(view->copy(20 * kPage, bytes));
  EXPECT_TRUE(!view->copy(0, bytes) || view->cut()) << "whoever reads it is told what is wrong";
}

TEST_F(CachedViewTest, AFileMayBeCutAtAnyMoment) {
  const auto view = CachedView::of_whole(*file_);
  ASSERT_NE(view, nullptr);
  std::vector<std::byte> bytes(text_.size());
  bool is_cut = false;
  std::atomic<bool> begun = false;
  Threads thread;
  ASSERT_TRUE(thread
                  .start("copies",
                         [&] {
                           for (int i = 0; i < 100'000 && !is_cut; ++i) {
                             is_cut = !view->copy(0, bytes) || view->cut();
                             begun = true;
                             if (!is_cut) {
                               ASSERT_EQ(as_text(bytes), text_);
                             }
                           }
                         })
                  .ok());
  while (!begun) ::usleep(10);
  cut_to(kPage);
  thread.join();
  EXPECT_TRUE(is_cut);
}

std::atomic<int> signals_counted = 0;
void count_signal(int) { ++signals_counted; }

struct sigaction counting() {
  struct sigaction action = {};
  action.sa_handler = count_signal;
  sigemptyset(&action.sa_mask);
  return action;
}

TEST_F(CachedViewTest, ASignalThatWasSentGoesToWhoeverHadIt) {
  const struct sigaction counts = counting();
  struct sigaction before;
  ASSERT_EQ(::sigaction(SIGBUS, &counts, &before), 0);
  {
    const auto view = CachedView::of_whole(*file_);
    ASSERT_NE(view, nullptr);
    signals_counted = 0;
    for (int i = 1; i <= 3; ++i) {
      ASSERT_EQ(::raise(SIGBUS), 0);
      EXPECT_EQ(signals_counted, i);
    }
    cut_to(8 * kPage);
    EXPECT_EQ(view->bytes()[20 * kPage], std::byte{0}) << "and faults still come to us";
    EXPECT_EQ(signals_counted, 3);
  }
  ASSERT_EQ(::sigaction(SIGBUS, &before, nullptr), 0);
}

TEST_F(CachedViewTest, AThreadThatBlocksTheSignalGetsNoView) {
  sigset_t bus, before;
  sigemptyset(&bus);
  sigaddset(&bus, SIGBUS);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &bus, &before), 0);
  const auto view = CachedView::of(*file_, 0, text_.size()), whole = CachedView::of_whole(*file_);
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
  EXPECT_EQ(view, nullptr);
  EXPECT_EQ(whole, nullptr);
}

// The last one: their action may come back to ours, so that ours is not put over it in this process any more.
TEST_F(CachedViewTest, AHandlerThatWasPutOverOursStays) {
  const auto view = CachedView::of_whole(*file_);
  ASSERT_NE(view, nullptr);
  std::byte bytes[64];
  EXPECT_TRUE(view->copy(0, bytes));
  const struct sigaction counts = counting();
  struct sigaction before, now;
  ASSERT_EQ(::sigaction(SIGBUS, &counts, &before), 0);
  EXPECT_FALSE(view->copy(0, bytes)) << "a fault would not come to us";
  EXPECT_EQ(CachedView::of_whole(*file_), nullptr);
  EXPECT_EQ(CachedView::of(*file_, 0, kPage), nullptr);
  ASSERT_EQ(::sigaction(SIGBUS, &before, &now), 0);
  EXPECT_EQ(now.sa_handler, count_signal);
  EXPECT_TRUE(view->copy(0, bytes));
}

}  // namespace
}  // namespace packtrain
