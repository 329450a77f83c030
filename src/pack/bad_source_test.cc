// Sources that cannot be read, or are no longer what they were.
#include <gtest/gtest.h>

#include <algorithm>

#include "io/test_storage.h"
#include "pack/test_pack_tree.h"
#include "packtrain/pack.h"

namespace packtrain {
namespace {

TEST_F(PackTest, SourceThatChangedInBetweenIsNamed) {
  make_tree(20);
  PackOptions plan_only = options("out");
  plan_only.plan_only = true;
  ASSERT_TRUE(pack(posix_storage(), plan_only).ok());
  put("tree/class0/3.jpg", "something else");
  put("tree/class0/new.jpg", "new");
  fs::remove(path("tree/class1/4.jpg"));
  PackReport failed;
  const Status status = pack(posix_storage(), options("out"), &failed).status();
  EXPECT_EQ(status.code(), Code::corrupt);
  ASSERT_EQ(failed.bad.size(), 3u);
  EXPECT_NE(failed.bad[0].path.find("3.jpg has changed"), std::string::npos);
  EXPECT_NE(failed.bad[1].path.find("new.jpg is new"), std::string::npos);
  EXPECT_NE(failed.bad[2].path.find("4.jpg is gone"), std::string::npos);
}

TEST_F(PackTest, ListThatSaysSomethingElseIsNoticed) {
  put("tree/1.jpg", "one");
  put("tree/2.jpg", "two");
  put("tree/list.csv", "path,label\n1.jpg,0\n2.jpg,1\n");
  PackOptions listed = options("out");
  listed.sources = {{"", path("tree/list.csv")}};
  PackOptions plan_only = listed;
  plan_only.plan_only = true;
  ASSERT_TRUE(pack(posix_storage(), plan_only).ok());
  put("tree/list.csv", "path,label\n1.jpg,7\n2.jpg,1\n");
  PackReport failed;
  EXPECT_EQ(pack(posix_storage(), listed, &failed).status().code(), Code::corrupt);
  ASSERT_EQ(failed.bad.size(), 1u);
  EXPECT_NE(failed.bad[0].path.find("another label"), std::string::npos) << failed.bad[0].path;
}

TEST_F(PackTest, ChangedFilesMayBeLeftOutOnTheNextRun) {
  make_tree(20);
  PackOptions plan_only = options("out");
  plan_only.plan_only = true;
  ASSERT_TRUE(pack(posix_storage(), plan_only).ok());
  put("tree/class0/3.jpg", "something else");
  PackOptions lenient = options("out");
  lenient.skip_bad = 1;
  auto report = pack(posix_storage(), lenient);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->samples, 19u);
}

TEST_F(PackTest, ManyFilesThatAreGoneMayBeLeftOutToo) {
  make_tree(60);
  PackOptions plan_only = options("out");
  plan_only.plan_only = true;
  ASSERT_TRUE(pack(posix_storage(), plan_only).ok());
  for (int i = 0; i < 30; ++i)
    fs::remove(path("tree/class" + std::to_string(i % 3) + "/" + std::to_string(i) + ".jpg"));
  PackOptions again = options("out");
  again.skip_bad = 29;
  PackReport failed;
  Status status = pack(posix_storage(), again, &failed).status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_TRUE(mentions(status.text(), "--skip-bad 30")) << status.text();
  EXPECT_EQ(failed.bad_samples, 30u);
  again.skip_bad = 30;
  auto report = pack(posix_storage(), again);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->samples, 30u);
}

TEST_F(PackTest, AFileThatIsGoneMayBeLeftOutOfAShardThatIsWholeToo) {
  make_tree(60);
  const PackOptions whole = options("out");
  PackOptions half = whole;
  half.tasks = 2;
  half.publish_wait_seconds = 0;
  ASSERT_TRUE(pack(posix_storage(), half).ok());
  ASSERT_TRUE(fs::exists(path("out.part/train-000000.tar"))) << "one of the shards is whole";
  int gone = 0;  // of each shard some
  for (int i = 0; i < 60; i += 5, ++gone)
    fs::remove(path("tree/class" + std::to_string(i % 3) + "/" + std::to_string(i) + ".jpg"));
  PackReport failed;
  Status status = pack(posix_storage(), whole, &failed).status();
  EXPECT_TRUE(mentions(status.text(), "--skip-bad " + std::to_string(gone))) << status.text();
  PackOptions lenient = whole;
  lenient.skip_bad = static_cast<uint64_t>(gone);
  auto report = pack(posix_storage(), lenient);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->samples, static_cast<uint64_t>(60 - gone));
  EXPECT_EQ(verify(posix_storage(), path("out"))->findings_count, 0u);
}

TEST_F(PackTest, AFileOfSeveralSamplesIsLeftOutOfAllOfThem) {
  make_tree(12);
  std::string list = "path,label\n";
  for (int again = 0; again < 2; ++again)
    for (int i = 0; i < 12; ++i)
      list += "class" + std::to_string(i % 3) + "/" + std::to_string(i) + ".jpg," + std::to_string(i) + "\n";
  put("tree/list.csv", list);
  PackOptions listed = options("out");
  listed.sources = {{"", path("tree/list.csv")}};
  PackOptions half = listed;
  half.tasks = 2;
  half.publish_wait_seconds = 0;
  ASSERT_TRUE(pack(posix_storage(), half).ok());
  put("tree/class1/4.jpg", "something else");
  PackReport failed;
  const Status status = pack(posix_storage(), listed, &failed).status();
  EXPECT_TRUE(mentions(status.text(), "--skip-bad 2")) << status.text();
  ASSERT_EQ(failed.bad.size(), 1u) << "and no file of two rows is taken for a new one";
  EXPECT_TRUE(mentions(failed.bad[0].path, "4.jpg has changed")) << failed.bad[0].path;
  listed.skip_bad = 2;
  const auto report = pack(posix_storage(), listed);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->samples, 22u);
  EXPECT_EQ(verify(posix_storage(), path("out"))->findings_count, 0u);
}

TEST_F(PackTest, RoomIsAskedForByFormat) {
  for (int i = 0; i < 200; ++i)
    put("tree/class" + std::to_string(i % 2) + "/" + std::to_string(i) + ".jpg", "small");
  const auto planned = [&](const char* format) {
    PackOptions dry = options("out");
    dry.format = format;
    dry.dry_run = true;
    auto report = pack(posix_storage(), dry);
    return report.ok() ? report->bytes : 0;
  };
  PackOptions tar = options("tar");
  tar.format = "webdataset";
  EXPECT_EQ(planned("webdataset"), pack(posix_storage(), tar)->bytes) << "a tar is planned to the byte";
  // Small values: a tar has a kilobyte for each, which the others must not ask for.
  for (const char* format : {"arrow", "zip", "npz", "lmdb"}) {
    EXPECT_GT(planned(format), 0u) << format;
    EXPECT_LT(planned(format), planned("webdataset") / 4) << format;
  }
}

TEST_F(PackTest, FilesThatVanishGrowOrShrinkAfterTheScanAreNamedAndNothingIsPublished) {
  make_tree(30);
  PackOptions task = options("out");
  task.tasks = 2;
  task.publish_wait_seconds = 0;
  PackOptions plan_only = task;
  plan_only.plan_only = true;
  ASSERT_TRUE(pack(posix_storage(), plan_only).ok());
  fs::remove(path("tree/class0/0.jpg"));
  put("tree/class1/1.jpg", std::string(5000, 'x'));
  put("tree/class2/2.jpg", "x");
  std::vector<BadSample> bad;
  for (uint32_t i = 0; i < 2; ++i) {
    task.task = i;
    PackReport failed;
    (void)pack(posix_storage(), task, &failed).status();
    bad.insert(bad.end(), failed.bad.begin(), failed.bad.end());
  }
  ASSERT_EQ(bad.size(), 3u);
  std::sort(bad.begin(), bad.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  EXPECT_NE(bad[0].what.find("vanished"), std::string::npos) << bad[0].what;
  EXPECT_NE(bad[1].what.find("grown"), std::string::npos) << bad[1].what;
  EXPECT_NE(bad[2].what.find("shrunk"), std::string::npos) << bad[2].what;
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(PackTest, SkipBadLeavesThemOutAndRecordsIt) {
  make_tree(30);
  Faults faults;
  faults.on = [](std::string_view name) { return name.ends_with("class1/7.jpg"); };
  faults.fail_open = 1;
  faults.from_then_on = true;
  FaultyStorage flaky(posix_storage(), faults);
  PackReport failed;
  const Status strict = pack(flaky, options("strict"), &failed).status();
  EXPECT_EQ(strict.code(), Code::corrupt);
  ASSERT_EQ(failed.bad.size(), 1u);
  EXPECT_NE(failed.bad[0].path.find("class1/7.jpg"), std::string::npos);
  EXPECT_FALSE(fs::exists(path("strict")));

  PackOptions lenient = options("lenient");
  lenient.skip_bad = 1;
  auto report = pack(flaky, lenient);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->samples, 29u);
  auto dataset = Dataset::open(posix_storage(), path("lenient"));
  ASSERT_TRUE(dataset.ok());
  EXPECT_NE((*dataset)->manifest().source_json.find("class1/7.jpg"), std::string::npos);
  EXPECT_EQ((*dataset)->find("class1/7").status().code(), Code::not_found);
  EXPECT_EQ(verify(posix_storage(), path("lenient"))->findings_count, 0u);
}

TEST_F(PackTest, ASampleWithTwoBadFilesCountsOnce) {
  make_tree(30);
  put("tree/class1/7.txt", "beside 7.jpg");
  Faults faults;
  faults.on = [](std::string_view name) { return name.find("class1/7.") != name.npos; };
  faults.fail_open = 1;
  faults.from_then_on = true;
  FaultyStorage flaky(posix_storage(), faults);
  for (const char* format : {"webdataset", "hdf5"}) {
    PackOptions strict = options(std::string("strict-") + format);
    strict.format = format;
    PackReport failed;
    const Status status = pack(flaky, strict, &failed).status();
    EXPECT_EQ(status.code(), Code::corrupt);
    EXPECT_TRUE(mentions(status.text(), "1 sample cannot be packed")) << status.text();
    EXPECT_TRUE(mentions(status.text(), "(sample class1/7)")) << status.text();
    EXPECT_TRUE(mentions(status.text(), "--skip-bad 1")) << status.text();
    EXPECT_EQ(failed.bad_samples, 1u);
    for (const BadSample& bad : failed.bad) EXPECT_EQ(bad.key, "class1/7");
    PackOptions lenient = options(std::string("lenient-") + format);
    lenient.format = format;
    lenient.skip_bad = 1;
    const auto report = pack(flaky, lenient);
    ASSERT_TRUE(report.ok()) << report.status().text();
    EXPECT_EQ(report->bad_samples, 1u);
    EXPECT_EQ(report->samples, 29u);
    auto dataset = Dataset::open(posix_storage(), lenient.out);
    ASSERT_TRUE(dataset.ok());
    EXPECT_TRUE(mentions((*dataset)->manifest().source_json, "\"left_out_samples\": 1"))
        << (*dataset)->manifest().source_json;
  }
}

TEST_F(PackTest, ALackOfDescriptorsEndsThePackAndIsNoBadSample) {
  make_tree(30);
  Faults faults;
  faults.on = [](std::string_view name) { return name.ends_with("class1/7.jpg"); };
  faults.fail_open = 1;
  faults.code = Code::limit;
  for (const char* format : {"webdataset", "hdf5"}) {
    PackOptions lenient = options(std::string("out-") + format);
    lenient.format = format;
    lenient.skip_bad = 30;
    PackReport failed;
    FaultyStorage lacking(posix_storage(), faults);
    const Status status = pack(lacking, lenient, &failed).status();
    EXPECT_EQ(status.code(), Code::limit) << status.text();
    EXPECT_TRUE(mentions(status.text(), "class1/7.jpg")) << status.text();
    EXPECT_TRUE(failed.bad.empty());
    const auto again = pack(posix_storage(), lenient);
    ASSERT_TRUE(again.ok()) << again.status().text();
    EXPECT_EQ(again->samples, 30u);
  }
}

TEST_F(PackTest, ASampleOfADamagedContainerIsNamedOnce) {
  make_tree(12);
  for (int i = 0; i < 12; ++i)
    put("tree/class" + std::to_string(i % 3) + "/" + std::to_string(i) + ".txt", "x");
  ASSERT_TRUE(pack(posix_storage(), options("first")).ok());
  fs::remove(path("first/train-000000.tar"));
  PackOptions again = options("again");
  again.sources = {{"", path("first")}};
  PackReport failed;
  EXPECT_EQ(pack(posix_storage(), again, &failed).status().code(), Code::corrupt);
  EXPECT_EQ(failed.bad_samples, 3u);
  EXPECT_EQ(failed.bad.size(), 3u);
}

TEST_F(PackTest, SamplesOfAMissingShardAreCountedAndNamed) {
  make_tree(12);
  PackOptions first = options("first");
  first.shards = 1;
  ASSERT_TRUE(pack(posix_storage(), first).ok());
  fs::remove(path("first/train-000000.tar"));
  PackOptions again = options("again");
  again.sources = {{"", path("first")}};
  PackReport failed;
  const Status status = pack(posix_storage(), again, &failed).status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_TRUE(mentions(status.text(), "12 samples cannot be packed")) << status.text();
  EXPECT_EQ(failed.bad_samples, 12u);
  for (const BadSample& bad : failed.bad) {
    EXPECT_TRUE(bad.path.find("train-000000.tar") != bad.path.npos && !bad.path.ends_with(": ")) << bad.path;
    EXPECT_TRUE(bad.key.starts_with("class")) << bad.key;
  }
}

TEST_F(PackTest, TheBudgetOfBadSamplesCountsWhatEarlierRunsLeftOut) {
  make_tree(40);
  Faults faults;
  faults.on = [](std::string_view name) { return name.find("class1/") != name.npos; };
  faults.fail_open = 1;
  faults.from_then_on = true;
  FaultyStorage flaky(posix_storage(), faults);
  PackOptions lenient = options("out");
  lenient.tasks = 2;
  lenient.skip_bad = 10;
  lenient.publish_wait_seconds = 0;
  (void)pack(flaky, lenient);
  lenient.task = 1;
  PackReport failed;
  const Status status = pack(flaky, lenient, &failed).status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_TRUE(mentions(status.text(), "--skip-bad 13")) << status.text();
  lenient.skip_bad = 13;
  const auto report = pack(flaky, lenient);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->bad_samples, 13u);
  EXPECT_EQ(report->samples, 27u);
}

TEST_F(PackTest, WhatTheScanCannotReadStandsInTheWayOfPublishingAlone) {
  make_tree(30);
  Faults faults;
  faults.on = [](std::string_view name) { return name.ends_with("tree/class1"); };
  faults.fail_list = 1;
  faults.from_then_on = true;
  FaultyStorage unlisted(posix_storage(), faults);
  std::vector<std::string> said;
  PackOptions strict = options("out");
  strict.announce = [](const std::string& sentence) { ADD_FAILURE() << sentence; };
  strict.warn = [&](const std::string& sentence) { said.push_back(sentence); };
  PackReport failed;
  const Status status = pack(unlisted, strict, &failed).status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_TRUE(mentions(status.text(), "tree/class1")) << status.text();
  EXPECT_TRUE(mentions(status.text(), "--skip-bad 1")) << status.text();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(mentions(said[0], "tree/class1: a folder, which counts as one sample: ")) << said[0];
  EXPECT_TRUE(mentions(said[0], "--skip-bad 1, or more")) << said[0];
  EXPECT_EQ(failed.bad_samples, 1u);
  EXPECT_FALSE(fs::exists(path("out")));
  EXPECT_TRUE(fs::exists(path("out.part/train-000003.tar")));  // everything else is packed
  PackOptions lenient = options("out");
  lenient.skip_bad = 1;
  const auto report = pack(unlisted, lenient);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->shards_written, 0u);
  EXPECT_EQ(report->samples, 20u);
  EXPECT_EQ(report->bad_samples, 1u);
  auto dataset = Dataset::open(posix_storage(), path("out"));
  ASSERT_TRUE(dataset.ok());
  EXPECT_EQ((*dataset)->manifest().classes.size(), 3u);
  EXPECT_TRUE(mentions((*dataset)->manifest().source_json, "\"path\": \"class1\""))
      << (*dataset)->manifest().source_json;
}

TEST_F(PackTest, AFileThatVanishedDuringTheScanIsNobodysLossOnTheNextRun) {
  make_tree(20);
  Faults faults;
  faults.on = [](std::string_view name) { return name.ends_with("class0/3.jpg"); };
  faults.fail_stat = 1;
  faults.code = Code::not_found;
  FaultyStorage storage(posix_storage(), faults);
  const Status status = pack(storage, options("out")).status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_TRUE(mentions(status.text(), "vanished")) << status.text();
  fs::remove(path("tree/class0/3.jpg"));
  const auto report = pack(posix_storage(), options("out"));
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->samples, 19u);
  EXPECT_TRUE(report->bad.empty());
}

TEST_F(PackTest, AFileThatVanishesBetweenTheListAndTheLookCanBeLeftOutAndIsCounted) {
  make_tree(20);
  Faults faults;
  faults.on = [](std::string_view name) { return name.ends_with("class0/3.jpg"); };
  faults.fail_stat = 1;
  faults.from_then_on = true;
  faults.code = Code::not_found;
  FaultyStorage storage(posix_storage(), faults);
  PackReport failed;
  const Status status = pack(storage, options("out"), &failed).status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_TRUE(mentions(status.text(), "class0/3.jpg")) << status.text();
  EXPECT_TRUE(mentions(status.text(), "--skip-bad 1")) << status.text();
  EXPECT_EQ(failed.bad_samples, 1u);
  EXPECT_FALSE(fs::exists(path("out")));
  PackOptions lenient = options("out");
  lenient.skip_bad = 1;
  const auto report = pack(storage, lenient);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->samples, 19u);
  EXPECT_EQ(report->bad_samples, 1u);
  ASSERT_EQ(report->bad.size(), 1u);
  EXPECT_TRUE(mentions(report->bad[0].path, "class0/3.jpg")) << report->bad[0].path;
  auto dataset = Dataset::open(posix_storage(), path("out"));
  ASSERT_TRUE(dataset.ok());
  EXPECT_TRUE(mentions((*dataset)->manifest().source_json, "class0/3.jpg"))
      << (*dataset)->manifest().source_json;
}

TEST_F(PackTest, ASourceThatChangedBetweenTasksIsNotPublished) {
  make_tree(40);
  const auto task = [&](uint32_t number, uint64_t skip_bad = 0) {
    PackOptions pack_options = options("out");
    pack_options.shards = 2;
    pack_options.task = number;
    pack_options.tasks = 2;
    pack_options.skip_bad = skip_bad;
    pack_options.publish_wait_seconds = 0;
    return pack_options;
  };
  const auto key_of_first_shard = [&] {
    const std::string text = read_whole(posix_storage(), path("out.part/train-000000.tar")).value();
    return text.substr(0, text.find(".cls"));
  };
  ASSERT_TRUE(pack(posix_storage(), task(0)).ok());
  const std::string changed = "tree/" + key_of_first_shard() + ".jpg";
  put(changed, "something else");
  put("tree/class0/new.jpg", "new");
  for (const uint64_t skip_bad : {0, 5}) {
    PackReport failed;
    const Status status = pack(posix_storage(), task(1, skip_bad), &failed).status();
    EXPECT_EQ(status.code(), Code::corrupt) << status.text();
    EXPECT_TRUE(mentions(status.text(), "out.part")) << status.text();
    ASSERT_EQ(failed.bad.size(), 2u);
    EXPECT_FALSE(fs::exists(path("out")));
  }
  // One that was changed before it was read, and left out for that, is no difference.
  fs::remove_all(path("out.part"));
  PackOptions plan_only = task(0, 1);
  plan_only.plan_only = true;
  ASSERT_TRUE(pack(posix_storage(), plan_only).ok());
  put("tree/class0/new.jpg", "newer than the plan");
  ASSERT_TRUE(pack(posix_storage(), task(0, 1)).ok());
  const auto report = pack(posix_storage(), task(1, 1));
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_TRUE(report->published);
  EXPECT_EQ(report->samples, 40u);
  // Published, and the source is another by now.
  ASSERT_TRUE(pack(posix_storage(), task(1)).ok());
  put("tree/class0/newest.jpg", "x");
  const Status late = pack(posix_storage(), task(0)).status();
  EXPECT_EQ(late.code(), Code::invalid);
  EXPECT_TRUE(mentions(late.text(), "has changed")) << late.text();
}

TEST_F(PackTest, ATaskThatFindsItsWorkDoneSaysSo) {
  make_tree(12);
  ASSERT_TRUE(pack(posix_storage(), options("out")).ok());
  PackOptions late = options("out");
  late.tasks = 2;
  for (const uint32_t task : {0u, 1u}) {
    late.task = task;
    const auto report = pack(posix_storage(), late);
    ASSERT_TRUE(report.ok()) << report.status().text();
    EXPECT_TRUE(report->found);
  }
}

TEST_F(PackTest, FilesThatChangedAfterTheyWereReadAreNotPassedOver) {
  make_tree(40);
  PackOptions half = options("out");
  half.shards = 2;
  half.tasks = 2;
  half.publish_wait_seconds = 0;
  ASSERT_TRUE(pack(posix_storage(), half).ok());
  const std::string shard = read_whole(posix_storage(), path("out.part/train-000000.tar")).value();
  const std::string key = shard.substr(0, shard.find(".cls"));
  put("tree/" + key + ".jpg", "something else");
  PackOptions again = options("out");
  again.shards = 2;
  const Status status = pack(posix_storage(), again).status();
  EXPECT_EQ(status.code(), Code::corrupt) << status.text();
  EXPECT_FALSE(fs::exists(path("out")));
  // The shard that has it is written once more, without it.
  again.skip_bad = 1;
  const auto report = pack(posix_storage(), again);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->samples, 39u);
  ASSERT_EQ(report->bad.size(), 1u);
  EXPECT_EQ(report->bad[0].key, key);
  EXPECT_EQ((*Dataset::open(posix_storage(), path("out")))->find(key).status().code(), Code::not_found);
  EXPECT_EQ(verify(posix_storage(), path("out"))->findings_count, 0u);
}

TEST_F(PackTest, AnArchiveThatChangedAfterAllWasReadIsNoticed) {
  make_tree(20);
  PackOptions first = options("first");
  first.shards = 1;
  ASSERT_TRUE(pack(posix_storage(), first).ok());
  PackOptions again = options("out");
  again.sources = {{"", path("first/train-000000.tar")}};
  Faults faults;  // every shard is whole, and the index cannot be written
  faults.fail_create = 1;
  faults.on = [](std::string_view name) { return name.ends_with("index.npz"); };
  FaultyStorage flaky(posix_storage(), faults);
  ASSERT_EQ(pack(flaky, again).status().code(), Code::io);
  fs::last_write_time(path("first/train-000000.tar"), fs::file_time_type::clock::now());
  const Status status = pack(posix_storage(), again).status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_TRUE(mentions(status.text(), "train-000000.tar has changed")) << status.text();
  EXPECT_TRUE(mentions(status.text(), "out.part")) << status.text();
}

}  // namespace
}  // namespace packtrain
