// Compressed archives into containers that take samples in their own order.
#include <algorithm>
#include <random>
#include <thread>

#include "io/test_storage.h"
#include "pack/publish.h"
#include "pack/test_archives.h"
#include "pack/test_pack_folder.h"

namespace packtrain {
namespace {

namespace fs = std::filesystem;

struct Case {
  const char *format, *compress;
};
constexpr Case kCases[] = {{"arrow", "auto"},    {"hdf5", "auto"}, {"hdf5-vlen", "auto"}, {"lmdb", "auto"},
                           {"squashfs", "zstd"}, {"zarr", "auto"}, {"zip", "deflate"}};

class StreamSpoolTest : public PackFolderTest {
 protected:
  void SetUp() override {
    PackFolderTest::SetUp();
    if (!has_codec("deflate") || !has_codec("gzip") || !has_codec("zstd"))
      GTEST_SKIP() << "built without the libraries";
  }
  // The same files as a folder, as tree.tar.gz and as tree.tar.zst; some are empty, one is large.
  void make_source(int count, size_t largest = 100'000) const {
    std::mt19937 random(3);
    std::vector<ArchivedFile> files;
    for (int i = 0; i < count; ++i) {
      const std::string stem = "class" + std::to_string(i % 3) + "/" + std::to_string(i);
      std::string photo(i == 4 ? largest : random() % 4000, '\0');
      for (char& byte : photo) byte = static_cast<char>(random());
      if (i != 5) photo.insert(0, "\xFF\xD8\xFF\xE0");
      files.push_back({stem + ".jpg", photo});
      files.push_back({stem + ".txt", i % 7 == 0 ? "" : std::string(random() % 9000, 't')});
    }
    std::shuffle(files.begin(), files.end(), random);
    for (const ArchivedFile& file : files) put("tree/" + file.name, file.bytes);
    const std::string tar = tar_of(files);
    put("tree.tar.gz", gzip_of(tar));
    put("tree.tar.zst", zstd_of(tar));
  }
  PackOptions case_options(const Case& one, const std::string& source, const std::string& out) const {
    PackOptions pack = options(source, out, one.format);
    pack.compress = one.compress;
    if (find_format(one.format)->cut == Cut::shards) pack.shards = 3;
    return pack;
  }
  // Names in a folder that only belong to the making.
  std::vector<std::string> work_files(const std::string& name) const {
    std::vector<std::string> found;
    if (!exists(name)) return found;
    for (const auto& entry : fs::directory_iterator(folder_ / name))
      if (is_work_file(entry.path().filename().string())) found.push_back(entry.path().filename());
    return found;
  }
};

TEST_F(StreamSpoolTest, EveryContainerHoldsWhatTheUnpackedTreeGives) {
  make_source(30, 5 << 20);
  for (const Case& one : kCases) {
    const std::string name = one.format;
    ASSERT_TRUE(pack(posix_storage(), case_options(one, "tree", name + "-tree")).ok()) << name;
    const auto expected = samples(name + "-tree");
    for (const char* source : {"tree.tar.gz", "tree.tar.zst"}) {
      const std::string out = name + "-" + source;
      auto report = pack(posix_storage(), case_options(one, source, out));
      ASSERT_TRUE(report.ok()) << name << ": " << report.status().text();
      EXPECT_EQ(samples(out), expected) << out;
      expect_sound(out);
      EXPECT_TRUE(work_files(out).empty()) << out;
      EXPECT_FALSE(exists(out + ".part"));
    }
  }
}

TEST_F(StreamSpoolTest, CompressionIsDecidedFromTheFirstMembers) {
  make_source(30);
  auto report = pack(posix_storage(), case_options({"squashfs", "auto"}, "tree.tar.gz", "out"));
  ASSERT_TRUE(report.ok()) << report.status().text();
  ASSERT_EQ(report->compression.size(), 3u);
  EXPECT_EQ(report->compression[1].field, "jpg");
  EXPECT_FALSE(report->compression[1].compressed);
  EXPECT_EQ(report->compression[1].values, 30u);
  EXPECT_EQ(report->compression[2].field, "txt");
  EXPECT_GT(report->compression[2].ratio, 0);
}

TEST_F(StreamSpoolTest, FailingAnywhereItCanBeContinuedAndLeavesNoSpool) {
  make_source(12);
  const Case one{"squashfs", "zstd"};
  ASSERT_TRUE(pack(posix_storage(), case_options(one, "tree.tar.gz", "whole")).ok());
  const auto expected = contents("whole");
  for (const bool writes : {true, false}) {
    for (uint64_t n = 1;; ++n) {
      Faults faults;
      (writes ? faults.fail_write : faults.fail_commit) = n;
      faults.from_then_on = true;
      FaultyStorage flaky(posix_storage(), faults);
      fs::remove_all(path("out"));
      fs::remove_all(path("out.part"));
      if (pack(flaky, case_options(one, "tree.tar.gz", "out")).ok()) break;
      ASSERT_FALSE(exists("out")) << n;
      for (const std::string& name : work_files("out.part")) EXPECT_FALSE(name.starts_with("streams")) << n;
      auto again = pack(posix_storage(), case_options(one, "tree.tar.gz", "out"));
      ASSERT_TRUE(again.ok()) << n << ": " << again.status().text();
      EXPECT_EQ(contents("out"), expected) << n;
      EXPECT_TRUE(work_files("out").empty());
      ASSERT_LT(n, 200u);
    }
  }
}

TEST_F(StreamSpoolTest, WhatADeadProcessLeftIsRemovedAndMadeAgain) {
  make_source(12);
  const Case one{"arrow", "auto"};
  PackOptions planned = case_options(one, "tree.tar.gz", "out");
  planned.plan_only = true;
  ASSERT_TRUE(pack(posix_storage(), planned).ok());
  put("out.part/streams.tmp-elsewhere-1-0", "half of it");
  ASSERT_TRUE(is_work_file("streams.tmp-elsewhere-1-0"));
  ASSERT_TRUE(pack(posix_storage(), case_options(one, "tree.tar.gz", "out")).ok());
  EXPECT_TRUE(work_files("out").empty());
  ASSERT_TRUE(pack(posix_storage(), case_options(one, "tree.tar.gz", "other")).ok());
  EXPECT_EQ(contents("out"), contents("other"));
}

TEST_F(StreamSpoolTest, WhatADeadProcessLeftInTheFolderOfAShardIsRemoved) {
  make_source(6);
  const Case one{"lmdb", "auto"};
  PackOptions planned = case_options(one, "tree.tar.gz", "out");
  planned.plan_only = true;
  ASSERT_TRUE(pack(posix_storage(), planned).ok());
  put("out.part/train-000000.lmdb/data.mdb.tmp-elsewhere-1-0", "half of it");
  ASSERT_TRUE(pack(posix_storage(), case_options(one, "tree.tar.gz", "out")).ok());
  ASSERT_TRUE(pack(posix_storage(), case_options(one, "tree.tar.gz", "other")).ok());
  EXPECT_EQ(contents("out"), contents("other"));
}

TEST_F(StreamSpoolTest, TasksTogetherMakeTheSameBytes) {
  make_source(30);
  const Case one{"zarr", "auto"};
  ASSERT_TRUE(pack(posix_storage(), case_options(one, "tree.tar.gz", "alone")).ok());
  std::vector<std::thread> tasks;
  for (uint32_t task = 0; task < 2; ++task) {
    tasks.emplace_back([&, task] {
      PackOptions mine = case_options(one, "tree.tar.gz", "out");
      mine.task = task;
      mine.tasks = 2;
      auto report = pack(posix_storage(), mine);
      EXPECT_TRUE(report.ok()) << report.status().text();
    });
  }
  for (std::thread& task : tasks) task.join();
  ASSERT_TRUE(exists("out"));
  EXPECT_EQ(contents("alone"), contents("out"));
  EXPECT_TRUE(work_files("out").empty());
}

TEST_F(StreamSpoolTest, ADamagedArchiveIsNamedAndNothingIsPublished) {
  make_source(12);
  const Case one{"hdf5", "auto"};
  PackOptions planned = case_options(one, "tree.tar.gz", "out");
  planned.plan_only = true;
  ASSERT_TRUE(pack(posix_storage(), planned).ok());
  // Damaged behind the scan's back: the same size and time.
  const auto time = fs::last_write_time(path("tree.tar.gz"));
  std::string bytes = read_whole(posix_storage(), path("tree.tar.gz")).value();
  for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 2000; ++i) bytes[i] = static_cast<char>(~bytes[i]);
  put("tree.tar.gz", bytes);
  fs::last_write_time(path("tree.tar.gz"), time);
  PackOptions task = case_options(one, "tree.tar.gz", "out");
  task.tasks = 2;  // does not look at the source again
  Status status = pack(posix_storage(), task).status();
  EXPECT_EQ(status.code(), Code::corrupt) << status.text();
  EXPECT_NE(status.text().find("tree.tar.gz"), std::string::npos) << status.text();
  EXPECT_FALSE(exists("out"));
  for (const std::string& name : work_files("out.part")) EXPECT_FALSE(name.starts_with("streams"));
  // Another archive under the same name is noticed before it is read.
  put("tree.tar.gz", bytes + "more");
  status = pack(posix_storage(), task).status();
  EXPECT_NE(status.text().find("has changed since it was listed"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("remove " + path("out.part")), std::string::npos) << status.text();
}

TEST_F(StreamSpoolTest, AnArchiveThatChangedAfterAllWasReadIsNoticed) {
  make_source(12);
  for (const char* format : {"webdataset", "hdf5"}) {
    const PackOptions options = case_options({format, "auto"}, "tree.tar.gz", std::string("out-") + format);
    Faults faults;  // every shard is whole, and the index cannot be written
    faults.fail_create = 1;
    faults.on = [](std::string_view name) { return name.ends_with("index.npz"); };
    FaultyStorage flaky(posix_storage(), faults);
    ASSERT_EQ(pack(flaky, options).status().code(), Code::io);
    fs::last_write_time(path("tree.tar.gz"), fs::file_time_type::clock::now());
    const Status status = pack(posix_storage(), options).status();
    EXPECT_EQ(status.code(), Code::corrupt) << status.text();
    EXPECT_NE(status.text().find("tree.tar.gz has changed"), std::string::npos) << status.text();
    EXPECT_NE(status.text().find("out-" + std::string(format) + ".part"), std::string::npos) << status.text();
  }
}

TEST_F(StreamSpoolTest, StoppedByTheCallerItLeavesNoSpool) {
  make_source(12);
  PackOptions stopped = case_options({"arrow", "auto"}, "tree.tar.gz", "out");
  bool decompressing = false;
  stopped.progress = [&](const ProgressEvent& event) {
    decompressing |= event.phase == "decompress";
    return event.phase != "decompress";
  };
  EXPECT_EQ(pack(posix_storage(), stopped).status().code(), Code::stopped);
  EXPECT_TRUE(decompressing);
  EXPECT_EQ(work_files("out.part"), std::vector<std::string>{"plan"});
}

}  // namespace
}  // namespace packtrain
