// The wrappers that other folders' tests rely on.
#include "io/test_storage.h"

#include <gtest/gtest.h>

#include <thread>

namespace packtrain {
namespace {

using Clock = std::chrono::steady_clock;

MutableBytes bytes_of(std::string& text) {
  return std::as_writable_bytes(std::span(text.data(), text.size()));
}

// Reads `count` stretches of one byte in flight and gives back their statuses in order of submission.
std::vector<Status> read_many(Storage& storage, std::string_view path, size_t count, uint32_t depth) {
  auto file = storage.open(path);
  EXPECT_TRUE(file.ok());
  std::vector<Read> requests(count);
  std::string buffer(count, '\0');
  std::vector<Read*> batch;
  for (size_t i = 0; i < count; ++i) {
    requests[i].file = file->get();
    requests[i].offset = i;
    requests[i].into = bytes_of(buffer).subspan(i, 1);
    batch.push_back(&requests[i]);
  }
  auto reads = storage.reads(depth);
  reads->submit(batch);
  Read* done[8];
  size_t finished = 0;
  while (reads->in_flight() > 0) finished += reads->wait(done);
  EXPECT_EQ(finished, count);
  std::vector<Status> statuses;
  for (const Read& request : requests) statuses.push_back(request.status);
  return statuses;
}

TEST(CountingStorageTest, CountsEveryKindOfCallAndTheBytes) {
  MemoryStorage memory;
  CountingStorage counting(memory);
  put(counting, "d/a", "12345");
  EXPECT_EQ(counting.calls(Call::make_folder), 1u);
  EXPECT_EQ(counting.calls(Call::create), 1u);
  EXPECT_EQ(counting.calls(Call::commit), 1u);
  EXPECT_EQ(counting.writes(), 1u);
  EXPECT_EQ(counting.bytes_written(), 5u);
  counting.reset();
  EXPECT_EQ(get(counting, "d/a"), "12345");
  read_many(counting, "d/a", 3, 2);
  EXPECT_EQ(counting.opens(), 2u);
  EXPECT_EQ(counting.reads_done(), 4u);
  EXPECT_EQ(counting.bytes_read(), 8u);
  EXPECT_TRUE(counting.stat("d/a").ok());
  EXPECT_EQ(visible(counting), std::vector<std::string>{"d/a"});
  EXPECT_EQ(counting.stats(), 1u);
  EXPECT_EQ(counting.lists(), 2u);
  EXPECT_EQ(counting.metadata_calls(), 5u);
  EXPECT_TRUE(counting.link("d/a", "b").ok());
  EXPECT_TRUE(counting.rename("b", "c").ok());
  EXPECT_TRUE(counting.remove("c").ok());
  EXPECT_TRUE(counting.sync_folder("d").ok());
  EXPECT_FALSE(counting.read_link("d/a").ok());
  for (const Call call : {Call::link, Call::rename, Call::remove, Call::sync_folder, Call::read_link})
    EXPECT_EQ(counting.calls(call), 1u);
}

TEST(ThrottledStorageTest, ReadsInFlightShareTheLatency) {
  MemoryStorage memory;
  put(memory, "a", std::string(64, 'x'));
  Throttle throttle;
  throttle.per_read = std::chrono::milliseconds(20);
  ThrottledStorage slow(memory, throttle);
  auto start = Clock::now();
  read_many(slow, "a", 16, 16);
  const auto together = Clock::now() - start;
  EXPECT_GE(together, std::chrono::milliseconds(20));
  start = Clock::now();
  read_many(slow, "a", 6, 1);  // one after the other
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(120));
  EXPECT_LT(together, std::chrono::milliseconds(16 * 20));
}

TEST(ThrottledStorageTest, MetadataAndBytesTakeTheirTime) {
  MemoryStorage memory;
  put(memory, "a", std::string(1000, 'x'));
  Throttle throttle;
  throttle.per_metadata_call = std::chrono::milliseconds(15);
  throttle.bytes_per_second = 20'000;
  ThrottledStorage slow(memory, throttle);
  auto start = Clock::now();
  EXPECT_TRUE(slow.stat("a").ok());
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(15));
  start = Clock::now();
  EXPECT_EQ(get(slow, "a"), std::string(1000, 'x'));
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(15 + 50));
  start = Clock::now();
  put(slow, "b", std::string(1000, 'y'));
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(15 + 50));
}

TEST(FaultyStorageTest, NthCallFailsWithTheChosenCode) {
  MemoryStorage memory;
  put(memory, "a", "12345");
  FaultyStorage faulty(memory, {.fail_open = 2, .fail_stat = 1, .code = Code::no_room});
  EXPECT_TRUE(faulty.open("a").ok());
  EXPECT_EQ(faulty.open("a").status().code(), Code::no_room);
  EXPECT_TRUE(faulty.open("a").ok());
  EXPECT_EQ(faulty.stat("a").status().code(), Code::no_room);
  EXPECT_TRUE(faulty.stat("a").ok());
  EXPECT_EQ(faulty.failures(), 2u);
}

TEST(FaultyStorageTest, EveryKindOfCallCanFail) {
  MemoryStorage memory;
  put(memory, "a", "12345");
  FaultyStorage faulty(memory, {.fail_list = 1,
                                .fail_read_link = 1,
                                .fail_create = 1,
                                .fail_write = 1,
                                .fail_commit = 1,
                                .fail_make_folder = 1,
                                .fail_rename = 1,
                                .fail_link = 1,
                                .fail_remove = 1,
                                .fail_sync_folder = 1});
  EXPECT_EQ(faulty.list(".", [](FolderEntry&&) { return true; }).code(), Code::io);
  EXPECT_EQ(faulty.read_link("a").status().code(), Code::io);
  EXPECT_EQ(faulty.make_folder("d").code(), Code::io);
  EXPECT_EQ(faulty.rename("a", "b").code(), Code::io);
  EXPECT_EQ(faulty.link("a", "b").code(), Code::io);
  EXPECT_EQ(faulty.remove("a").code(), Code::io);
  EXPECT_EQ(faulty.sync_folder(".").code(), Code::io);
  EXPECT_EQ(write_whole(faulty, "c", as_bytes("x")).code(), Code::io);  // create
  EXPECT_EQ(write_whole(faulty, "c", as_bytes("x")).code(), Code::io);  // write
  EXPECT_EQ(write_whole(faulty, "c", as_bytes("x")).code(), Code::io);  // commit
  EXPECT_EQ(visible(memory, ".", true), std::vector<std::string>{"a"});
  EXPECT_TRUE(write_whole(faulty, "c", as_bytes("x")).ok());
  EXPECT_EQ(faulty.failures(), 10u);
}

TEST(FaultyStorageTest, ReadFaultHitsBlockingAndInFlightAlike) {
  MemoryStorage memory;
  put(memory, "a", "12345");
  FaultyStorage faulty(memory, {.fail_read = 3});
  EXPECT_EQ(get(faulty, "a"), "12345");
  const std::vector<Status> statuses = read_many(faulty, "a", 4, 2);
  EXPECT_TRUE(statuses[0].ok());
  EXPECT_EQ(statuses[1].code(), Code::io);
  EXPECT_TRUE(statuses[2].ok() && statuses[3].ok());
}

TEST(FaultyStorageTest, FromThenOnAllFail) {
  MemoryStorage memory;
  put(memory, "a", "12345");
  FaultyStorage faulty(memory, {.fail_open = 2, .from_then_on = true});
  EXPECT_TRUE(faulty.open("a").ok());
  EXPECT_FALSE(faulty.open("a").ok());
  EXPECT_FALSE(faulty.open("a").ok());
}

TEST(FaultyStorageTest, OnlyChosenPathsCount) {
  MemoryStorage memory;
  put(memory, "a", "a");
  put(memory, "b", "b");
  Faults faults;
  faults.fail_open = 1;
  faults.on = [](std::string_view path) { return path == "b"; };
  FaultyStorage faulty(memory, faults);
  EXPECT_TRUE(faulty.open("a").ok());
  EXPECT_FALSE(faulty.open("b").ok());
  EXPECT_TRUE(faulty.open("b").ok());
}

TEST(FaultyStorageTest, FlipChangesOneBitOfOneRead) {
  MemoryStorage memory;
  put(memory, "a", "AAAA");
  FaultyStorage faulty(memory, {.flip_read = 2, .flip_bit = 9});
  EXPECT_EQ(get(faulty, "a"), "AAAA");
  EXPECT_EQ(get(faulty, "a"), "ACAA");
  EXPECT_EQ(get(faulty, "a"), "AAAA");
}

TEST(FaultyStorageTest, FilesCanLookCut) {
  MemoryStorage memory;
  put(memory, "a", "12345");
  FaultyStorage faulty(memory, {.ends_at = 3});
  auto file = faulty.open("a");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->size(), 3u);
  EXPECT_EQ(faulty.stat("a")->size, 3u);
  std::string text(3, '\0');
  EXPECT_TRUE(faulty.read(**file, 0, bytes_of(text)).ok());
  EXPECT_EQ(text, "123");
  EXPECT_EQ(faulty.read(**file, 1, bytes_of(text)).code(), Code::corrupt);
}

TEST(FaultyStorageTest, ExactlyOneOfManyThreadsIsHit) {
  MemoryStorage memory;
  put(memory, "a", "12345");
  FaultyStorage faulty(memory, {.fail_open = 500});
  std::atomic<uint64_t> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 250; ++n) failed += faulty.open("a").ok() ? 0 : 1;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 1u);
}

TEST(WrapperTest, WrappersStackOnTheRealFilesystem) {
  TemporaryFolder folder;
  CountingStorage counting(posix_storage());
  Throttle throttle;
  throttle.per_read = std::chrono::milliseconds(1);
  ThrottledStorage slow(counting, throttle);
  put(slow, folder / "d/a", std::string(100, 'x'));
  for (const Status& status : read_many(slow, folder / "d/a", 100, 8)) EXPECT_TRUE(status.ok());
  EXPECT_EQ(counting.reads_done(), 100u);
  auto mapping = slow.map(folder / "d/a");  // a wrapper sees the reads of a mapping too
  ASSERT_TRUE(mapping.ok());
  EXPECT_EQ(counting.bytes_read(), 200u);
}

TEST(MemoryStorageTest, TimesAreCountedSoThatRunsRepeat) {
  const auto times = [] {
    MemoryStorage memory;
    put(memory, "a", "1");
    put(memory, "d/b", "2");
    return std::pair(memory.stat("a")->mtime_ns, memory.stat("d/b")->mtime_ns);
  };
  EXPECT_EQ(times(), times());
  EXPECT_LT(times().first, times().second);
}

TEST(MemoryStorageTest, OpenFileKeepsItsBytesWhenTheNameGoes) {
  MemoryStorage memory;
  put(memory, "/x/../a", "12345");
  auto file = memory.open("./a");
  ASSERT_TRUE(file.ok());
  put(memory, "a", "new");
  ASSERT_TRUE(memory.remove("a").ok());
  std::string text(5, '\0');
  EXPECT_TRUE(memory.read(**file, 0, bytes_of(text)).ok());
  EXPECT_EQ(text, "12345");
}

}  // namespace
}  // namespace packtrain
