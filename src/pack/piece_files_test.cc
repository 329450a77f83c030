#include "pack/piece_files.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "io/test_storage.h"

namespace packtrain {
namespace {

constexpr uint32_t kFiles = 20;

// Opens as many files at a time as it is told, as a process without descriptors does.
class FewFiles : public StorageWrapper {
 public:
  FewFiles(Storage& inner, int most) : StorageWrapper(inner), most_(most) {}

  Result<std::unique_ptr<File>> open(std::string_view path) override {
    if (open_.fetch_add(1) >= most_) {
      --open_;
      return Status(Code::limit, "Too many open files");
    }
    ++opened;
    PACKTRAIN_ASSIGN(file, StorageWrapper::open(path));
    return std::unique_ptr<File>(new Counted(std::move(file), open_));
  }
  Status read(const File& file, uint64_t offset, MutableBytes into) override {
    return StorageWrapper::read(*static_cast<const Counted&>(file).file, offset, into);
  }

  std::atomic<int> opened = 0;

 private:
  struct Counted final : File {
    Counted(std::unique_ptr<File> inner, std::atomic<int>& count) : file(std::move(inner)), open(count) {}
    ~Counted() override { --open; }
    uint64_t size() const override { return file->size(); }
    const FileInfo& info() const override { return file->info(); }
    const std::unique_ptr<File> file;
    std::atomic<int>& open;
  };

  const int most_;
  std::atomic<int> open_ = 0;
};

class PieceFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    for (uint32_t i = 0; i < kFiles; ++i) {
      put(memory_, "shard" + std::to_string(i), std::string(1, static_cast<char>('a' + i)));
      specs_.push_back({"shard" + std::to_string(i), 1, 0});
    }
  }
  static void expect_right(Storage& storage, PieceFiles& files, uint32_t number) {
    auto file = files.use(number);
    ASSERT_TRUE(file.ok()) << file.status().text();
    char letter = 0;
    ASSERT_TRUE(storage.read(**file, 0, std::as_writable_bytes(std::span(&letter, 1))).ok());
    EXPECT_EQ(letter, static_cast<char>('a' + number));
  }

  MemoryStorage memory_;
  std::vector<PieceFile> specs_;
};

TEST_F(PieceFilesTest, AFileIsOpenedOnceWhileThereIsRoom) {
  FewFiles storage(memory_, kFiles);
  PieceFiles files(storage, specs_, kFiles);
  for (int round = 0; round < 3; ++round)
    for (uint32_t i = 0; i < kFiles; ++i) expect_right(storage, files, i);
  EXPECT_EQ(storage.opened, static_cast<int>(kFiles));
}

TEST_F(PieceFilesTest, NoMoreStayOpenThanMayAndNoneIsClosedThatIsInUse) {
  FewFiles storage(memory_, 4);
  PieceFiles files(storage, specs_, 4);
  const auto held = files.use(7);
  ASSERT_TRUE(held.ok());
  for (int round = 0; round < 3; ++round)
    for (uint32_t i = 0; i < kFiles; ++i) expect_right(storage, files, i);
  char letter = 0;
  ASSERT_TRUE(storage.read(**held, 0, std::as_writable_bytes(std::span(&letter, 1))).ok());
  EXPECT_EQ(letter, 'h');
}

TEST_F(PieceFilesTest, WhereAnOpenFailsForLackOfDescriptorsOthersAreClosed) {
  FewFiles storage(memory_, 3);
  PieceFiles files(storage, specs_, 1000);
  for (int round = 0; round < 3; ++round)
    for (uint32_t i = 0; i < kFiles; ++i) expect_right(storage, files, i);
}

TEST_F(PieceFilesTest, WhereAllAreInUseTheLackIsAnError) {
  FewFiles storage(memory_, 3);
  PieceFiles files(storage, specs_, 1000);
  const auto one = files.use(0), two = files.use(1);
  auto three = std::optional(files.use(2));
  ASSERT_TRUE(one.ok() && two.ok() && three->ok());
  EXPECT_EQ(files.use(3).status().code(), Code::limit);
  three.reset();
  expect_right(storage, files, 3);
}

TEST_F(PieceFilesTest, ThreadsThatShareFewFilesReadTheRightOnes) {
  FewFiles storage(memory_, 6);
  PieceFiles files(storage, specs_, 6);
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint32_t i = 0; i < 4000; ++i)
        expect_right(storage, files, (i * (2 * thread + 1) + thread) % kFiles);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(PieceFilesTest, AFileThatIsOpenedAgainMustStillBeTheOneThatWasListed) {
  FewFiles storage(memory_, 1);
  PieceFiles files(storage, specs_, 1);
  expect_right(storage, files, 0);
  expect_right(storage, files, 1);
  put(memory_, "shard0", "longer");
  const auto changed = files.use(0);
  EXPECT_EQ(changed.status().code(), Code::corrupt);
  EXPECT_NE(changed.status().text().find("has changed since it was listed"), std::string::npos);
}

}  // namespace
}  // namespace packtrain
