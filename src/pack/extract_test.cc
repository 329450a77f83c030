#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "io/test_storage.h"
#include "pack/extract_path.h"
#include "pack/test_dataset.h"
#include "packtrain/pack.h"

namespace packtrain {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> all_names(const std::string& folder) {
  return visible(posix_storage(), folder, true);
}

class ExtractTest : public ::testing::Test {
 protected:
  void SetUp() override {
    shards_ = {make_samples(150, 300, 1), make_samples(140, 300, 2)};
    put_dataset(storage_, folder_ / "set", shards_, {"a", "b", "c"});
  }
  Result<ExtractReport> run(ExtractOptions options = {}) {
    if (options.to.empty()) options.to = folder_ / "out";
    return extract(storage_, folder_ / "set", options);
  }
  // A dataset of one sample with one field under the given recorded name.
  Result<ExtractReport> extract_named(const std::vector<std::string>& paths, ExtractOptions options = {}) {
    std::vector<TestSample> samples;
    for (const std::string& path : paths) {
      samples.push_back({"k" + std::to_string(samples.size()), {{"jpg", "bytes", path}}, 0});
    }
    EXPECT_TRUE(remove_tree(storage_, folder_ / "named").ok() || true);
    put_dataset(storage_, folder_ / "named", {samples});
    options.to = folder_ / "out";
    return extract(storage_, folder_ / "named", options);
  }

  TemporaryFolder folder_;
  Storage& storage_ = posix_storage();
  std::vector<std::vector<TestSample>> shards_;
};

TEST_F(ExtractTest, FilesHaveTheirOldNamesAndBytes) {
  for (uint32_t jobs : {1, 3}) {
    const Result<ExtractReport> report = run({.jobs = jobs});
    ASSERT_TRUE(report.ok()) << report.status().text();
    EXPECT_EQ(report->samples, 290u);
    EXPECT_EQ(report->files, 290u);
    EXPECT_EQ(report->folders, 3u);
    EXPECT_EQ(all_names(folder_ / "out").size(), 290u);  // no cls: packtrain made those
    for (const auto& shard : shards_) {
      for (const TestSample& sample : shard) {
        ASSERT_EQ(get(storage_, folder_ / ("out/" + sample.fields[1].path)), sample.fields[1].bytes);
      }
    }
    ASSERT_TRUE(remove_tree(storage_, folder_ / "out").ok());
  }
}

TEST_F(ExtractTest, SplitClassKeysAndFieldsSelect) {
  const uint64_t of_b = static_cast<uint64_t>(
      std::count_if(shards_[0].begin(), shards_[0].end(), [](const TestSample& s) { return s.label == 1; }) +
      std::count_if(shards_[1].begin(), shards_[1].end(), [](const TestSample& s) { return s.label == 1; }));
  EXPECT_EQ(run({.class_name = "b", .dry_run = true})->files, of_b);
  EXPECT_EQ(run({.class_name = "1", .dry_run = true})->files, of_b);
  EXPECT_EQ(run({.split = "train", .dry_run = true})->files, 290u);
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  EXPECT_EQ(run({.split = "test"}).status().code(), Code::not_found);
  EXPECT_EQ(run({.class_name = "d"}).status().code(), Code::not_found);
  EXPECT_EQ(run({.keys = {"nobody"}}).status().code(), Code::not_found);
  EXPECT_EQ(run({.fields = {"png"}}).status().code(), Code::not_found);
  EXPECT_FALSE(fs::exists(folder_ / "out"));

  const std::string key = shards_[1][7].key;
  const Result<ExtractReport> report = run({.keys = {key, key}, .fields = {"cls"}});
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(all_names(folder_ / "out"), std::vector<std::string>{key + ".cls"});
  EXPECT_EQ(get(storage_, folder_ / ("out/" + key + ".cls")), shards_[1][7].fields[0].bytes);
}

TEST_F(ExtractTest, NamesThatLeadElsewhereAreRefusedBeforeAnythingIsWritten) {
  for (const std::string& path :
       {std::string("../evil"), std::string("/tmp/evil"), std::string("a/../../evil"), std::string("a//b"),
        std::string("a/"), std::string("a\0b", 3), std::string("..")}) {
    const Result<ExtractReport> report = extract_named({"fine.jpg", path});
    EXPECT_EQ(report.status().code(), Code::corrupt) << path;
    EXPECT_NE(report.status().text().find("k1.jpg"), std::string::npos) << report.status().text();
    EXPECT_FALSE(fs::exists(folder_ / "out"));
    EXPECT_FALSE(fs::exists(folder_ / "evil"));
  }
  EXPECT_EQ(path_below_target("./a/./b.jpg").value(), "a/b.jpg");  // as GNU tar writes them
  EXPECT_EQ(path_below_target("a/...").value(), "a/...");
  EXPECT_FALSE(path_below_target("./").ok());
  EXPECT_FALSE(path_below_target(".").ok());
}

TEST_F(ExtractTest, EqualFieldsOfOneNameBecomeOneFile) {
  const Result<ExtractReport> report = extract_named({"a/x.jpg", "b", "./a/x.jpg", "a/x.jpg"});
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->files, 2u);
  EXPECT_EQ(report->shared, 2u);
  EXPECT_EQ(all_names(folder_ / "out"), (std::vector<std::string>{"a/x.jpg", "b"}));
}

TEST_F(ExtractTest, DifferentFieldsOfOneNameAreAnErrorThatNamesBoth) {
  put_dataset(storage_, folder_ / "named",
              {{{"k0", {{"jpg", "one", "a/x.jpg"}}, 0}, {"k1", {{"jpg", "two", "a/x.jpg"}}, 0}}});
  Result<ExtractReport> report = extract(storage_, folder_ / "named", {.to = folder_ / "out"});
  EXPECT_EQ(report.status().code(), Code::invalid);
  EXPECT_NE(report.status().text().find("k0.jpg and k1.jpg differ"), std::string::npos)
      << report.status().text();
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  report = extract(storage_, folder_ / "named", {.to = folder_ / "keys", .by_key = true});
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(get(storage_, folder_ / "keys/k0.jpg"), "one");
  EXPECT_EQ(get(storage_, folder_ / "keys/k1.jpg"), "two");
}

TEST_F(ExtractTest, ANameThatIsAlsoAFolderIsAnError) {
  const Result<ExtractReport> report = extract_named({"a/x.jpg", "a"});
  EXPECT_EQ(report.status().code(), Code::corrupt) << "a file and a folder of one name";
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(ExtractTest, AnExistingTargetIsKeptUnlessOverwriteIsAskedFor) {
  put(storage_, folder_ / "out/mine.txt", "mine");
  EXPECT_EQ(run().status().code(), Code::invalid);
  EXPECT_EQ(all_names(folder_ / "out"), std::vector<std::string>{"mine.txt"});

  const std::string path = shards_[0][0].fields[1].path;
  put(storage_, folder_ / ("out/" + path), "old");
  const Result<ExtractReport> report = run({.overwrite = true});
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(get(storage_, folder_ / "out/mine.txt"), "mine");
  EXPECT_EQ(get(storage_, folder_ / ("out/" + path)), shards_[0][0].fields[1].bytes);
  EXPECT_EQ(all_names(folder_ / "out").size(), 291u);

  put(storage_, folder_ / "file", "x");
  EXPECT_EQ(run({.to = folder_ / "file", .overwrite = true}).status().code(), Code::invalid);
  fs::create_directory(std::string(folder_ / "empty"));
  EXPECT_TRUE(run({.to = folder_ / "empty"}).ok());
}

TEST_F(ExtractTest, SymbolicLinksInTheTargetAreNotFollowed) {
  fs::create_directories(folder_ / "elsewhere");
  put(storage_, folder_ / "out/keep", "");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "out/class0");
  EXPECT_EQ(run({.overwrite = true}).status().code(), Code::invalid);
  EXPECT_TRUE(fs::is_empty(folder_ / "elsewhere"));

  // A link in the place of a file is replaced, and what it points to is left alone.
  put(storage_, folder_ / "victim", "victim");
  ASSERT_TRUE(remove_tree(storage_, folder_ / "out").ok());
  const std::string path = shards_[0][0].fields[1].path;
  fs::create_directories(fs::path(folder_ / ("out/" + path)).parent_path());
  fs::create_symlink(folder_ / "victim", folder_ / ("out/" + path));
  ASSERT_TRUE(run({.overwrite = true}).ok());
  EXPECT_EQ(get(storage_, folder_ / "victim"), "victim");
  EXPECT_FALSE(fs::is_symlink(folder_ / ("out/" + path)));

  // One in the place of the part is somebody's own.
  ASSERT_TRUE(remove_tree(storage_, folder_ / "out").ok());
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "out.extract-part");
  EXPECT_EQ(run().status().code(), Code::invalid);
  EXPECT_TRUE(fs::is_symlink(folder_ / "out.extract-part"));
  EXPECT_TRUE(fs::is_empty(folder_ / "elsewhere"));
}

TEST_F(ExtractTest, ADamagedSampleIsNamedAndNothingIsLeft) {
  std::string shard = get(storage_, folder_ / "set/train-000001.tar");
  auto dataset = Dataset::open(storage_, folder_ / "set");
  ASSERT_TRUE(dataset.ok());
  const uint64_t sample = 170;
  const FieldLocation at = (*dataset)->locate(sample, (*dataset)->manifest().field_id("jpg"));
  ASSERT_GT(at.length, 0u);
  shard[at.offset] ^= 1;
  put(storage_, folder_ / "set/train-000001.tar", shard);
  const Result<ExtractReport> report = run();
  EXPECT_EQ(report.status().code(), Code::corrupt);
  EXPECT_NE(report.status().text().find(std::string((*dataset)->key(sample).value())), std::string::npos)
      << report.status().text();
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  EXPECT_FALSE(fs::exists(folder_ / "out.extract-part"));
}

TEST_F(ExtractTest, DamagedSamplesCanBeLeftOut) {
  auto dataset = Dataset::open(storage_, folder_ / "set");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  const uint32_t jpg = (*dataset)->manifest().field_id("jpg");
  std::string bytes = get(storage_, folder_ / "set/train-000000.tar");
  for (uint64_t sample : {5, 77}) bytes[(*dataset)->locate(sample, jpg).offset] ^= 1;
  put(storage_, folder_ / "set/train-000000.tar", bytes);

  for (const bool one_field : {false, true}) {
    ExtractOptions options;
    if (one_field) options.fields = {"jpg"};
    for (uint64_t allowed : {0, 1}) {
      options.skip_bad = allowed;
      const Result<ExtractReport> refused = run(options);
      EXPECT_EQ(refused.status().code(), Code::corrupt);
      EXPECT_NE(refused.status().text().find("--skip-bad"), std::string::npos) << refused.status().text();
      EXPECT_FALSE(fs::exists(folder_ / "out"));
    }
    options.skip_bad = 2;
    const Result<ExtractReport> report = run(options);
    ASSERT_TRUE(report.ok()) << report.status().text();
    EXPECT_EQ(report->samples, 288u);
    EXPECT_EQ(report->files, 288u);
    ASSERT_EQ(report->bad.size(), 2u);
    EXPECT_EQ(report->bad[0].path, shards_[0][5].key);
    EXPECT_EQ(report->bad[1].path, shards_[0][77].key);
    EXPECT_FALSE(report->bad[0].what.empty());
    EXPECT_EQ(all_names(folder_ / "out").size(), 288u);
    EXPECT_FALSE(fs::exists(folder_ / ("out/" + shards_[0][5].fields[1].path)));
    ASSERT_TRUE(remove_tree(storage_, folder_ / "out").ok());
  }
}

TEST_F(ExtractTest, OfAShardThatWasCutShortWhatIsLeftIsExtracted) {
  auto dataset = Dataset::open(storage_, folder_ / "set");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  const uint32_t jpg = (*dataset)->manifest().field_id("jpg");
  const uint64_t cut = (*dataset)->locate(40, jpg).offset + 1;
  uint64_t lost = 0;
  for (uint64_t sample = 40; sample < (*dataset)->samples() && (*dataset)->shard_of(sample) == 0; ++sample)
    ++lost;
  put(storage_, folder_ / "set/train-000000.tar",
      get(storage_, folder_ / "set/train-000000.tar").substr(0, cut));

  for (const bool one_field : {false, true}) {
    ExtractOptions options;
    if (one_field) options.fields = {"jpg"};
    options.skip_bad = lost - 1;
    EXPECT_EQ(run(options).status().code(), Code::corrupt);
    options.skip_bad = lost;
    const Result<ExtractReport> report = run(options);
    ASSERT_TRUE(report.ok()) << report.status().text();
    EXPECT_EQ(report->bad.size(), lost);
    EXPECT_EQ(report->samples, (*dataset)->samples() - lost);
    EXPECT_EQ(report->bad[0].path, shards_[0][40].key);
    EXPECT_TRUE(fs::exists(folder_ / ("out/" + shards_[0][39].fields[1].path)));
    ASSERT_TRUE(remove_tree(storage_, folder_ / "out").ok());
  }
}

TEST_F(ExtractTest, StorageThatFailsAtAnyCallLeavesNothingHalf) {
  const ExtractOptions options{
      .to = folder_ / "out", .keys = {shards_[0][0].key, shards_[0][1].key}, .jobs = 1};
  for (const auto member :
       {&Faults::fail_create, &Faults::fail_write, &Faults::fail_commit, &Faults::fail_rename,
        &Faults::fail_make_folder, &Faults::fail_read, &Faults::fail_open}) {
    for (uint64_t n = 1; n < 50; ++n) {
      Faults faults;
      faults.*member = n;
      FaultyStorage faulty(storage_, faults);
      const Result<ExtractReport> report = extract(faulty, folder_ / "set", options);
      if (faulty.failures() == 0) {
        ASSERT_TRUE(report.ok()) << report.status().text();
        break;
      }
      ASSERT_FALSE(report.ok());
      EXPECT_EQ(report.status().code(), Code::io) << report.status().text();
      EXPECT_FALSE(fs::exists(folder_ / "out"));
    }
    ASSERT_TRUE(remove_tree(storage_, folder_ / "out").ok());
  }
}

TEST_F(ExtractTest, TheCallerCanStopIt) {
  EXPECT_EQ(run({.progress = [](const ProgressEvent&) { return false; }}).status().code(), Code::stopped);
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  EXPECT_FALSE(fs::exists(folder_ / "out.extract-part"));
}

TEST_F(ExtractTest, ADatasetThatClaimsMoreThanThereIsRoomForWritesNothing) {
  // A sparse claim: the index says more than any disk has.
  IndexBuilder builder;
  const std::string bytes = lay_out_shard(builder, "huge.tar", {{"a", {{"bin", "x", "a.bin"}}, 0}});
  IndexBuilder claims;
  ShardSpec spec;
  spec.path = "huge.tar";
  spec.format = "webdataset";
  spec.bytes = bytes.size();
  const uint32_t shard = claims.add_shard(spec);
  claims.begin_sample("a");
  claims.add_field("bin", shard, 512, uint64_t{1} << 47, CheckKind::none, 0, "a.bin");
  ASSERT_TRUE(claims.end_sample().ok());
  put(storage_, folder_ / "huge/huge.tar", bytes);
  put_index(storage_, folder_ / "huge", claims);
  const Result<ExtractReport> report = extract(storage_, folder_ / "huge", {.to = folder_ / "out"});
  ASSERT_FALSE(report.ok());
  EXPECT_TRUE(report.status().code() == Code::no_room || report.status().code() == Code::corrupt)
      << report.status().text();
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  EXPECT_FALSE(fs::exists(folder_ / "out.extract-part"));
}

}  // namespace
}  // namespace packtrain
