#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/little_endian.h"
#include "format/squashfs_records.h"
#include "format/squashfs_tree.h"
#include "io/test_storage.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

const Format& squashfs() { return *find_format("squashfs"); }

using Files = std::vector<std::pair<std::string, std::string>>;

// Files by path; the writer puts the dot back in.
Status write_files(Storage& storage, const std::string& path, const Files& files,
                   const std::string& compress = "none") {
  WriteSpec spec;
  spec.compress = compress;
  PACKTRAIN_ASSIGN(writer, squashfs().create(storage, path, spec));
  for (const auto& [name, bytes] : files) {
    const size_t dot = name.rfind('.');
    const SampleToWrite::Field field{std::string_view(name).substr(dot + 1), as_bytes(bytes)};
    PACKTRAIN_TRY(
        writer->add({.key = std::string_view(name).substr(0, dot), .fields = std::span(&field, 1)}));
  }
  return writer->finish();
}

class SquashfsTest : public testing::Test {
 protected:
  Result<std::shared_ptr<Dataset>> open(const std::string& path, const IndexOptions& options = {}) {
    IndexBuilder builder;
    PACKTRAIN_TRY(squashfs().index(storage_, path, options, builder));
    return Dataset::from_memory(storage_, "", builder.finish());
  }
  Result<std::shared_ptr<Dataset>> open_bytes(const std::string& bytes,
                                              std::vector<Damage>* damage = nullptr) {
    put(storage_, "y.squashfs", bytes);
    IndexOptions options;
    options.recover = damage != nullptr;
    options.damage = damage;
    return open("y.squashfs", options);
  }
  std::string image(const Files& files, const std::string& compress = "none") {
    MemoryStorage storage;
    Status status = write_files(storage, "x", files, compress);
    EXPECT_TRUE(status.ok()) << status.text();
    return status.ok() ? get(storage, "x") : "";
  }
  static void expect_same(const Dataset& dataset, const Files& files) {
    ASSERT_EQ(dataset.samples(), files.size());
    for (const auto& [name, bytes] : files) {
      auto found = dataset.find(name.substr(0, name.rfind('.')));
      ASSERT_TRUE(found.ok()) << found.status().text();
      SampleBytes got;
      ASSERT_TRUE(dataset.read(*found, got).ok());
      ASSERT_EQ(got.fields.size(), 1u);
      ASSERT_TRUE(as_text(got.fields[0].bytes) == bytes) << name;
    }
  }
  void expect_failure(const std::string& bytes, Code code, std::string_view reason) {
    auto dataset = open_bytes(bytes);
    ASSERT_FALSE(dataset.ok()) << reason;
    EXPECT_EQ(dataset.status().code(), code) << dataset.status().text();
    EXPECT_NE(dataset.status().text().find(reason), std::string::npos) << dataset.status().text();
  }
  // Where a name stands in a listing, from its entry's head on.
  static size_t entry_of(const std::string& bytes, std::string_view name) {
    return bytes.find(name, load_le<uint64_t>(bytes.data() + 72)) - kSquashEntryHeadBytes;
  }

  MemoryStorage storage_;
};

TEST_F(SquashfsTest, FoldersMayBeLargeAndDeep) {
  Files files;
  for (int i = 0; i < 30'000; ++i) {
    files.emplace_back("large/" + std::to_string(i) + ".txt", "text of " + std::to_string(i));
  }
  std::string deep;
  for (int i = 0; i < 300; ++i) {
    deep += "d" + std::to_string(i) + "/";
    files.emplace_back(deep + "f.txt", std::to_string(i));
  }
  files.emplace_back("a.txt", "beside folders");
  files.emplace_back("a/b.txt", "in a folder that sorts before");
  const std::string bytes = image(files);
  auto dataset = open_bytes(bytes);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  expect_same(**dataset, files);
  EXPECT_EQ(bytes.size() % 4096, 0u) << "a device of whole pages";
}

TEST_F(SquashfsTest, RawFilesAreOneStretchEach) {
  const Files files = {
      {"a.bin", std::string(1'000'000, 'a')}, {"b.bin", std::string(131'072, 'b')}, {"c.bin", ""}};
  auto dataset = open_bytes(image(files));
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  expect_same(**dataset, files);
  EXPECT_EQ((*dataset)->manifest().form, "rows");
}

TEST_F(SquashfsTest, CompressedFilesAreCutIntoBlocks) {
  std::string mixed(500'000, 'x');
  std::mt19937 rng(1);
  for (size_t i = 131'072; i < 262'144; ++i) mixed[i] = static_cast<char>(rng());
  const Files files = {{"a.bin", mixed}, {"b.bin", std::string(200'000, 'b')}, {"c.bin", "short"}};
  for (const char* codec : {"zstd", "deflate"}) {
    MemoryStorage trial;
    if (write_files(trial, "x", files, codec).code() == Code::unsupported) continue;
    const std::string bytes = image(files, codec);
    EXPECT_LT(bytes.size(), 160'000u);
    auto dataset = open_bytes(bytes);
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    expect_same(**dataset, files);
    std::vector<std::pair<Block, Slice>> slices;
    ASSERT_TRUE((*dataset)->slices(*(*dataset)->find("a"), 0, slices).ok());
    ASSERT_EQ(slices.size(), 4u);
    EXPECT_EQ(slices[1].first.pipeline, 0) << "what does not shrink stays raw";
    EXPECT_NE(slices[2].first.pipeline, 0);
    std::string unknown = bytes;
    store_le(unknown.data() + 20, static_cast<uint16_t>(SquashCodec::xz));
    expect_failure(unknown, Code::unsupported, "xz");
  }
}

TEST_F(SquashfsTest, CodecDoesNotMatterWhereNothingIsCompressed) {
  std::string bytes = image({{"a.txt", "1"}});
  store_le(bytes.data() + 20, static_cast<uint16_t>(SquashCodec::xz));
  EXPECT_TRUE(open_bytes(bytes).ok());
}

TEST_F(SquashfsTest, IndexReadsNoDataButLabels) {
  Files files;
  for (int i = 0; i < 300; ++i) {
    files.emplace_back(std::to_string(i) + ".cls", std::to_string(i));
    files.emplace_back(std::to_string(i) + ".jpg", std::string(50'000, 'x'));
  }
  put(storage_, "x", image(files));
  CountingStorage counted(storage_);
  IndexBuilder builder;
  ASSERT_TRUE(squashfs().index(counted, "x", {}, builder).ok());
  EXPECT_LT(counted.bytes_read(), 300'000u);
  auto dataset = Dataset::from_memory(storage_, "", builder.finish());
  ASSERT_TRUE(dataset.ok());
  EXPECT_EQ((*dataset)->label(*(*dataset)->find("217")), 217);
}

TEST(SquashTreeTest, FilesBeyondFourGigabytesHaveLongInodes) {
  constexpr uint64_t kFar = uint64_t{5} << 30, kLong = (uint64_t{6} << 30) + 1;
  SquashTree tree(1 << 20);
  ASSERT_TRUE(tree.add_file("far.bin", kFar, 10, {}).ok());
  ASSERT_TRUE(tree.add_file("long.bin", 96, kLong, {}).ok());
  ASSERT_TRUE(tree.finish().ok());
  const std::vector<std::byte> bytes = tree.inodes().to_disk();
  auto far = parse_squash_inode(Bytes(bytes).subspan(kSquashMetaHeadBytes, kSquashLongFileBytes));
  ASSERT_TRUE(far.ok());
  EXPECT_EQ(far->kind, SquashKind::long_file);
  EXPECT_EQ(far->start, kFar);
  EXPECT_EQ(far->size, 10u);
  const size_t next = kSquashMetaHeadBytes + kSquashLongFileBytes + sizeof(uint32_t);
  auto large = parse_squash_inode(Bytes(bytes).subspan(next, kSquashLongFileBytes));
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(large->start, 96u);
  EXPECT_EQ(large->size, kLong);
}

TEST_F(SquashfsTest, SameSamplesGiveTheSameBytes) {
  const Files files = {{"b/1.txt", "1"}, {"a/1.txt", std::string(300'000, 'y')}};
  EXPECT_TRUE(image(files) == image(files));
}

TEST_F(SquashfsTest, WhatIsNoPathIsRefusedByName) {
  for (const char* path : {"/a.txt", "a//b.txt", "./a.txt", "a/../b.txt", "a/..txt"}) {
    Status status = write_files(storage_, "x", {{path, "1"}});
    if (std::string_view(path) == "a/..txt") {
      EXPECT_TRUE(status.ok()) << "a hidden file is a file";
      continue;
    }
    EXPECT_EQ(status.code(), Code::invalid) << path;
    EXPECT_NE(status.text().find(path), std::string::npos) << status.text();
  }
  EXPECT_EQ(write_files(storage_, "y", {{std::string(252, 'k') + ".txt", "1"}}).code(), Code::invalid);
  EXPECT_TRUE(write_files(storage_, "z", {{std::string(251, 'k') + ".txt", "1"}}).ok());
  EXPECT_EQ(write_files(storage_, "y", {{"a.txt", "1"}, {"a.txt", "2"}}).code(), Code::invalid);
  EXPECT_EQ(write_files(storage_, "y", {{"a.txt/b.txt", "1"}, {"a.txt", "2"}}).code(), Code::invalid);
  EXPECT_EQ(write_files(storage_, "y", {}, "xz").code(), Code::unsupported);
  EXPECT_EQ(visible(storage_, "").size(), 2u) << "nothing is left of what failed";
}

TEST_F(SquashfsTest, FoldersInCirclesAreDamage) {
  const std::string sound = image({{"aaaa/x.txt", "1"}, {"bbbb/y.txt", "2"}});
  const size_t first = entry_of(sound, "aaaa"), second = entry_of(sound, "bbbb");
  std::string twice = sound;
  std::copy_n(&sound[first], 2, &twice[second]);
  expect_failure(twice, Code::corrupt, "two places");
  std::string circle = sound;
  store_le(&circle[first], static_cast<uint16_t>(load_le<uint64_t>(sound.data() + 32) & 0xFFFF));
  expect_failure(circle, Code::corrupt, "two places");
  std::vector<Damage> damage;
  auto rest = open_bytes(circle, &damage);
  ASSERT_TRUE(rest.ok()) << rest.status().text();
  EXPECT_EQ((*rest)->samples(), 1u);
  EXPECT_EQ(damage.size(), 1u);
}

TEST_F(SquashfsTest, NamesThatLeadOutOfTheirFolderAreDamage) {
  std::string bytes = image({{"aaaa/x.txt", "1"}});
  bytes.replace(entry_of(bytes, "aaaa") + kSquashEntryHeadBytes, 4, "../a");
  expect_failure(bytes, Code::corrupt, "../a");
}

TEST_F(SquashfsTest, WhatIsNotReadSaysSo) {
  std::string bytes = image({{"a.txt", "1"}});
  std::string old = bytes;
  store_le<uint16_t>(old.data() + 28, 3);
  expect_failure(old, Code::unsupported, "version");
  std::string swapped = bytes;
  std::reverse(swapped.begin(), swapped.begin() + 4);
  expect_failure(swapped, Code::unsupported, "unsquashfs");
}

}  // namespace
}  // namespace packtrain
