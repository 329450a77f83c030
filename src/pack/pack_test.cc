#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "base/process_token.h"
#include "io/test_storage.h"
#include "pack/plan.h"
#include "pack/publish.h"
#include "pack/test_pack_tree.h"
#include "packtrain/pack.h"

namespace packtrain {
namespace {

TEST_F(PackTest, EverySampleComesBackAndVerifies) {
  make_tree(50);
  auto report = pack(posix_storage(), options("out"));
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_TRUE(report->published);
  EXPECT_EQ(report->samples, 50u);
  EXPECT_EQ(report->shards, 4u);
  EXPECT_EQ(report->classes, 3u);
  EXPECT_LE(report->largest_shard_samples - report->smallest_shard_samples, 1u);
  auto dataset = Dataset::open(posix_storage(), path("out"));
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->manifest().form, "rows");
  std::map<std::string, std::string> source = contents("tree");
  SampleBytes bytes;
  const uint32_t jpg = (*dataset)->manifest().field_id("jpg");
  for (uint64_t i = 0; i < (*dataset)->samples(); ++i) {
    ASSERT_TRUE((*dataset)->read(i, bytes).ok());
    const std::string original((*dataset)->path(i, jpg).value());
    ASSERT_TRUE(source.contains(original)) << original;
    EXPECT_EQ(as_text(bytes.fields[1].bytes), source[original]);
    EXPECT_EQ(as_text(bytes.fields[0].bytes), original.substr(5, 1));
    EXPECT_EQ((*dataset)->label(i), original[5] - '0');
    source.erase(original);
  }
  EXPECT_TRUE(source.empty());
  auto verified = verify(posix_storage(), path("out"));
  ASSERT_TRUE(verified.ok());
  EXPECT_EQ(verified->findings_count, 0u) << verified->findings[0].file << ": " << verified->findings[0].what;
  EXPECT_FALSE(fs::exists(path("out.part")));
}

TEST_F(PackTest, BytesDependOnSourceAndOptionsOnly) {
  make_tree(60);
  ASSERT_TRUE(pack(posix_storage(), options("one")).ok());
  PackOptions many = options("two");
  many.jobs = 7;
  many.reads = 16;
  ASSERT_TRUE(pack(posix_storage(), many).ok());
  EXPECT_EQ(contents("one"), contents("two"));
  PackOptions seeded = options("three");
  seeded.seed = 1;
  ASSERT_TRUE(pack(posix_storage(), seeded).ok());
  EXPECT_NE(contents("one"), contents("three"));
}

TEST_F(PackTest, TasksTogetherMakeTheSameBytes) {
  make_tree(60);
  ASSERT_TRUE(pack(posix_storage(), options("alone")).ok());
  std::vector<std::thread> tasks;
  std::vector<Status> statuses(4);
  for (uint32_t task = 0; task < 4; ++task) {
    tasks.emplace_back([&, task] {
      PackOptions pack_options = options("together");
      pack_options.task = task;
      pack_options.tasks = 4;
      statuses[task] = pack(posix_storage(), pack_options).status();
    });
  }
  for (std::thread& task : tasks) task.join();
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(contents("alone"), contents("together"));
}

TEST_F(PackTest, TasksOneAfterTheOtherPublishAtTheEnd) {
  make_tree(30);
  ASSERT_TRUE(pack(posix_storage(), options("alone")).ok());
  for (uint32_t task : {0u, 2u, 1u}) {
    PackOptions pack_options = options("apart");
    pack_options.task = task;
    pack_options.tasks = 3;
    pack_options.publish_wait_seconds = 0;
    auto report = pack(posix_storage(), pack_options);
    ASSERT_TRUE(report.ok()) << report.status().text();
    EXPECT_EQ(report->published, task == 1);
  }
  EXPECT_EQ(contents("alone"), contents("apart"));
  // A task that comes late finds its work done.
  PackOptions late = options("apart");
  late.tasks = 3;
  auto report = pack(posix_storage(), late);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_TRUE(report->published);
}

// Another process publishes at the very moment in which this one makes its folder in OUT.part: the folder has
// come along into OUT when it is there.
class OvertakenStorage : public StorageWrapper {
 public:
  OvertakenStorage(Storage& inner, PackOptions other) : StorageWrapper(inner), other_(std::move(other)) {}
  Status make_folder(std::string_view folder) override {
    const size_t name = folder.find("publish.tmp-");
    if (name == folder.npos) return StorageWrapper::make_folder(folder);
    EXPECT_TRUE(pack(posix_storage(), other_).ok());
    came_along = other_.out + "/" + std::string(folder.substr(name));
    EXPECT_TRUE(fs::create_directory(came_along));
    return {};
  }
  std::string came_along;

 private:
  const PackOptions other_;
};

TEST_F(PackTest, NothingComesAlongIntoWhatAnotherProcessPublishes) {
  make_tree(20);
  ASSERT_TRUE(pack(posix_storage(), options("alone")).ok());
  OvertakenStorage storage(posix_storage(), options("out"));
  auto report = pack(storage, options("out"));
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_TRUE(report->published);
  EXPECT_EQ(report->samples, 20u);
  ASSERT_FALSE(storage.came_along.empty());
  EXPECT_FALSE(fs::exists(storage.came_along));
  EXPECT_FALSE(fs::exists(path("out.part")));
  EXPECT_EQ(contents("alone"), contents("out"));
}

TEST_F(PackTest, EveryInterruptedWriteCanBeContinued) {
  make_tree(40);
  ASSERT_TRUE(pack(posix_storage(), options("whole")).ok());
  const auto expected = contents("whole");
  // Fail the n-th commit: of the plan, a record, a shard, the index, the manifest …
  for (uint64_t n = 1;; ++n) {
    Faults faults;
    faults.fail_commit = n;
    FaultyStorage flaky(posix_storage(), faults);
    fs::remove_all(path("out"));
    fs::remove_all(path("out.part"));
    const Status first = pack(flaky, options("out")).status();
    if (first.ok()) break;
    ASSERT_FALSE(fs::exists(path("out"))) << n;
    ASSERT_TRUE(pack(posix_storage(), options("out")).ok()) << n;
    EXPECT_EQ(contents("out"), expected) << n;
    ASSERT_LT(n, 100u);
  }
}

TEST_F(PackTest, SecondRunRedoesOnlyUnfinishedShards) {
  make_tree(40);
  PackOptions first = options("out");
  first.task = 0;
  first.tasks = 2;
  first.publish_wait_seconds = 0;
  ASSERT_TRUE(pack(posix_storage(), first).ok());
  auto report = pack(posix_storage(), options("out"));
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->shards_kept, 2u);
  EXPECT_EQ(report->shards_written, 2u);
}

TEST_F(PackTest, FolderThatIsNoUnfinishedPackIsNotTakenOver) {
  make_tree(5);
  put("out.part/notes.txt", "mine");
  EXPECT_EQ(pack(posix_storage(), options("out")).status().code(), Code::invalid);
  EXPECT_TRUE(fs::exists(path("out.part/notes.txt")));
}

TEST_F(PackTest, InodesThatADryRunSaysAreThoseThatAreMade) {
  make_tree(40);
  for (const char* format : {"webdataset", "lmdb"}) {
    PackOptions pack_options = options(format);
    pack_options.format = format;
    if (std::string_view(format) == "webdataset") pack_options.sidecars = {"wids", "dali", "energon"};
    pack_options.dry_run = true;
    const auto said = pack(posix_storage(), pack_options);
    ASSERT_TRUE(said.ok()) << said.status().text();
    pack_options.dry_run = false;
    const auto made = pack(posix_storage(), pack_options);
    ASSERT_TRUE(made.ok()) << made.status().text();
    const auto there =
        std::distance(fs::recursive_directory_iterator(path(format)), fs::recursive_directory_iterator());
    EXPECT_EQ(said->inodes_after, 1u + static_cast<uint64_t>(there)) << format;
    EXPECT_EQ(made->inodes_after, 1u + static_cast<uint64_t>(there)) << format;
    pack_options.tasks = 2;
    EXPECT_EQ(pack(posix_storage(), pack_options)->inodes_after, made->inodes_after) << format;
  }
}

TEST_F(PackTest, SplitsWithDotsHaveSidecarsOfTheirOwn) {
  make_tree(12);
  PackOptions pack_options = options("out");
  pack_options.sources = {{"v1.0", path("tree")}};
  pack_options.sidecars = {"dali", "energon", "wids"};
  ASSERT_TRUE(pack(posix_storage(), pack_options).ok());
  EXPECT_TRUE(fs::exists(path("out/v1.0-000003.idx")));
  const auto verified = verify(posix_storage(), path("out"));
  ASSERT_TRUE(verified.ok());
  EXPECT_EQ(verified->findings_count, 0u) << verified->findings[0].file << verified->findings[0].what;
}

TEST_F(PackTest, ExistingTargetAndOtherOptionsAreRefused) {
  make_tree(10);
  ASSERT_TRUE(pack(posix_storage(), options("out")).ok());
  PackOptions otherwise = options("out");
  otherwise.seed = 5;
  EXPECT_EQ(pack(posix_storage(), otherwise).status().code(), Code::invalid);
  PackOptions plan_only = options("other");
  plan_only.plan_only = true;
  ASSERT_TRUE(pack(posix_storage(), plan_only).ok());
  PackOptions changed = options("other");
  changed.seed = 5;
  EXPECT_EQ(pack(posix_storage(), changed).status().code(), Code::invalid);
}

TEST_F(PackTest, TheSamePackOnceMoreFindsItsWorkDone) {
  make_tree(10);
  ASSERT_TRUE(pack(posix_storage(), options("out")).ok());
  const auto packed = contents("out");
  for (const bool dry_run : {true, false}) {
    PackOptions again = options("out");
    again.dry_run = dry_run;
    const auto report = pack(posix_storage(), again);
    ASSERT_TRUE(report.ok()) << report.status().text();
    EXPECT_TRUE(report->found);
    EXPECT_TRUE(report->published);
    EXPECT_EQ(report->samples, 10u);
    EXPECT_EQ(report->shards, 4u);
    EXPECT_EQ(report->shards_written, 0u);
  }
  EXPECT_EQ(contents("out"), packed);
}

TEST_F(PackTest, ATargetThatIsNoLongerWhatTheSamePackMakesIsRefusedAndLeftAsItWas) {
  make_tree(12);
  const auto refused = [&](const PackOptions& again, std::string_view why) {
    const auto before = contents("out");
    const Status status = pack(posix_storage(), again).status();
    EXPECT_EQ(status.code(), Code::invalid) << status.text();
    EXPECT_TRUE(mentions(status.text(), "exists already")) << status.text();
    EXPECT_TRUE(mentions(status.text(), why)) << status.text();
    EXPECT_TRUE(mentions(status.text(), "remove it first")) << status.text();
    EXPECT_EQ(contents("out"), before);
    EXPECT_FALSE(exists("out.part"));
  };
  Faults faults;
  faults.on = [](std::string_view name) { return name.ends_with("class1/7.jpg"); };
  faults.fail_open = 1;
  FaultyStorage flaky(posix_storage(), faults);
  PackOptions lenient = options("out");
  lenient.skip_bad = 1;
  ASSERT_TRUE(pack(flaky, lenient).ok());
  refused(options("out"), "leaves out more samples than --skip-bad 0 allows");
  fs::remove_all(path("out"));

  ASSERT_TRUE(pack(posix_storage(), options("out")).ok());
  fs::rename(path("tree"), path("away"));
  refused(options("out"), "its source cannot be compared with it");
  fs::rename(path("away"), path("tree"));
  fs::resize_file(path("out/train-000001.tar"), 512);
  refused(options("out"), "is not whole any more");
  fs::remove_all(path("out"));

  ASSERT_TRUE(pack(posix_storage(), options("out")).ok());
  put("tree/class0/new.jpg", "x");
  refused(options("out"), "the source has changed");
  put("out/pack.log.json", "{}");
  refused(options("out"), "never changed in place");
}

TEST_F(PackTest, TasksReportWhatIsTheirsAndWhatIsOfAll) {
  make_tree(30);
  uint64_t written = 0, samples = 0, bytes = 0;
  const auto run = [&](uint32_t task) {
    PackOptions pack_options = options("out");
    pack_options.task = task;
    pack_options.tasks = 2;
    pack_options.publish_wait_seconds = 0;
    return pack(posix_storage(), pack_options);
  };
  for (const uint32_t task : {0u, 1u}) {
    const auto report = run(task);
    ASSERT_TRUE(report.ok()) << report.status().text();
    EXPECT_EQ(report->shards_written, 2u);
    EXPECT_EQ(report->shards_kept, 0u) << "what another task wrote is not of an earlier run";
    written += report->shards_written;
    samples += report->samples_written;
    bytes += report->bytes_written;
    if (task == 0) {
      const auto again = run(0);
      ASSERT_TRUE(again.ok());
      EXPECT_EQ(again->shards_written, 0u);
      EXPECT_EQ(again->shards_kept, 2u);
      EXPECT_EQ(again->samples_written, 0u);
    } else {
      EXPECT_EQ(report->shards, written);
      EXPECT_EQ(report->samples, samples);
      EXPECT_EQ(report->bytes, bytes);
    }
  }
}

TEST_F(PackTest, WhoeverGivesAWholePartItsNameKeptNoMoreThanItsOwnShards) {
  make_tree(30);
  ASSERT_TRUE(pack(posix_storage(), options("out")).ok());
  fs::rename(path("out"), path("out.part"));  // killed before the last step
  PackOptions last = options("out");
  last.task = 2;
  last.tasks = 3;
  const auto report = pack(posix_storage(), last);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_TRUE(report->published);
  EXPECT_EQ(report->shards, 4u);
  EXPECT_EQ(report->shards_kept, 1u);
}

TEST_F(PackTest, WhatCannotBePackedSoLeavesNothingInTheWay) {
  put("tree/a/1.jpg", "one");
  put("tree/a/2.jpg", "another");
  PackOptions wrong = PackFolderTest::options("tree", "out", "npy");  // whose values have one size
  const Status refused = pack(posix_storage(), wrong).status();
  EXPECT_FALSE(refused.ok());
  EXPECT_FALSE(exists("out.part")) << refused.text();
  EXPECT_TRUE(pack(posix_storage(), PackFolderTest::options("tree", "out", "webdataset")).ok());
}

TEST_F(PackTest, ColumnsOfSplitsArePartOfWhatIsPacked) {
  put("l.csv", "path,label,split,fold\n1.jpg,0,train,x\n2.jpg,1,val,y\n3.jpg,1,train,y\n");
  for (const char* name : {"1.jpg", "2.jpg", "3.jpg"}) put(name, name);
  ASSERT_TRUE(pack(posix_storage(), PackFolderTest::options("l.csv", "by_split", "webdataset")).ok());
  PackOptions by_fold = PackFolderTest::options("l.csv", "by_fold", "webdataset");
  by_fold.split_column = "fold";
  ASSERT_TRUE(pack(posix_storage(), by_fold).ok());
  EXPECT_TRUE(exists("by_split/train-000000.tar") && exists("by_split/val-000000.tar"));
  EXPECT_TRUE(exists("by_fold/x-000000.tar") && exists("by_fold/y-000000.tar"));
  expect_sound("by_split");
  PackOptions without = by_fold;
  without.split_column = "none";
  EXPECT_NE(*plan_identity(posix_storage(), by_fold), *plan_identity(posix_storage(), without));
}

TEST_F(PackTest, DryRunWritesNothing) {
  make_tree(10);
  PackOptions dry = options("out");
  dry.dry_run = true;
  auto report = pack(posix_storage(), dry);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->samples, 10u);
  EXPECT_GT(report->bytes, 10000u);
  EXPECT_FALSE(fs::exists(path("out")));
  EXPECT_FALSE(fs::exists(path("out.part")));
}

TEST_F(PackTest, StratifiedShardsHoldEachClassInProportion) {
  for (int i = 0; i < 90; ++i)
    put("tree/" + std::string(i < 60 ? "big/" : "small/") + std::to_string(i) + ".txt", "x");
  PackOptions stratified = options("out");
  stratified.order = PackOrder::stratified;
  stratified.shards = 7;
  ASSERT_TRUE(pack(posix_storage(), stratified).ok());
  auto dataset = Dataset::open(posix_storage(), path("out"));
  ASSERT_TRUE(dataset.ok());
  std::map<uint32_t, std::map<int64_t, int>> per_shard;
  for (uint64_t i = 0; i < 90; ++i) ++per_shard[(*dataset)->shard_of(i)][(*dataset)->label(i)];
  ASSERT_EQ(per_shard.size(), 7u);
  for (const auto& [shard, counts] : per_shard) {
    EXPECT_GE(counts.at(0), 8);
    EXPECT_LE(counts.at(0), 9);
    EXPECT_GE(counts.at(1), 4);
    EXPECT_LE(counts.at(1), 5);
  }
}

// Photographs, and sizes of which the largest is a fourth of a shard: bytes are even to 1 %, classes to one
// sample.
TEST_F(PackTest, StratifiedShardsOfOneSizeAreEvenInBytesAndHoldEachClassInProportion) {
  for (const double spread : {0.5, 1.6}) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal(0, spread);
    const std::string tree = spread < 1 ? "photos" : "skewed";
    std::map<std::string, uint64_t> classes;
    uint64_t largest = 0;
    for (int i = 0; i < 1500; ++i) {
      const std::string name = "class" + std::to_string(i % 10 == 0 ? 1 : i % 3 == 0 ? 2 : 0);
      const auto size = static_cast<size_t>(3000 * std::exp(normal(random)));
      largest = std::max<uint64_t>(largest, size);
      put(tree + "/" + name + "/" + std::to_string(i) + ".bin", std::string(size, 'x'));
      ++classes[name];
    }
    PackOptions sized = options(tree + ".pt");
    sized.sources = {{"", path(tree)}};
    sized.order = PackOrder::stratified;
    sized.shards = 0;
    sized.shard_bytes = spread < 1 ? 700'000 : 1'500'000;
    const auto report = pack(posix_storage(), sized);
    ASSERT_TRUE(report.ok()) << report.status().text();
    ASSERT_GE(report->shards, 8u);
    EXPECT_TRUE(spread < 1 || largest > sized.shard_bytes / 10) << largest;
    EXPECT_LE(report->largest_shard_bytes - report->smallest_shard_bytes, report->smallest_shard_bytes / 100);
    auto dataset = Dataset::open(posix_storage(), sized.out);
    ASSERT_TRUE(dataset.ok());
    std::map<std::pair<uint32_t, int64_t>, uint64_t> held;
    for (uint64_t i = 0; i < (*dataset)->samples(); ++i)
      ++held[{(*dataset)->shard_of(i), (*dataset)->label(i)}];
    for (uint32_t shard = 0; shard < report->shards; ++shard) {
      for (int64_t label = 0; label < 3; ++label) {
        const uint64_t in_class = classes["class" + std::to_string(label)];
        const uint64_t count = held[{shard, label}];
        EXPECT_GE(count, in_class / report->shards) << shard << " " << label;
        EXPECT_LE(count, in_class / report->shards + 1) << shard << " " << label;
      }
    }
    EXPECT_EQ(verify(posix_storage(), sized.out)->findings_count, 0u);
  }
}

TEST_F(PackTest, ShardSizeGivesEvenBytes) {
  make_tree(600);
  PackOptions sized = options("out");
  sized.shards = 0;
  sized.shard_bytes = 200'000;
  auto report = pack(posix_storage(), sized);
  ASSERT_TRUE(report.ok());
  EXPECT_GE(report->shards, 5u);
  // As even as whole samples allow: each cut is at most half a sample off.
  EXPECT_LE(report->largest_shard_bytes - report->smallest_shard_bytes, 2 * 4608u);
  EXPECT_LE(report->largest_shard_bytes, 210'000u);
}

TEST_F(PackTest, SourceOrderKeepsTheOrderOfPaths) {
  make_tree(20);
  PackOptions in_order = options("out");
  in_order.order = PackOrder::source;
  ASSERT_TRUE(pack(posix_storage(), in_order).ok());
  auto dataset = Dataset::open(posix_storage(), path("out"));
  ASSERT_TRUE(dataset.ok());
  for (uint64_t i = 1; i < 20; ++i) EXPECT_LE((*dataset)->label(i - 1), (*dataset)->label(i));
}

TEST_F(PackTest, StoppedByTheCallerItLeavesNoTemporaryFiles) {
  make_tree(200);
  PackOptions stopping = options("out");
  stopping.progress = [](const ProgressEvent& event) { return event.phase != "write"; };
  EXPECT_EQ(pack(posix_storage(), stopping).status().code(), Code::stopped);
  for (const auto& entry : fs::directory_iterator(path("out.part"))) {
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
  }
  ASSERT_TRUE(pack(posix_storage(), options("out")).ok());
}

TEST_F(PackTest, StoppedOnceAllIsWrittenItPublishesNothing) {
  make_tree(200);
  PackOptions stopping = options("out");
  stopping.progress = [](const ProgressEvent& event) {
    return event.phase != "write" || event.items < event.items_total;
  };
  EXPECT_EQ(pack(posix_storage(), stopping).status().code(), Code::stopped);
  EXPECT_FALSE(fs::exists(path("out")));
  auto report = pack(posix_storage(), options("out"));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->shards_written, 0u);
}

TEST_F(PackTest, LargeSamplesGoThroughInPieces) {
  std::string large(40 << 20, '\0');
  std::mt19937_64 rng(3);
  for (size_t i = 0; i + 8 <= large.size(); i += 8) {
    const uint64_t value = rng();
    std::memcpy(large.data() + i, &value, 8);
  }
  put("tree/class0/large.bin", large);
  put("tree/class0/small.bin", "small");
  for (const char* format : {"webdataset", "zip"}) {
    PackOptions pack_options = options(format);
    pack_options.format = format;
    pack_options.shards = 1;
    ASSERT_TRUE(pack(posix_storage(), pack_options).ok()) << format;
    auto dataset = Dataset::open(posix_storage(), path(format));
    ASSERT_TRUE(dataset.ok());
    std::vector<std::byte> bytes;
    ASSERT_TRUE((*dataset)
                    ->read(*(*dataset)->find("class0/large"), (*dataset)->manifest().field_id("bin"), bytes)
                    .ok());
    EXPECT_TRUE(as_text(bytes) == large);
    EXPECT_EQ(verify(posix_storage(), path(format))->findings_count, 0u) << format;
  }
}

TEST_F(PackTest, CompressedZipIsIndexedInTheGeneralForm) {
  for (int i = 0; i < 20; ++i)
    put("tree/a/" + std::to_string(i) + ".txt", std::string(1000, static_cast<char>('a' + i)));
  PackOptions zip = options("out");
  zip.format = "zip";
  zip.compress = "deflate";
  auto report = pack(posix_storage(), zip);
  if (report.status().code() == Code::unsupported) GTEST_SKIP() << report.status().text();
  ASSERT_TRUE(report.ok()) << report.status().text();
  auto dataset = Dataset::open(posix_storage(), path("out"));
  ASSERT_TRUE(dataset.ok());
  EXPECT_EQ((*dataset)->manifest().form, "general");
  std::vector<std::byte> bytes;
  ASSERT_TRUE((*dataset)->read(*(*dataset)->find("a/7"), (*dataset)->manifest().field_id("txt"), bytes).ok());
  EXPECT_EQ(as_text(bytes), std::string(1000, 'h'));
  EXPECT_EQ(verify(posix_storage(), path("out"))->findings_count, 0u);
}

TEST_F(PackTest, PlanFileRoundTripsAndNoticesDamage) {
  make_tree(10);
  PackOptions plan_only = options("out");
  plan_only.plan_only = true;
  ASSERT_TRUE(pack(posix_storage(), plan_only).ok());
  std::string bytes = read_whole(posix_storage(), path("out.part/plan")).value();
  auto plan = decode_plan(as_bytes(bytes));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(encode_plan(*plan), bytes);
  bytes[bytes.find("class1/")] = 'C';
  EXPECT_FALSE(decode_plan(as_bytes(bytes)).ok());
}

TEST_F(PackTest, SplitsAreCalledByPlainNames) {
  make_tree(6);
  PackOptions pack_options = options("sub/out");
  for (const std::string& name : {std::string("../x"), std::string("a/b"), std::string(".hidden"),
                                  std::string("-x"), std::string("a\nb"), std::string(65, 'x')}) {
    pack_options.sources[0].first = name;
    const auto packed = pack(posix_storage(), pack_options);
    EXPECT_EQ(packed.status().code(), Code::invalid) << name;
    EXPECT_TRUE(mentions(packed.status().text(), "name of a split")) << packed.status().text();
  }
  EXPECT_FALSE(fs::exists(path("sub")));
  pack_options.sources[0].first = "train_1.0-a+b";
  EXPECT_TRUE(pack(posix_storage(), pack_options).ok());
}

TEST_F(PackTest, ANumberOfShardsThatCannotBeIsSaid) {
  make_tree(12);
  put("tree/class2/5.jpg", "not empty, which would be told");
  PackOptions pack_options = options("out");
  pack_options.dry_run = true;
  EXPECT_TRUE(pack(posix_storage(), pack_options)->warnings.empty());
  pack_options.shards = 1000;
  auto packed = pack(posix_storage(), pack_options);
  ASSERT_TRUE(packed.ok());
  ASSERT_EQ(packed->warnings.size(), 1U);
  EXPECT_TRUE(mentions(packed->warnings[0], "1,000")) << packed->warnings[0];
  pack_options.shards = 2;
  pack_options.ranks = 9;
  packed = pack(posix_storage(), pack_options);
  ASSERT_TRUE(packed.ok());
  EXPECT_EQ(packed->shards, 9U);
  ASSERT_EQ(packed->warnings.size(), 1U);
  EXPECT_TRUE(mentions(packed->warnings[0], "--ranks 9")) << packed->warnings[0];
}

TEST_F(PackTest, ADatasetInTheSourceIsLeftOut) {
  make_tree(9);
  put("tree/class2/5.jpg", "not empty, which would be told");
  PackOptions first = options("tree/old.pt");
  ASSERT_TRUE(pack(posix_storage(), first).ok());
  const auto packed = pack(posix_storage(), options("out"));
  ASSERT_TRUE(packed.ok()) << packed.status().text();
  EXPECT_EQ(packed->samples, 9U);
  EXPECT_EQ(packed->classes, 3U);
  ASSERT_EQ(packed->warnings.size(), 1U);
  EXPECT_TRUE(mentions(packed->warnings[0], "old.pt")) << packed->warnings[0];
}

TEST_F(PackTest, APlanAndADryRunSayTheBytesThatAreWritten) {
  make_tree(20);
  PackOptions pack_options = options("out");
  pack_options.dry_run = true;
  const uint64_t said = pack(posix_storage(), pack_options)->bytes;
  pack_options.dry_run = false;
  pack_options.plan_only = true;
  EXPECT_EQ(pack(posix_storage(), pack_options)->bytes, said);
  pack_options.plan_only = false;
  EXPECT_EQ(pack(posix_storage(), pack_options)->bytes, said);
  // Another task of several that comes late finds the dataset whole, and says the same of it.
  pack_options.tasks = 2;
  EXPECT_EQ(pack(posix_storage(), pack_options)->bytes, said);
}

TEST_F(PackTest, InodesOfShardsAndDatasetsAreThoseOnDisk) {
  make_tree(6);
  PackOptions pack_options = options("first");
  pack_options.shards = 1;
  ASSERT_TRUE(pack(posix_storage(), pack_options).ok());
  pack_options.dry_run = true;
  pack_options.out = path("out");
  pack_options.sources = {{"", path("first")}};
  const auto entries = std::distance(fs::directory_iterator(path("first")), fs::directory_iterator());
  EXPECT_EQ(pack(posix_storage(), pack_options)->inodes_before, 1U + static_cast<uint64_t>(entries));
  pack_options.sources = {{"", path("first/train-000000.tar")}};
  EXPECT_EQ(pack(posix_storage(), pack_options)->inodes_before, 1U);
}

TEST_F(PackTest, ALinkToNothingIsNoTarget) {
  make_tree(6);
  fs::create_symlink(path("nowhere"), path("out"));
  const auto packed = pack(posix_storage(), options("out"));
  EXPECT_EQ(packed.status().code(), Code::invalid);
  EXPECT_TRUE(mentions(packed.status().text(), "symbolic link")) << packed.status().text();
  EXPECT_FALSE(fs::exists(path("out.part")));
}

TEST_F(PackTest, APackThatRunsIsNotCalledUnfinished) {
  make_tree(6);
  PackOptions pack_options = options("out");
  pack_options.plan_only = true;
  ASSERT_TRUE(pack(posix_storage(), pack_options).ok());
  pack_options.seed = 7;
  EXPECT_TRUE(mentions(pack(posix_storage(), pack_options).status().text(), "unfinished"));
  put("out.part/train-000000.tar.tmp-" + process_token(), "");
  const std::string text = pack(posix_storage(), pack_options).status().text();
  EXPECT_TRUE(mentions(text, "process " + std::to_string(getpid()))) << text;
}

}  // namespace
}  // namespace packtrain
