// What was opened before a fork() works in the child.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "io/fork.h"
#include "io/test_storage.h"

// GCC tells of its sanitizers by macros, Clang by features.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PACKTRAIN_TSAN 1
#endif
#if __has_feature(address_sanitizer)
#define PACKTRAIN_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define PACKTRAIN_TSAN 1
#endif
#if defined(__SANITIZE_ADDRESS__)
#define PACKTRAIN_ASAN 1
#endif

namespace packtrain {
namespace {

class ForkTest : public testing::TestWithParam<ReadBackend> {
 protected:
  void SetUp() override {
#ifdef PACKTRAIN_TSAN
    GTEST_SKIP() << "ThreadSanitizer does not allow threads in a forked child";
#endif
    if (GetParam() == ReadBackend::io_uring && !io_uring_trouble().empty())
      GTEST_SKIP() << io_uring_trouble();
    PosixOptions options;
    options.backend = GetParam();
    storage_ = make_posix_storage(options);
    for (size_t i = 0; i < text_.size(); ++i) text_[i] = static_cast<char>(i * 7 % 251);
    put(*storage_, folder_ / "a", text_);
    file_ = *storage_->open(folder_ / "a");
  }

  // Reads with the given object and looks at what came back; the number of requests that were as they should
  // be.
  size_t right_reads(Reads& reads) {
    constexpr size_t kCount = 100;
    std::vector<Read> requests(kCount);
    std::vector<std::string> buffers(kCount, std::string(1000, '\0'));
    std::vector<Read*> batch;
    for (size_t i = 0; i < kCount; ++i) {
      requests[i].file = file_.get();
      requests[i].offset = i * 900;
      requests[i].into = std::as_writable_bytes(std::span(buffers[i].data(), buffers[i].size()));
      batch.push_back(&requests[i]);
    }
    reads.submit(batch);
    Read* done[16];
    while (reads.in_flight() > 0) reads.wait(done);
    size_t right = 0;
    for (size_t i = 0; i < kCount; ++i)
      right += requests[i].status.ok() && buffers[i] == text_.substr(requests[i].offset, 1000);
    return right;
  }

  // The exit code of a child that runs `body`; 98 if it was ended by a signal or an alarm.
  template <class Body>
  int in_child(Body body) {
#ifdef PACKTRAIN_ASAN
    // AddressSanitizer's own locks are not made safe over fork(): a thread of ours that is just starting may
    // hold one, and the child would wait for it for ever. Without it, no pause is needed.
    ::usleep(200'000);
#endif
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      ::_exit(body());
    }
    int state = 0;
    return ::waitpid(child, &state, 0) == child && WIFEXITED(state) ? WEXITSTATUS(state) : 98;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Storage> storage_;
  std::string text_ = std::string(100'000, '\0');
  std::unique_ptr<File> file_;
};

TEST_P(ForkTest, StorageAndFileWorkInTheChildAndInTheParent) {
  ASSERT_EQ(right_reads(*storage_->reads(8)), 100u);  // the parent's threads are running now
  EXPECT_EQ(in_child([&] { return static_cast<int>(right_reads(*storage_->reads(8))); }), 100);
  EXPECT_EQ(right_reads(*storage_->reads(8)), 100u);
}

TEST_P(ForkTest, IdleReadsObjectIsRenewedInTheChild) {
  auto reads = storage_->reads(8);
  ASSERT_EQ(right_reads(*reads), 100u);
  EXPECT_EQ(in_child([&] {
              const auto right = static_cast<int>(right_reads(*reads));
              reads.reset();
              return right;
            }),
            100);
  EXPECT_EQ(right_reads(*reads), 100u);
}

TEST_P(ForkTest, ReadsInFlightFailInTheChildAndArriveInTheParent) {
  auto reads = storage_->reads(4);
  std::string buffer(text_.size(), '\0');
  Read read;
  read.file = file_.get();
  read.into = std::as_writable_bytes(std::span(buffer.data(), buffer.size()));
  Read* one = &read;
  reads->submit({&one, 1});
  EXPECT_EQ(in_child([&] {
              Read* done[1];
              const size_t count = reads->wait(done);
              return count == 1 && done[0] == one && read.status.code() == Code::io &&
                             reads->in_flight() == 0 && right_reads(*reads) == 100
                         ? 0
                         : 1;
            }),
            0);
  Read* done[1];
  ASSERT_EQ(reads->wait(done), 1u);
  EXPECT_TRUE(read.status.ok());
  EXPECT_EQ(buffer, text_);
}

TEST_P(ForkTest, GrandchildIsNoExceptionEither) {
  ASSERT_EQ(right_reads(*storage_->reads(8)), 100u);
  EXPECT_EQ(in_child([&] {
              if (right_reads(*storage_->reads(8)) != 100) return 1;
              return in_child([&] { return right_reads(*storage_->reads(8)) == 100 ? 0 : 2; });
            }),
            0);
}

INSTANTIATE_TEST_SUITE_P(Backends, ForkTest, testing::Values(ReadBackend::pool, ReadBackend::io_uring),
                         [](const auto& made) {
                           return std::string(made.param == ReadBackend::pool ? "pool" : "io_uring");
                         });

}  // namespace
}  // namespace packtrain
