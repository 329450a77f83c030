// The promises of every Storage on the real filesystem, for both backends.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include "base/test_counts.h"
#include "io/cached_read.h"
#include "io/posix_file.h"
#include "io/test_storage.h"

namespace packtrain {
namespace {

std::string random_text(size_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text(bytes, '\0');
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t word = random();
    std::memcpy(text.data() + at, &word, std::min<size_t>(8, bytes - at));
  }
  return text;
}

class ReadsTest : public testing::TestWithParam<ReadBackend> {
 protected:
  void SetUp() override {
    if (GetParam() == ReadBackend::io_uring) {
      const auto trouble = io_uring_trouble();
      if (!trouble.empty()) GTEST_SKIP() << trouble;
    }
    PosixOptions options;
    options.backend = GetParam();
    storage_ = make_posix_storage(options);
    text_ = random_text(3'000'007, 1);
    put(*storage_, folder_ / "data", text_);
    auto file = storage_->open(folder_ / "data");
    ASSERT_TRUE(file.ok()) << file.status().text();
    file_ = std::move(file).value();
  }

  struct Request {
    Read read;
    std::string bytes;
  };
  std::unique_ptr<Request> request(uint64_t offset, size_t size) {
    auto made = std::make_unique<Request>();
    made->bytes.resize(size);
    made->read.file = file_.get();
    made->read.offset = offset;
    made->read.into = std::as_writable_bytes(std::span(made->bytes.data(), size));
    made->read.tag = reinterpret_cast<uintptr_t>(made.get());
    return made;
  }

  // Submits random reads in batches, takes them back as they come, and counts those whose bytes are wrong.
  size_t wrong_reads(Storage& storage, size_t count, uint32_t depth, uint64_t seed) {
    std::mt19937_64 random(seed);
    auto reads = storage.reads(depth);
    std::vector<std::unique_ptr<Request>> requests;
    size_t submitted = 0, finished = 0, wrong = 0;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t offset = random() % text_.size();
      requests.push_back(request(offset, random() % std::min<uint64_t>(20'000, text_.size() - offset + 1)));
    }
    while (finished < count) {
      std::vector<Read*> batch;
      for (size_t i = 0; i < 1 + random() % 40 && submitted < count; ++i)
        batch.push_back(&requests[submitted++]->read);
      reads->submit(batch);
      Read* done[16];
      const size_t got = reads->wait(std::span(done, 1 + random() % 16));
      if (got == 0) return count;  // something was in flight
      for (size_t i = 0; i < got; ++i) {
        const auto* back = reinterpret_cast<const Request*>(done[i]->tag);
        if (!done[i]->status.ok() ||
            std::memcmp(back->bytes.data(), text_.data() + done[i]->offset, back->bytes.size()) != 0)
          ++wrong;
      }
      finished += got;
    }
    return wrong + reads->in_flight();
  }

  Status read_one(const Read& wanted) {
    auto reads = storage_->reads(4);
    Read read = wanted;
    Read* one = &read;
    reads->submit({&one, 1});
    Read* done[2] = {};
    EXPECT_EQ(reads->wait(done), 1u);
    EXPECT_EQ(done[0], one);
    EXPECT_EQ(reads->in_flight(), 0u);
    return read.status;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Storage> storage_;
  std::string text_;
  std::unique_ptr<File> file_;
};

TEST_P(ReadsTest, TenThousandRandomReadsGetTheirBytes) {
  EXPECT_EQ(wrong_reads(*storage_, 10'000, 32, 7), 0u);
}

TEST_P(ReadsTest, DepthOneTakesAnyBatch) { EXPECT_EQ(wrong_reads(*storage_, 500, 1, 8), 0u); }

TEST_P(ReadsTest, DepthZeroMeansOne) { EXPECT_EQ(wrong_reads(*storage_, 50, 0, 9), 0u); }

TEST_P(ReadsTest, FourThreadsWithReadsOfTheirOwn) {
  std::vector<std::thread> threads;
  std::array<size_t, 4> wrong{};
  for (size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { wrong[i] = wrong_reads(*storage_, 1'000, 16, 100 + i); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::array<size_t, 4>{}));
}

TEST_P(ReadsTest, NothingInFlightIsNotWaitedFor) {
  auto reads = storage_->reads(4);
  Read* done[4];
  EXPECT_EQ(reads->wait(done), 0u);
}

TEST_P(ReadsTest, DestructorWaitsForWhatIsInFlight) {
  std::vector<std::unique_ptr<Request>> requests;
  {
    auto reads = storage_->reads(8);
    std::vector<Read*> batch;
    for (size_t i = 0; i < 64; ++i) {
      requests.push_back(request(i * 1000, 40'000));
      batch.push_back(&requests.back()->read);
    }
    reads->submit(batch);
  }
  for (const auto& made : requests)
    EXPECT_EQ(made->bytes, text_.substr(made->read.offset, made->bytes.size()));
}

TEST_P(ReadsTest, BehindTheEndIsCorruptAndSaysWhereTheEndIs) {
  auto over = request(text_.size() - 10, 11);
  const Status status = read_one(over->read);
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_NE(status.text().find("data"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("file ends at 3000007"), std::string::npos) << status.text();
  EXPECT_EQ(read_one(request(text_.size() + 4096, 1)->read).code(), Code::corrupt);
  EXPECT_EQ(read_one(request(uint64_t{1} << 63, 1)->read).code(), Code::corrupt);
  EXPECT_TRUE(read_one(request(text_.size() - 10, 10)->read).ok());
}

TEST_P(ReadsTest, FileCutAfterOpenIsCorrupt) {
  ASSERT_EQ(::truncate((folder_ / "data").c_str(), 1000), 0);
  const Status status = read_one(request(500, 1000)->read);
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_NE(status.text().find("file ends at 1000"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("3000007 bytes long when"), std::string::npos) << status.text();
}

TEST_P(ReadsTest, ErrorOfTheKernelIsIoWithPathAndOffset) {
  const int descriptor = ::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  const PosixFile folder(descriptor, FileInfo{}, folder_.path());
  auto wanted = request(77, 10);
  wanted->read.file = &folder;
  const Status status = read_one(wanted->read);
  EXPECT_EQ(status.code(), Code::io);
  EXPECT_NE(status.text().find(folder_.path() + " @ 77"), std::string::npos) << status.text();
}

TEST_P(ReadsTest, BadReadDoesNotSpoilItsNeighbours) {
  auto reads = storage_->reads(8);
  auto first = request(0, 100), bad = request(text_.size(), 100), last = request(5000, 100);
  Read* batch[] = {&first->read, &bad->read, &last->read};
  reads->submit(batch);
  Read* done[3];
  for (size_t taken = 0; taken < 3;) taken += reads->wait(done);
  EXPECT_TRUE(first->read.status.ok());
  EXPECT_EQ(bad->read.status.code(), Code::corrupt);
  EXPECT_TRUE(last->read.status.ok());
  EXPECT_EQ(last->bytes, text_.substr(5000, 100));
}

TEST_P(ReadsTest, FailedReadCanBeSubmittedAgain) {
  auto again = request(text_.size(), 10);
  EXPECT_FALSE(read_one(again->read).ok());
  again->read.status = Status(Code::io, "old");
  again->read.offset = 0;
  EXPECT_TRUE(read_one(again->read).ok());
}

// A file in memory, by a path that opens it.
struct MemoryFd {
  explicit MemoryFd(uint64_t size) : descriptor(::memfd_create("packtrain-test", MFD_CLOEXEC)) {
    EXPECT_EQ(::ftruncate(descriptor, static_cast<off_t>(size)), 0);
  }
  ~MemoryFd() { ::close(descriptor); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor); }
  const int descriptor;
};

TEST_P(ReadsTest, LongerThanOneCallTakesIsCutAndJoined) {
  if (few_will_do()) GTEST_SKIP() << "ThreadSanitizer would note every byte of it, for one thread";
  // Neither the file, which is one hole, nor the buffer, which is the same few pages over and over, takes
  // memory.
  constexpr uint64_t kWindow = uint64_t{4} << 20;
  constexpr uint64_t kSize = (uint64_t{2} << 30) + kWindow;
  const MemoryFd source(kSize), window(kWindow);
  ASSERT_EQ(::pwrite(source.descriptor, "end", 3, kSize - 3), 3);
  void* reserved = ::mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(reserved, MAP_FAILED);
  auto* buffer = static_cast<char*>(reserved);
  for (uint64_t at = 0; at < kSize; at += kWindow)
    ASSERT_NE(
        ::mmap(buffer + at, kWindow, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, window.descriptor, 0),
        MAP_FAILED);
  auto file = storage_->open(source.path());
  ASSERT_TRUE(file.ok()) << file.status().text();
  Read read;
  read.file = file->get();
  read.into = std::as_writable_bytes(std::span(buffer, kSize));
  EXPECT_TRUE(read_one(read).ok());
  EXPECT_EQ(std::string_view(buffer + kSize - 3, 3), "end");
  ASSERT_EQ(::munmap(reserved, kSize), 0);
}

INSTANTIATE_TEST_SUITE_P(Backends, ReadsTest, testing::Values(ReadBackend::pool, ReadBackend::io_uring),
                         [](const auto& made) {
                           return std::string(made.param == ReadBackend::pool ? "pool" : "io_uring");
                         });

// Threads of this process that serve reads.
size_t pool_threads() {
  size_t count = 0;
  const Status status = posix_storage().list("/proc/self/task", [&](FolderEntry&& thread) {
    std::ifstream file("/proc/self/task/" + thread.name + "/comm");
    std::string name;
    count += std::getline(file, name) && name == "pt-read";
    return true;
  });
  EXPECT_TRUE(status.ok());
  return count;
}

// How many threads the backend that PACKTRAIN_IO and the option choose adds for one read.
size_t threads_for_one_read(const char* environment, ReadBackend option) {
  TemporaryFolder folder;
  ::setenv("PACKTRAIN_IO", environment, 1);
  PosixOptions options;
  options.backend = option;
  const auto storage = make_posix_storage(options);
  ::unsetenv("PACKTRAIN_IO");
  put(*storage, folder / "a", "x");
  auto file = storage->open(folder / "a");
  EXPECT_TRUE(file.ok());
  const size_t before = pool_threads();
  char byte = 0;
  Read read;
  read.file = file->get();
  read.into = std::as_writable_bytes(std::span(&byte, 1));
  Read* one = &read;
  const auto reads = storage->reads(1);
  reads->submit({&one, 1});
  EXPECT_EQ(reads->wait({&one, 1}), 1u);
  EXPECT_EQ(byte, 'x');
  return pool_threads() - before;
}

TEST(BackendTest, EnvironmentChoosesWhereTheOptionDoesNot) {
  EXPECT_EQ(threads_for_one_read("pool", ReadBackend::automatic), 1u);
  EXPECT_EQ(threads_for_one_read("io_uring", ReadBackend::pool), 1u);
  if (!io_uring_trouble().empty()) GTEST_SKIP() << io_uring_trouble();
  EXPECT_EQ(threads_for_one_read("pool", ReadBackend::io_uring), 0u);
  EXPECT_EQ(threads_for_one_read("io_uring", ReadBackend::automatic), 0u);
  ::setenv("PACKTRAIN_IO", "pool", 1);
  EXPECT_EQ(io_uring_trouble(), "PACKTRAIN_IO=pool is set");
  ::unsetenv("PACKTRAIN_IO");
}

TEST(BlockingReadTest, FillsOrSaysWhy) {
  TemporaryFolder folder;
  Storage& storage = posix_storage();
  const std::string text = random_text(100'000, 3);
  put(storage, folder / "a", text);
  auto file = storage.open(folder / "a");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->size(), text.size());
  std::string bytes(1000, '\0');
  const auto into = std::as_writable_bytes(std::span(bytes.data(), bytes.size()));
  ASSERT_TRUE(storage.read(**file, 4321, into).ok());
  EXPECT_EQ(bytes, text.substr(4321, 1000));
  EXPECT_EQ(storage.read(**file, text.size() - 999, into).code(), Code::corrupt);
  EXPECT_TRUE(storage.read(**file, text.size() + 1, into.first(0)).ok());
}

TEST(CachedReadTest, GivesWhatIsInMemoryOrNothing) {
  TemporaryFolder folder;
  const std::string text = random_text(300'000, 4);
  put(posix_storage(), folder / "a", text);
  auto file = posix_storage().open(folder / "a");
  ASSERT_TRUE(file.ok());
  std::string bytes(100'000, '\0');
  const auto into = std::as_writable_bytes(std::span(bytes.data(), bytes.size()));
  ASSERT_TRUE(posix_storage().read(**file, 0, into).ok());
  // Filesystems that cannot tell always say no.
  if (read_if_cached(**file, 4321, into)) {
    EXPECT_EQ(bytes, text.substr(4321, bytes.size()));
  }
  EXPECT_FALSE(read_if_cached(**file, text.size() - 1000, into));  // not all of it is there
  EXPECT_FALSE(read_if_cached(**file, text.size(), into));
  EXPECT_FALSE(read_if_cached(**file, UINT64_MAX, into));
  EXPECT_TRUE(read_if_cached(**file, 0, into.first(0)));
  MemoryStorage memory;
  put(memory, "a", text);
  auto other = memory.open("a");
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(read_if_cached(**other, 0, into));
}

TEST(OpenTest, AnOpenFileTellsWhatBecameOfIt) {
  TemporaryFolder folder;
  Storage& storage = posix_storage();
  put(storage, folder / "a", "one");
  const auto file = storage.open(folder / "a");
  ASSERT_TRUE(file.ok());
  const auto same = storage.look_at(**file);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->mtime_ns, (*file)->info().mtime_ns);
  EXPECT_EQ(same->size, 3u);
  put(storage, folder / "a", "another");  // under its name; the one that is open stays what it was
  EXPECT_EQ(storage.look_at(**file)->size, 3u);
  EXPECT_EQ(storage.look_at(**file)->mtime_ns, (*file)->info().mtime_ns);
  const auto cut = storage.open(folder / "a");
  ASSERT_TRUE(cut.ok());
  ASSERT_EQ(::truncate((folder / "a").c_str(), 2), 0);
  EXPECT_EQ(storage.look_at(**cut)->size, 2u);
  EXPECT_EQ((*cut)->info().size, 7u);
}

TEST(OpenTest, RefusesWhatIsNoFile) {
  TemporaryFolder folder;
  Storage& storage = posix_storage();
  EXPECT_EQ(storage.open(folder / "absent").status().code(), Code::not_found);
  EXPECT_EQ(storage.open(folder.path()).status().code(), Code::invalid);
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(storage.open(folder / "fifo").status().code(), Code::invalid);  // and does not wait for a writer
  put(storage, folder / "file", "x");
  EXPECT_EQ(storage.open(folder / "file/below").status().code(), Code::not_found);
  EXPECT_EQ(storage.open(std::string_view("a\0b", 3)).status().code(), Code::invalid);
  EXPECT_EQ(storage.open(std::string(300, 'n')).status().code(), Code::invalid);
  EXPECT_NE(storage.open(folder / "line\nend").status().text().find("line\\nend"), std::string::npos);
}

TEST(OpenTest, UnreadableIsIo) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  TemporaryFolder folder;
  put(posix_storage(), folder / "a", "x");
  ASSERT_EQ(::chmod((folder / "a").c_str(), 0), 0);
  EXPECT_EQ(posix_storage().open(folder / "a").status().code(), Code::io);
}

TEST(MapTest, GivesTheWholeFileAndOutlivesItsName) {
  TemporaryFolder folder;
  const std::string text = random_text(70'000, 4);
  put(posix_storage(), folder / "a", text);
  put(posix_storage(), folder / "empty", "");
  auto mapping = posix_storage().map(folder / "a");
  ASSERT_TRUE(mapping.ok()) << mapping.status().text();
  ASSERT_TRUE(posix_storage().remove(folder / "a").ok());
  EXPECT_EQ(as_text((*mapping)->bytes()), text);
  auto empty = posix_storage().map(folder / "empty");
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE((*empty)->bytes().empty());
  EXPECT_EQ(posix_storage().map(folder / "a").status().code(), Code::not_found);
}

}  // namespace
}  // namespace packtrain
