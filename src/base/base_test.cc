#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <numeric>
#include <random>
#include <thread>

#include "base/big_vector.h"
#include "base/crc.h"
#include "base/fifo.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/make_room.h"
#include "base/queue.h"
#include "base/threads.h"
#include "base/words.h"

namespace packtrain {
namespace {

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

std::string random_text(size_t bytes, uint32_t seed) {
  std::mt19937 rng(seed);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(rng());
  return text;
}

TEST(StatusTest, PlacesStandInFrontOutermostFirst) {
  const Status status = Status(Code::corrupt, "header is cut short").at("@ 512").at("a.tar");
  EXPECT_EQ(status.text(), "a.tar: @ 512: header is cut short");
  EXPECT_EQ(status.where(), "a.tar: @ 512");
  EXPECT_EQ(status.message(), "header is cut short");
  EXPECT_TRUE(Status().at("a.tar").ok());
}

TEST(StatusTest, LackOfRoomIsItsOwnCode) {
  EXPECT_EQ(status_from_errno(ENOSPC, "cannot write").code(), Code::no_room);
  EXPECT_EQ(status_from_errno(EDQUOT, "cannot write").code(), Code::no_room);
  EXPECT_EQ(status_from_errno(ENOENT, "cannot open").code(), Code::not_found);
  EXPECT_EQ(status_from_errno(EIO, "cannot read").code(), Code::io);
}

TEST(StatusTest, LackOfDescriptorsIsItsOwnCodeAndToUsersAFailureOfTheSystem) {
  for (const int error : {EMFILE, ENFILE}) {
    const Status status = status_from_errno(error, "cannot open");
    EXPECT_EQ(status.code(), Code::limit);
    EXPECT_EQ(code_name(status.code()), "io");
  }
}

TEST(HashTest, KnownValues) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32(bytes_of("123456789")), 0xCBF43926u);
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(xxh128_hex({}), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hex64(0x0123456789abcdef), "0123456789abcdef");
}

TEST(HashTest, PortableChecksEqualTheFastOnesAtEveryLengthAndAlignment) {
  const std::string text = random_text(300, 1);
  for (size_t start = 0; start < 9; ++start) {
    for (size_t length = 0; start + length < text.size(); length += 7) {
      const Bytes part = bytes_of(text).subspan(start, length);
      EXPECT_EQ(crc::crc32c_portable(17, part.data(), part.size()), crc32c(part, 17));
      EXPECT_EQ(crc::crc32_portable(17, part.data(), part.size()), crc32(part, 17));
    }
  }
}

TEST(HashTest, JoinedChecksEqualTheCheckOfTheWhole) {
  const std::string text = random_text(5000, 2);
  for (size_t cut : {size_t{0}, size_t{1}, size_t{511}, size_t{4096}, text.size()}) {
    const Bytes all = bytes_of(text);
    EXPECT_EQ(crc32c_join(crc32c(all.first(cut)), crc32c(all.subspan(cut)), all.size() - cut), crc32c(all));
    EXPECT_EQ(crc32_join(crc32(all.first(cut)), crc32(all.subspan(cut)), all.size() - cut), crc32(all));
  }
}

TEST(HashTest, PortableJoinsEqualTheFastOnesAtEveryMagnitudeOfLength) {
  std::mt19937_64 random(4);
  for (int bits = 0; bits <= 64; ++bits) {
    const uint64_t bytes = bits == 0 ? 0 : random() >> (64 - bits);
    const auto check = static_cast<uint32_t>(random());
    EXPECT_EQ(crc::crc32c_shift_portable(check, bytes), crc32c_join(check, 0, bytes)) << bytes;
  }
}

TEST(HashTest, StreamedHashEqualsTheWhole) {
  const std::string text = random_text(100000, 3);
  Xxh128 stream;
  for (size_t at = 0; at < text.size(); at += 777)
    stream.add(bytes_of(std::string_view(text).substr(at, 777)));
  EXPECT_EQ(stream.hex(), xxh128_hex(bytes_of(text)));
}

TEST(JsonTest, RoundTripKeepsOrderAndAllBits) {
  const std::string text =
      R"({"z": 18446744073709551615, "a": [-9223372036854775808, true, null, "é\n"], "d": 0.1})";
  auto value = Json::parse(text);
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value->dump(), text);
  EXPECT_EQ((*value)["z"].as_uint(), UINT64_MAX);
  EXPECT_EQ((*value)["z"].as_int(-1), -1);
  EXPECT_TRUE((*value)["absent"].is_null());
  auto indented = Json::parse(value->dump(2));
  ASSERT_TRUE(indented.ok());
  EXPECT_EQ(indented->dump(), text);
}

TEST(JsonTest, BadInputIsAnErrorWithItsPlace) {
  EXPECT_EQ(Json::parse("{\"a\": }").status().code(), Code::corrupt);
  EXPECT_EQ(Json::parse("[1,\n2").status().message(),
            "not valid JSON: line 2, column 2: unexpected end of input; expected ']'");
  EXPECT_FALSE(Json::parse(std::string(100000, '[')).ok());
  EXPECT_FALSE(Json::parse("\"\xff\"").ok());
}

TEST(JsonTest, BytesThatAreNotUtf8AreReplacedOnOutput) {
  EXPECT_EQ(Json(std::string("a\xff")).dump(), "\"a\xEF\xBF\xBD\"");
}

TEST(WordsTest, SizesReadAndWrite) {
  EXPECT_EQ(bytes_in_words(999), "999 B");
  EXPECT_EQ(bytes_in_words(1280000000), "1.28 GB");
  EXPECT_EQ(bytes_in_words(999999), "1.00 MB");
  EXPECT_EQ(count_in_words(1281167), "1,281,167");
  EXPECT_EQ(count_in_words(12), "12");
  EXPECT_EQ(counted(1, "shard"), "1 shard");
  EXPECT_EQ(counted(1200, "shard"), "1,200 shards");
  EXPECT_EQ(*parse_bytes("512M"), 512000000u);
  EXPECT_EQ(*parse_bytes("1.5GB"), 1500000000u);
  EXPECT_EQ(*parse_bytes("64MiB"), 64u << 20);
  EXPECT_EQ(*parse_bytes("1000"), 1000u);
  for (const char* bad : {"", "M", "-1", "5X", "1e30", "5MM", "nan"})
    EXPECT_FALSE(parse_bytes(bad).ok()) << bad;
}

TEST(WordsTest, TimesInWords) {
  EXPECT_EQ(seconds_in_words(3.14), "3.1 s");
  EXPECT_EQ(seconds_in_words(59.9), "1 min 00 s");
  EXPECT_EQ(seconds_in_words(7500), "2 h 05 min");
}

TEST(WordsTest, AnyNameIsPrintable) {
  EXPECT_EQ(printable("a\nb\xff\x01"), "a\\nb\\xFF\\x01");
  EXPECT_EQ(printable("größe"), "größe");
  EXPECT_LT(printable(std::string(5000, 'x')).size(), 220u);
  EXPECT_FALSE(is_utf8("\xC0\x80"));
  EXPECT_FALSE(is_utf8("\xED\xA0\x80"));
  EXPECT_TRUE(is_utf8("𝄞"));
}

TEST(WordsTest, TheFirstNamesStandForAll) {
  const std::vector<std::string> names = {"a", "b\n", "c", "d", "e", "f"};
  EXPECT_EQ(names_in_words(std::span(names).first(2), 2), "a, b\\n");
  EXPECT_EQ(names_in_words(std::span(names).first(2), 1000 + 2), "a, b\\n and 1,000 more");
  EXPECT_EQ(names_in_words(names, names.size()), "a, b\\n, c, d, e and 1 more");
}

TEST(QueueTest, ClosingDrainsAndEnds) {
  BoundedQueue<int> queue(2);
  std::thread producer([&] {
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(queue.push(i));
    queue.close();
  });
  int expected = 0;
  while (auto item = queue.pop()) EXPECT_EQ(*item, expected++);
  EXPECT_EQ(expected, 100);
  EXPECT_FALSE(queue.push(1));
  producer.join();
}

TEST(FifoTest, KeepsTheOrderAndItsMemory) {
  Fifo<std::unique_ptr<int>> fifo;
  std::mt19937 rng(1);
  int pushed = 0, popped = 0;
  for (int round = 0; round < 1000; ++round) {
    for (uint32_t more = rng() % 7; more > 0; --more) fifo.push(std::make_unique<int>(pushed++));
    for (uint32_t less = rng() % 7; less > 0 && !fifo.empty(); --less) {
      EXPECT_EQ(*fifo.front(), popped);
      EXPECT_EQ(*fifo.pop(), popped++);
    }
    ASSERT_EQ(fifo.size(), static_cast<size_t>(pushed - popped));
    if (!fifo.empty()) {
      EXPECT_EQ(*fifo[fifo.size() - 1], pushed - 1);
    }
  }
  EXPECT_GT(popped, 1000);
}

TEST(FifoTest, AHandfulNeedsNoMoreMemoryHoweverManyPassThrough) {
  Fifo<int> fifo;
  for (int i = 0; i < 10'000; ++i) {
    fifo.push(i);
    if (i >= 8) {
      EXPECT_EQ(fifo.pop(), i - 8);
    }
  }
  EXPECT_LE(fifo.capacity(), 32u);
}

TEST(FifoTest, NeedsNoMoreMemoryForAsManyAsItWasToldOf) {
  Fifo<int> fifo;
  fifo.reserve(100);
  const size_t before = fifo.capacity();
  for (int i = 0; i < 10'000; ++i) {
    fifo.push(i);
    if (fifo.size() == 100) {
      for (int taken = 0; taken < 1 + i % 100; ++taken) fifo.pop();
    }
  }
  EXPECT_EQ(fifo.capacity(), before);
}

TEST(MakeRoomTest, SizesThatVaryAskOnceForMemory) {
  std::vector<int> kept;
  make_room(kept, 100'000);
  const size_t room = kept.capacity();
  EXPECT_GE(room, 200'000u);
  for (const size_t size : {3, 120'000, 200'000}) {
    make_room(kept, size);
    grow(kept, size);
    EXPECT_EQ(kept.size(), size);
    EXPECT_EQ(kept.capacity(), room);
  }
  grow(kept, 5);
  EXPECT_EQ(kept.size(), 200'000u);
  std::vector<int> small;
  make_room(small, 1);
  EXPECT_EQ(small.capacity() * sizeof(int), size_t{128} << 10);
  std::vector<char> large;
  make_room(large, 100 << 20);
  EXPECT_LE(large.capacity(), size_t{101} << 20);
}

TEST(ThreadsTest, EveryWorkerRunsOnce) {
  std::atomic<uint32_t> sum = 0;
  run_on("workers", 4, [&](uint32_t worker) { sum += worker + 1; });
  EXPECT_EQ(sum, 10u);
}

TEST(ThreadsTest, WhatAWorkerThrowsReachesTheCallerWhenAllHaveEnded) {
  for (const uint32_t thrower : {0U, 2U}) {
    std::atomic<uint32_t> ended = 0;
    const auto run = [&] {
      run_on("workers", 4, [&](uint32_t worker) {
        if (worker == thrower) throw std::bad_alloc();
        ++ended;
      });
    };
    EXPECT_THROW(run(), std::bad_alloc);
    EXPECT_EQ(ended, 3U);
  }
}

// While it lives no thread can be started: the stack that each would get is larger than any address space.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t impossible;
    pthread_attr_init(&impossible);
    pthread_attr_setstacksize(&impossible, size_t{1} << 50);
    EXPECT_EQ(pthread_setattr_default_np(&impossible), 0);
    pthread_attr_destroy(&impossible);
  }
  ~NoMoreThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

TEST(ThreadsTest, OneThatCannotBeStartedIsASentence) {
  Threads threads;
  {
    const NoMoreThreads none;
    const Status status = threads.start("worker", [] {});
    EXPECT_EQ(status.code(), Code::no_room);
    EXPECT_NE(status.message().find("ulimit -u"), std::string::npos) << status.message();
    EXPECT_EQ(threads.size(), 0u);
  }
  EXPECT_TRUE(threads.start("worker", [] {}).ok());
}

TEST(ThreadsTest, TheCallerDoesTheWorkOfThreadsThatCannotBeStarted) {
  const NoMoreThreads none;
  std::atomic<uint32_t> calls = 0;
  run_on("workers", 4, [&](uint32_t worker) {
    EXPECT_EQ(worker, 0u);
    ++calls;
  });
  EXPECT_EQ(calls, 1u);
}

template <class Vector>
void hold_few_and_many(size_t large) {
  for (const size_t count : {size_t{0}, size_t{1}, large / 8 - 1, large / 8, size_t{1'000'000}}) {
    Vector numbers;
    for (size_t i = 0; i < count; ++i) numbers.push_back(i);
    Vector copy = numbers;
    const Vector moved = std::move(numbers);
    copy.shrink_to_fit();
    EXPECT_EQ(copy, moved);
    EXPECT_EQ(std::accumulate(moved.begin(), moved.end(), uint64_t{0}), count * (count - 1) / 2);
  }
}

TEST(BigVectorTest, HoldsFewAndManyAlike) {
  hold_few_and_many<BigVector<uint64_t>>(size_t{1} << 20);
  hold_few_and_many<HugeVector<uint64_t>>(kWorthHugePages);
  BigString text;
  for (int i = 0; i < 300'000; ++i) text += "seven b";
  EXPECT_EQ(text.size(), 2'100'000u);
  EXPECT_EQ(std::string_view(text).substr(2'099'993), "seven b");
  EXPECT_THROW(PageAllocator<uint64_t>().allocate(SIZE_MAX / 4), std::bad_alloc);
}

TEST(BigVectorTest, HugePagesMayBeWantedOfAnyMemory) {
  std::vector<char> memory(5 << 20, 'x');
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1} << 20, memory.size() - 3})
    want_huge_pages(memory.data() + 3, bytes);
  EXPECT_TRUE(std::all_of(memory.begin(), memory.end(), [](char letter) { return letter == 'x'; }));
}

}  // namespace
}  // namespace packtrain
