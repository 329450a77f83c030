#include "pack/sidecars.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/little_endian.h"

namespace packtrain {
namespace {

// Two shards of one split and one of another, with offsets as a tar has them.
std::map<std::string, std::string> sidecars_of_three_shards(const std::vector<std::string>& names) {
  Sidecars sidecars(names);
  SidecarShard& first = sidecars.add_shard("train-000000.tar", "train", 10240);
  first.begin_sample(0);
  first.add_member("cls", "a.cls", 512, 1);
  first.add_member("jpg", "a.jpg", 1536, 700);
  first.begin_sample(2560);
  first.add_member("jpg", "b.jpg", 3072, 5);
  first.end(3584);
  SidecarShard& second = sidecars.add_shard("train-000001.tar", "train", 10240);
  second.begin_sample(0);
  second.add_member("jpg", "c.jpg", 512, 9);
  second.end(1024);
  sidecars.add_shard("val-000000.tar", "val", 1024).end(0);
  std::map<std::string, std::string> files;
  for (auto& [path, bytes] : sidecars.finish()) files.emplace(path, bytes);
  std::vector<std::string> paths = sidecar_paths(
      names, {{"train-000000.tar", "train"}, {"train-000001.tar", "train"}, {"val-000000.tar", "val"}});
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> made;
  for (const auto& [path, bytes] : files) made.push_back(path);
  EXPECT_EQ(paths, made);
  return files;
}

TEST(Sidecars, NoneAreMadeUnasked) { EXPECT_TRUE(sidecars_of_three_shards({}).empty()); }

TEST(Sidecars, UnknownOnesAndOtherContainersAreRefused) {
  EXPECT_TRUE(check_sidecars({"wids", "dali", "energon"}, "webdataset").ok());
  EXPECT_EQ(check_sidecars({"wds"}, "webdataset").code(), Code::invalid);
  EXPECT_EQ(check_sidecars({"wids"}, "zip").code(), Code::invalid);
  EXPECT_TRUE(check_sidecars({}, "zip").ok());
}

TEST(Sidecars, DaliHasALineForEachSample) {
  const auto files = sidecars_of_three_shards({"dali"});
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files.at("train-000000.idx"), "v1.2 2\ncls 512 1 a.cls jpg 1536 700 a.jpg\njpg 3072 5 b.jpg\n");
  EXPECT_EQ(files.at("train-000001.idx"), "v1.2 1\njpg 512 9 c.jpg\n");
  EXPECT_EQ(files.at("val-000000.idx"), "v1.2 0\n");
}

TEST(Sidecars, ASplitWithDotsHasAnIndexForEachShard) {
  const auto paths =
      sidecar_paths({"dali", "energon"}, {{"v1.0-000000.tar", "v1.0"}, {"v1.0-000001.tar", "v1.0"}});
  const std::vector<std::string> expected = {"v1.0-000000.idx", "v1.0-000000.tar.idx", "v1.0-000001.idx",
                                             "v1.0-000001.tar.idx"};
  EXPECT_TRUE(std::includes(paths.begin(), paths.begin() + 4, expected.begin(), expected.end()));
}

TEST(Sidecars, EnergonHasAnOffsetForEachSampleAndOneBehindThem) {
  const auto files = sidecars_of_three_shards({"energon"});
  const std::string& index = files.at("train-000000.tar.idx");
  ASSERT_EQ(index.size(), 24u);
  EXPECT_EQ(load_le<uint64_t>(index.data()), 0u);
  EXPECT_EQ(load_le<uint64_t>(index.data() + 8), 2560u);
  EXPECT_EQ(load_le<uint64_t>(index.data() + 16), 3584u);
  EXPECT_EQ(files.at(".nv-meta/split.yaml"),
            "exclude: []\nsplit_parts:\n"
            "  \"train\":\n  - \"train-000000.tar\"\n  - \"train-000001.tar\"\n"
            "  \"val\":\n  - \"val-000000.tar\"\n");
}

TEST(Sidecars, WidsListsTheShardsOfEachSplit) {
  const auto files = sidecars_of_three_shards({"wids"});
  ASSERT_EQ(files.size(), 2u);
  EXPECT_NE(files.at("train.wids.json").find("\"url\": \"train-000001.tar\""), std::string::npos);
  EXPECT_EQ(files.at("train.wids.json").find("val-"), std::string::npos);
  EXPECT_NE(files.at("val.wids.json").find("\"nsamples\": 0"), std::string::npos);
}

TEST(Sidecars, OnlyTheDatabaseOfEnergonIsAnothersFile) {
  EXPECT_TRUE(is_made_by_other_tools(".nv-meta/index.sqlite"));
  EXPECT_TRUE(is_made_by_other_tools(".nv-meta/index.uuid"));
  EXPECT_FALSE(is_made_by_other_tools("index.sqlite"));
  EXPECT_FALSE(is_made_by_other_tools(".nv-meta/split.yaml"));
}

}  // namespace
}  // namespace packtrain
