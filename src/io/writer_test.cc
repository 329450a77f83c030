// Writing: nothing is visible before commit(), parts can be taken up again, and a lack of room shows early.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "io/posix_file.h"
#include "io/posix_paths.h"
#include "io/test_storage.h"

namespace packtrain {
namespace {

struct Advice {
  off_t offset, length;
  int advice;
};
Mutex advice_mutex;
std::vector<Advice> advice_given GUARDED_BY(advice_mutex);  // by anybody in this process

std::vector<Advice> take_advice() {
  const Lock lock(advice_mutex);
  return std::exchange(advice_given, {});
}

int advise(int descriptor, off_t offset, off_t length, int advice) {
  {
    const Lock lock(advice_mutex);
    advice_given.push_back({offset, length, advice});
  }
  return ::syscall(SYS_fadvise64, descriptor, offset, length, advice) == 0 ? 0 : errno;
}

}  // namespace
}  // namespace packtrain

// In the place of the C library's, under both of its names, so that what a writer tells the system can be
// seen whatever the system makes of it.
extern "C" int posix_fadvise(int descriptor, off_t offset, off_t length, int advice) noexcept {
  return packtrain::advise(descriptor, offset, length, advice);
}
extern "C" int posix_fadvise64(int descriptor, off_t offset, off_t length, int advice) noexcept {
  return packtrain::advise(descriptor, offset, length, advice);
}

namespace packtrain {
namespace {

constexpr uint64_t kBig = uint64_t{9} << 20;  // allocated ahead, and past the first writeback

class WriterTest : public testing::TestWithParam<bool> {
 protected:
  bool in_memory() const { return GetParam(); }
  std::string path(std::string_view name) const { return in_memory() ? std::string(name) : folder_ / name; }
  Storage& storage() { return in_memory() ? static_cast<Storage&>(memory_) : posix_storage(); }
  std::unique_ptr<Writer> create(std::string_view name, uint64_t size, const WriteOptions& options = {}) {
    auto writer = storage().create(path(name), size, options);
    EXPECT_TRUE(writer.ok()) << writer.status().text();
    return writer.ok() ? std::move(*writer) : nullptr;
  }
  std::vector<std::string> names(bool parts) {
    return visible(storage(), in_memory() ? std::string(".") : folder_.path(), parts);
  }

  TemporaryFolder folder_;
  MemoryStorage memory_;
};

using Names = std::vector<std::string>;

TEST_P(WriterTest, NothingIsVisibleBeforeCommit) {
  auto writer = create("a", 6);
  ASSERT_TRUE(writer->write_at(3, as_bytes("def")).ok());
  ASSERT_TRUE(writer->write_at(0, as_bytes("abc")).ok());
  EXPECT_EQ(names(false), Names{});
  EXPECT_EQ(names(true), Names{"a.tmp-0"});
  ASSERT_TRUE(writer->commit().ok());
  EXPECT_EQ(names(true), Names{"a"});
  EXPECT_EQ(get(storage(), path("a")), "abcdef");
  EXPECT_EQ(writer->commit().code(), Code::invalid);
  EXPECT_EQ(writer->write_at(0, as_bytes("x")).code(), Code::invalid);
  writer->discard();  // of what is committed nothing is taken back
  EXPECT_EQ(get(storage(), path("a")), "abcdef");
}

TEST_P(WriterTest, FileOfANewFolderIsWholeOnceItIsCommitted) {
  WriteOptions options;
  options.in_new_folder = true;
  auto writer = create("a", 6, options);
  ASSERT_TRUE(writer->write_at(0, as_bytes("abcdef")).ok());
  ASSERT_TRUE(writer->commit().ok());
  EXPECT_EQ(names(true), Names{"a"});
  EXPECT_EQ(get(storage(), path("a")), "abcdef");
  EXPECT_EQ(writer->commit().code(), Code::invalid);
  writer->discard();
  EXPECT_EQ(names(true), Names{"a"});
  create("b", 3, options)->discard();
  EXPECT_EQ(names(true), Names{"a"});
}

TEST_P(WriterTest, BytesNeverWrittenAreZero) {
  for (const uint64_t size : {uint64_t{10}, kBig}) {
    const std::string name = "z" + std::to_string(size);
    auto writer = create(name, size);
    ASSERT_TRUE(writer->write_at(2, as_bytes("x")).ok());
    ASSERT_TRUE(writer->commit().ok());
    std::string expected(size, '\0');
    expected[2] = 'x';
    EXPECT_TRUE(get(storage(), path(name)) == expected);
  }
}

TEST_P(WriterTest, DiscardRemovesThePart) {
  auto writer = create("a", 3);
  ASSERT_TRUE(writer->write_at(0, as_bytes("abc")).ok());
  writer->discard();
  EXPECT_EQ(names(true), Names{});
  EXPECT_EQ(writer->commit().code(), Code::invalid);
}

TEST_P(WriterTest, PartIsTakenUpAgainOnlyIfAsked) {
  WriteOptions options;
  options.token = "t7";
  ASSERT_TRUE(create("a", 4, options)->write_at(0, as_bytes("ab")).ok());  // and no commit
  EXPECT_EQ(names(true), Names{"a.tmp-t7"});
  options.resume = true;
  auto writer = create("a", 4, options);
  ASSERT_TRUE(writer->write_at(2, as_bytes("cd")).ok());
  ASSERT_TRUE(writer->commit().ok());
  EXPECT_EQ(get(storage(), path("a")), "abcd");

  options.resume = false;
  ASSERT_TRUE(create("b", 4, options)->write_at(0, as_bytes("ab")).ok());
  writer = create("b", 4, options);
  ASSERT_TRUE(writer->write_at(2, as_bytes("cd")).ok());
  ASSERT_TRUE(writer->commit().ok());
  EXPECT_EQ(get(storage(), path("b")), std::string("\0\0cd", 4));
}

TEST_P(WriterTest, PartOfAnotherLengthIsCutOrGrows) {
  WriteOptions options;
  options.resume = true;
  ASSERT_TRUE(create("a", 6)->write_at(0, as_bytes("abcdef")).ok());
  ASSERT_TRUE(create("a", 4, options)->commit().ok());
  EXPECT_EQ(get(storage(), path("a")), "abcd");
  ASSERT_TRUE(create("b", 2)->write_at(0, as_bytes("ab")).ok());
  ASSERT_TRUE(create("b", 4, options)->commit().ok());
  EXPECT_EQ(get(storage(), path("b")), std::string("ab\0\0", 4));
}

TEST_P(WriterTest, ExistingNameIsKeptUnlessReplaceIsAsked) {
  put(storage(), path("a"), "old");
  auto writer = create("a", 3);
  ASSERT_TRUE(writer->write_at(0, as_bytes("new")).ok());
  EXPECT_EQ(writer->commit().code(), Code::invalid);
  writer->discard();
  EXPECT_EQ(get(storage(), path("a")), "old");
  WriteOptions options;
  options.replace = true;
  EXPECT_TRUE(write_whole(storage(), path("a"), as_bytes("new"), options).ok());
  EXPECT_EQ(get(storage(), path("a")), "new");
  EXPECT_EQ(write_whole(storage(), path("a"), as_bytes("x")).code(), Code::invalid);
  EXPECT_EQ(names(true), Names{"a"});  // the part of the failed attempt is gone
}

TEST_P(WriterTest, WriteOutsideTheSizeIsRefused) {
  auto writer = create("a", 4);
  EXPECT_EQ(writer->write_at(2, as_bytes("abc")).code(), Code::invalid);
  EXPECT_EQ(writer->write_at(~uint64_t{0}, as_bytes("a")).code(), Code::invalid);
  EXPECT_TRUE(writer->write_at(4, {}).ok());
}

TEST_P(WriterTest, SizeCanBeLearntLate) {
  for (const uint64_t guess : {uint64_t{2}, uint64_t{100}, kBig}) {
    const std::string name = "late" + std::to_string(guess);
    auto writer = create(name, guess);
    ASSERT_TRUE(writer->write_at(0, as_bytes("ab")).ok());
    ASSERT_TRUE(writer->resize(6).ok());
    ASSERT_TRUE(writer->write_at(4, as_bytes("ef")).ok());
    EXPECT_EQ(writer->write_at(6, as_bytes("g")).code(), Code::invalid);
    ASSERT_TRUE(writer->commit().ok());
    EXPECT_EQ(get(storage(), path(name)), std::string("ab\0\0ef", 6));
    EXPECT_EQ(writer->resize(1).code(), Code::invalid);
  }
  auto writer = create("grown", 1);
  ASSERT_TRUE(writer->resize(kBig).ok());
  ASSERT_TRUE(writer->write_at(kBig - 1, as_bytes("x")).ok());
  ASSERT_TRUE(writer->commit().ok());
  EXPECT_EQ(storage().stat(path("grown"))->size, kBig);
}

TEST_P(WriterTest, FolderMustExist) {
  EXPECT_EQ(storage().create(path("none/a"), 1).status().code(), Code::not_found);
}

TEST_P(WriterTest, ThreadsWriteOneFileByPosition) {
  auto writer = create("a", kBig);
  constexpr size_t kPiece = size_t{256} << 10;
  std::vector<std::thread> threads;
  std::atomic<uint64_t> failed{0};
  for (uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (uint64_t piece = thread; piece * kPiece < kBig; piece += 4)
        if (!writer
                 ->write_at(piece * kPiece,
                            as_bytes(std::string(kPiece, static_cast<char>('a' + piece % 26))))
                 .ok())
          ++failed;
    });
  for (auto& thread : threads) thread.join();
  ASSERT_EQ(failed.load(), 0u);
  ASSERT_TRUE(writer->commit().ok());
  const std::string text = get(storage(), path("a"));
  ASSERT_EQ(text.size(), kBig);
  for (size_t at = 0; at < text.size(); at += 1000)
    ASSERT_EQ(text[at], static_cast<char>('a' + at / kPiece % 26));
}

TEST_P(WriterTest, EmptyFileIsAFile) {
  EXPECT_TRUE(write_whole(storage(), path("a"), {}).ok());
  EXPECT_EQ(storage().stat(path("a"))->size, 0u);
}

INSTANTIATE_TEST_SUITE_P(Storages, WriterTest, testing::Values(false, true),
                         [](const auto& made) { return std::string(made.param ? "memory" : "posix"); });

TEST(PosixWriterTest, OldPartIsNotFollowedWhereItIsALink) {
  TemporaryFolder folder;
  put(posix_storage(), folder / "victim", "precious");
  ASSERT_EQ(::symlink("victim", (folder / "a.tmp-0").c_str()), 0);
  WriteOptions options;
  options.resume = true;
  EXPECT_FALSE(posix_storage().create(folder / "a", 3, options).ok());
  ASSERT_TRUE(write_whole(posix_storage(), folder / "a", as_bytes("new")).ok());
  EXPECT_EQ(get(posix_storage(), folder / "victim"), "precious");
  EXPECT_EQ(get(posix_storage(), folder / "a"), "new");
}

TEST(PosixWriterTest, LongestNamesCanBeWritten) {
  TemporaryFolder folder;
  for (const size_t length : {240, 250, 251, 255}) {
    const std::string path = folder / std::string(length, 'n');
    EXPECT_TRUE(write_whole(posix_storage(), path, as_bytes("x")).ok()) << length;
    EXPECT_EQ(get(posix_storage(), path), "x");
  }
  EXPECT_EQ(write_whole(posix_storage(), folder / std::string(256, 'n'), as_bytes("x")).code(),
            Code::invalid);
}

TEST(PosixWriterTest, LongTemporaryNamesDifferWhereTheirFilesDo) {
  const std::string stem(250, 'n');
  EXPECT_NE(temporary_path(stem + "1", "0"), temporary_path(stem + "2", "0"));
  EXPECT_EQ(temporary_path("a/b", "7"), "a/b.tmp-7");
  EXPECT_LE(temporary_path("d/" + stem + "12345", "token").size(), 2u + 255u);
}

TEST(PosixWriterTest, CannotLeaveAPartInAReadOnlyFolder) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  TemporaryFolder folder;
  ASSERT_TRUE(posix_storage().make_folder(folder / "d").ok());
  ASSERT_EQ(::chmod((folder / "d").c_str(), 0500), 0);
  EXPECT_EQ(posix_storage().create(folder / "d/a", 1).status().code(), Code::io);
}

// The share of a file's pages that are in the system's memory. To read them would bring some there.
double share_in_memory(const std::string& path) {
  auto file = posix_storage().open(path);
  EXPECT_TRUE(file.ok());
  const auto& posix = dynamic_cast<const PosixFile&>(**file);
  const size_t bytes = posix.size(), page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, posix.descriptor(), 0);
  EXPECT_NE(mapped, MAP_FAILED);
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  EXPECT_EQ(::mincore(mapped, bytes, pages.data()), 0);
  ::munmap(mapped, bytes);
  const auto there =
      std::count_if(pages.begin(), pages.end(), [](unsigned char at) { return (at & 1) != 0; });
  return static_cast<double>(there) / static_cast<double>(pages.size());
}

void write_pieces(const std::string& path, const std::string& piece, uint64_t pieces, bool stays) {
  auto writer = posix_storage().create(path, pieces * piece.size(), {.stay_in_memory = stays});
  ASSERT_TRUE(writer.ok());
  for (uint64_t i = 0; i < pieces; ++i)
    ASSERT_TRUE((*writer)->write_at(i * piece.size(), as_bytes(piece)).ok());
  ASSERT_TRUE((*writer)->commit().ok());
}

TEST(PosixWriterTest, WhatMayNotStayInMemoryIsToldToTheSystemOnTheWayAndAtTheEnd) {
  TemporaryFolder folder;
  const std::string piece(4 << 20, 'x');
  constexpr uint64_t kPieces = 16;
  take_advice();
  write_pieces(folder / "stays", piece, kPieces, true);
  EXPECT_EQ(take_advice().size(), 0u);

  write_pieces(folder / "goes", piece, kPieces, false);
  const std::vector<Advice> given = take_advice();
  ASSERT_GE(given.size(), 3u);
  EXPECT_EQ(given.back().length, 0) << "all of the file, once it is on the disk";
  for (size_t i = 0; i < given.size(); ++i) {
    EXPECT_EQ(given[i].advice, POSIX_FADV_DONTNEED);
    EXPECT_EQ(given[i].offset, 0);
    if (i + 1 == given.size()) break;
    EXPECT_GT(given[i].length, 0);
    EXPECT_LT(given[i].length, static_cast<off_t>(kPieces * piece.size())) << "what is far behind";
  }
  EXPECT_TRUE(get(posix_storage(), folder / "goes") == std::string(kPieces * piece.size(), 'x'));
}

TEST(PosixWriterTest, WhatMayNotStayInMemoryIsGivenBack) {
  TemporaryFolder folder;
  const std::string piece(4 << 20, 'x');
  constexpr uint64_t kPieces = 16;
  // A system may keep pages that others look at just now, on a busy machine often, and take ones that nobody
  // asked it to take. So only a round counts in which it does before and after as it is told in so many
  // words.
  const auto told = [&] {
    write_pieces(folder / "told", piece, kPieces, true);
    const int descriptor = ::open((folder / "told").c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED), 0);
    ::close(descriptor);
    return share_in_memory(folder / "told") < 0.2;
  };
  int rounds_that_count = 0;
  std::string seen;
  for (int round = 0; round < 8 && rounds_that_count < 4; ++round) {
    const bool told_before = told();
    write_pieces(folder / "stays", piece, kPieces, true);
    const double stays = share_in_memory(folder / "stays");
    write_pieces(folder / "goes", piece, kPieces, false);
    const double goes = share_in_memory(folder / "goes");
    if (stays > 0.9 && goes < 0.2) return;
    rounds_that_count += told_before && told() ? 1 : 0;
    seen += " " + std::to_string(stays) + "/" + std::to_string(goes);
  }
  if (rounds_that_count < 4) GTEST_SKIP() << "this system mostly gives no memory back just now:" << seen;
  ADD_FAILURE() << "of what stays / of what goes are in memory:" << seen;
}

TEST(PosixWriterTest, NonDurableCommitIsVisibleToo) {
  TemporaryFolder folder;
  WriteOptions options;
  options.durable = false;
  auto writer = posix_storage().create(folder / "a", 3, options);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->write_at(0, as_bytes("abc")).ok());
  ASSERT_TRUE((*writer)->commit().ok());
  (*writer)->discard();
  EXPECT_EQ(get(posix_storage(), folder / "a"), "abc");
}

// A filesystem of 4 MiB of its own, to be filled.
class FullDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can mount a small filesystem";
    mounted_ = ::mount("packtrain-test", folder_.path().c_str(), "tmpfs", 0, "size=4m,nr_inodes=16") == 0;
    if (!mounted_) GTEST_SKIP() << "no tmpfs can be mounted here";
  }
  void TearDown() override {
    if (mounted_) {
      EXPECT_EQ(::umount2(folder_.path().c_str(), MNT_DETACH), 0);
    }
  }
  TemporaryFolder folder_;
  bool mounted_ = false;
};

TEST_F(FullDiskTest, LackOfRoomShowsBeforeByteOneAndLeavesNothing) {
  const Status status = posix_storage().create(folder_ / "big", uint64_t{5} << 20).status();
  EXPECT_EQ(status.code(), Code::no_room);
  EXPECT_NE(status.text().find("big.tmp-0"), std::string::npos) << status.text();
  EXPECT_EQ(visible(posix_storage(), folder_.path(), true), std::vector<std::string>{});
  EXPECT_TRUE(write_whole(posix_storage(), folder_ / "fits", as_bytes(std::string(3 << 20, 'x'))).ok());
}

TEST_F(FullDiskTest, SmallFilesAreToldToo) {
  Status status;
  for (int i = 0; i < 10 && status.ok(); ++i)
    status = write_whole(posix_storage(), folder_ / std::to_string(i), as_bytes(std::string(900'000, 'x')));
  EXPECT_EQ(status.code(), Code::no_room) << status.text();
}

TEST_F(FullDiskTest, NoInodesLeftIsNoRoom) {
  Status status;
  for (int i = 0; i < 20 && status.ok(); ++i)
    status = write_whole(posix_storage(), folder_ / std::to_string(i), as_bytes("x"));
  EXPECT_EQ(status.code(), Code::no_room) << status.text();
}

TEST(MemoryStorageTest, CapacityIsALimit) {
  MemoryStorage storage(10);
  EXPECT_TRUE(write_whole(storage, "a", as_bytes("12345")).ok());
  EXPECT_EQ(write_whole(storage, "b", as_bytes("123456")).code(), Code::no_room);
  EXPECT_TRUE(write_whole(storage, "b", as_bytes("12345")).ok());
  EXPECT_TRUE(storage.remove("a").ok());
  EXPECT_TRUE(write_whole(storage, "c", as_bytes("54321")).ok());
}

}  // namespace
}  // namespace packtrain
