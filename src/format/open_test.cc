#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/hash.h"
#include "base/process_token.h"
#include "format/npy_header.h"
#include "format/tar_header.h"
#include "io/test_storage.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

std::string tar_of(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string bytes;
  for (const auto& [name, data] : files) {
    size_t at = bytes.size();
    bytes.resize(at + kTarBlock);
    write_tar_header(name, data.size(), std::as_writable_bytes(std::span(bytes)).subspan(at));
    bytes += data;
    bytes.append(tar_padding(data.size()), '\0');
  }
  return bytes + std::string(1024, '\0');
}

class OpenTest : public testing::Test {
 protected:
  void SetUp() override {
    before_ = std::getenv("XDG_CACHE_HOME") ? std::getenv("XDG_CACHE_HOME") : "";
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    put(storage(), a_, tar_of({{"1.cls", "1"}, {"1.txt", "one"}}));
    put(storage(), b_, tar_of({{"2.cls", "2"}, {"2.txt", "two"}}));
  }
  void TearDown() override {
    if (before_.empty()) {
      ::unsetenv("XDG_CACHE_HOME");
    } else {
      ::setenv("XDG_CACHE_HOME", before_.c_str(), 1);
    }
  }

  Storage& storage() { return posix_storage(); }
  Result<std::shared_ptr<Dataset>> open(const std::string& path) {
    OpenOptions options;
    options.note = &note_;
    return open_dataset(storage(), path, options);
  }
  static std::string text(const Dataset& dataset, uint64_t sample) {
    std::vector<std::byte> bytes;
    Status status = dataset.read(sample, dataset.manifest().field_id("txt"), bytes);
    return status.ok() ? std::string(as_text(bytes)) : status.text();
  }

  TemporaryFolder folder_;
  std::string a_ = folder_ / "set/a.tar", b_ = folder_ / "set/b.tar";
  std::string before_, note_;
};

TEST_F(OpenTest, BareContainerIsIndexedOnceAndKept) {
  auto first = open(a_);
  ASSERT_TRUE(first.ok()) << first.status().text();
  EXPECT_EQ(text(**first, 0), "one");
  EXPECT_NE(note_.find("packtrain index"), std::string::npos) << note_;
  size_t kept = visible(storage(), folder_ / "cache").size();
  EXPECT_GE(kept, 3u);

  auto second = open(a_);
  ASSERT_TRUE(second.ok()) << second.status().text();
  EXPECT_EQ(note_, "") << "the second time it comes from the cache";
  EXPECT_EQ((*second)->manifest().id, (*first)->manifest().id);
  EXPECT_EQ(visible(storage(), folder_ / "cache").size(), kept);
}

TEST_F(OpenTest, LabelsBesideAnArrayAreThoseOfToday) {
  const auto array = [](std::string_view type, uint64_t rows, const std::vector<int64_t>& values) {
    return make_npy_header(type, {&rows, 1}).append(as_text(std::as_bytes(std::span(values))));
  };
  const std::string x = folder_ / "np/x.npy", y = folder_ / "np/y.npy";
  put(storage(), x, array("<i8", 2, {1, 2}));
  const auto labels = [&]() -> std::vector<int64_t> {
    auto dataset = open(x);
    EXPECT_TRUE(dataset.ok()) << dataset.status().text();
    if (!dataset.ok()) return {};
    return {(*dataset)->labels().begin(), (*dataset)->labels().end()};
  };
  using Labels = std::vector<int64_t>;
  EXPECT_EQ(labels(), (Labels{kNoLabel, kNoLabel}));
  put(storage(), y, array("<i8", 2, {5, 6}));
  EXPECT_EQ(labels(), (Labels{5, 6})) << "they came after the index was kept";
  EXPECT_EQ(labels(), (Labels{5, 6}));
  EXPECT_EQ(note_, "") << "from the cache";
  put(storage(), y, array("<i8", 2, {7, 8}));
  EXPECT_EQ(labels(), (Labels{7, 8}));

  ASSERT_TRUE(make_index(storage(), std::vector<std::string>{x}, {}).ok());
  EXPECT_EQ(labels(), (Labels{7, 8}));
  put(storage(), y, array("<i8", 2, {9, 9}));
  EXPECT_EQ(labels(), (Labels{9, 9})) << "the index beside it is stale";
  EXPECT_NE(note_.find("y.npy has changed since"), std::string::npos) << note_;
  const Status by_name = open(x + ".packtrain").status();
  EXPECT_EQ(by_name.code(), Code::corrupt);
  EXPECT_NE(by_name.text().find("run packtrain index again"), std::string::npos) << by_name.text();
  ASSERT_TRUE(storage().remove(y).ok());
  EXPECT_TRUE(open(x + ".packtrain").ok()) << "the index has what the file had";
  EXPECT_EQ(labels(), (Labels{kNoLabel, kNoLabel}));
}

TEST_F(OpenTest, ContainersMayBeGivenTheirSplits) {
  MakeIndexOptions options;
  options.out = folder_ / "splits.pt";
  const std::string c = folder_ / "set/c.tar";
  put(storage(), c, tar_of({{"3.cls", "3"}, {"3.txt", "three"}}));
  options.splits = {"train", "val", "train"};
  const std::vector<std::string> containers = {a_, b_, c};
  auto made = make_index(storage(), containers, options);
  ASSERT_TRUE(made.ok()) << made.status().text();
  auto dataset = open(options.out);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  const Manifest& manifest = (*dataset)->manifest();
  ASSERT_EQ(manifest.splits.size(), 2u);
  EXPECT_EQ(manifest.splits[0].name, "train");
  EXPECT_EQ(manifest.splits[0].count, 2u);
  EXPECT_EQ(text(**dataset, 1), "three") << "a split is one range";
  EXPECT_EQ(text(**dataset, 2), "two");
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"train", "", "val"}, {"a/b", "b", "c"}, {"train"}}) {
    options.splits = wrong;
    EXPECT_EQ(make_index(storage(), containers, options).status().code(), Code::invalid);
  }
}

TEST_F(OpenTest, SplitsOfTheContainersOwnAreNotMixedUp) {
  const auto write = [&](const std::string& path, const std::vector<std::string>& splits) {
    WriteSpec spec;
    spec.fields = {"txt"};
    auto writer = find_format("hdf5-vlen")->create(storage(), path, spec);
    ASSERT_TRUE(writer.ok());
    for (const std::string& split : splits) {
      ASSERT_TRUE((*writer)->begin_split(split).ok());
      const SampleToWrite::Field field{"txt", as_bytes("text")};
      ASSERT_TRUE((*writer)->add({.key = split, .fields = std::span(&field, 1)}).ok());
    }
    ASSERT_TRUE((*writer)->finish().ok());
  };
  const std::string first = folder_ / "set/1.h5", second = folder_ / "set/2.h5";
  write(first, {"train", "val"});
  write(second, {"train"});
  const auto index = [&](const std::vector<std::string>& containers, std::vector<std::string> splits) {
    MakeIndexOptions options;
    options.out = folder_ / "mixed.pt";
    options.splits = std::move(splits);
    return make_index(storage(), containers, options).status();
  };
  const Status twice = index({first, second}, {});
  EXPECT_EQ(twice.code(), Code::unsupported);
  EXPECT_NE(twice.text().find("packtrain pack"), std::string::npos) << twice.text();
  EXPECT_EQ(index({first}, {"test"}).code(), Code::invalid);
  EXPECT_TRUE(index({second, a_}, {}).ok());
  auto dataset = open(folder_ / "mixed.pt");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->manifest().splits.back().name, "all");
}

TEST_F(OpenTest, ChangedContainerIsIndexedAgain) {
  ASSERT_TRUE(open(a_).ok());
  put(storage(), a_, tar_of({{"3.txt", "three"}, {"4.txt", "four"}}));
  auto again = open(a_);
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ((*again)->samples(), 2u);
  EXPECT_EQ(text(**again, 1), "four");
}

TEST_F(OpenTest, DamagedCacheIsMadeAnew) {
  ASSERT_TRUE(open(a_).ok());
  for (const std::string& name : visible(storage(), folder_ / "cache")) {
    if (name.ends_with("manifest.json")) put(storage(), folder_ / "cache/" + name, "{");
  }
  auto again = open(a_);
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(text(**again, 0), "one");
  EXPECT_NE(note_, "");
  note_.clear();
  ASSERT_TRUE(open(a_).ok());
  EXPECT_EQ(note_, "");
}

TEST_F(OpenTest, WithoutCacheNothingIsWritten) {
  OpenOptions options;
  options.cache = false;
  auto dataset = open_dataset(storage(), a_, options);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_NE((*dataset)->manifest().id, "");
  EXPECT_FALSE(storage().stat(folder_ / "cache").ok());
}

TEST_F(OpenTest, CacheThatCannotBeWrittenIsDoneWithout) {
  put(storage(), folder_ / "cache", "a file where the folder should be");
  auto dataset = open(a_);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ(text(**dataset, 0), "one");
  EXPECT_NE(note_.find("could not be kept"), std::string::npos) << note_;
}

TEST_F(OpenTest, SeveralContainersAreOneDataset) {
  for (const std::string& pattern : {folder_ / "set/{a,b}.tar", folder_ / "set/*.tar", a_ + "::" + b_}) {
    auto dataset = open(pattern);
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    ASSERT_EQ((*dataset)->samples(), 2u);
    EXPECT_EQ(text(**dataset, 1), "two");
    EXPECT_EQ((*dataset)->label(1), 2);
  }
}

TEST_F(OpenTest, IndexBesideTheContainerIsUsedAndMovesWithIt) {
  std::string containers[] = {a_};
  auto report = make_index(storage(), containers, {});
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->folder, a_ + ".packtrain");
  EXPECT_EQ(report->samples, 1u);
  auto dataset = open(a_);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ(note_, "");
  EXPECT_EQ((*dataset)->folder(), a_ + ".packtrain");
  EXPECT_EQ((*dataset)->manifest().shards[0].path, "../a.tar");
  ASSERT_TRUE(storage().rename(folder_ / "set", folder_ / "moved").ok());
  auto moved = open(folder_ / "moved/a.tar.packtrain");
  ASSERT_TRUE(moved.ok()) << moved.status().text();
  EXPECT_EQ(text(**moved, 0), "one");
}

TEST_F(OpenTest, AnIndexOfAnEarlierContainerIsNotUsedAndSaidToBeOld) {
  std::string containers[] = {a_};
  ASSERT_TRUE(make_index(storage(), containers, {}).ok());
  put(storage(), a_, tar_of({{"3.txt", "three"}, {"4.txt", "four"}}));
  auto dataset = open(a_);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->samples(), 2u);
  EXPECT_EQ(text(**dataset, 1), "four");
  EXPECT_NE(note_.find("changed since"), std::string::npos) << note_;
  ASSERT_TRUE(open(a_).ok());
  EXPECT_NE(note_.find("changed since"), std::string::npos) << "also when the new index comes from the cache";
}

TEST_F(OpenTest, FilesWithoutAnExtensionAreReported) {
  put(storage(), a_, tar_of({{"utt1", "one"}, {"utt2", "two"}, {"3.txt", "three"}}));
  put(storage(), b_, tar_of({{"utt4", "four"}}));
  std::string containers[] = {a_, b_};
  auto report = make_index(storage(), containers, {});
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->samples, 1u);
  EXPECT_EQ(report->without_extension.count, 3u);
  EXPECT_TRUE(open(b_).ok());
  EXPECT_NE(note_.find("utt4"), std::string::npos) << note_;
}

TEST_F(OpenTest, ContainersThatCannotBeIndexedComeWithTheNextStep) {
  std::string containers[] = {a_};
  std::string bytes = tar_of({{"1.txt", "one"}, {"2.txt", "two"}});
  bytes[1024 + 3] ^= 1;  // in the second header
  put(storage(), a_, bytes);
  auto report = make_index(storage(), containers, {});
  EXPECT_EQ(report.status().code(), Code::corrupt);
  EXPECT_NE(report.status().text().find("--recover"), std::string::npos) << report.status().text();
  put(storage(), a_, tar_of({{"1.txt", "one"}, {"1.txt", "two"}}));
  report = make_index(storage(), containers, {});
  EXPECT_EQ(report.status().code(), Code::corrupt);
  EXPECT_NE(report.status().text().find("packtrain pack"), std::string::npos) << report.status().text();
  EXPECT_EQ(report.status().text().find("--recover"), std::string::npos) << report.status().text();
}

TEST_F(OpenTest, IndexOfSeveralIsNotTakenForOneOfThem) {
  std::string containers[] = {a_, b_};
  ASSERT_TRUE(make_index(storage(), containers, {}).ok());
  auto both = open(folder_ / "set/{a,b}.tar");
  ASSERT_TRUE(both.ok()) << both.status().text();
  EXPECT_EQ((*both)->samples(), 2u);
  EXPECT_EQ(note_, "");
  auto one = open(a_);
  ASSERT_TRUE(one.ok()) << one.status().text();
  EXPECT_EQ((*one)->samples(), 1u);
}

TEST_F(OpenTest, IndexElsewhereHasAbsolutePathsAndReplacesAnOlderOne) {
  std::string containers[] = {a_};
  MakeIndexOptions options;
  options.out = folder_ / "elsewhere/deep/index";
  for (int round = 0; round < 2; ++round) {
    auto report = make_index(storage(), containers, options);
    ASSERT_TRUE(report.ok()) << report.status().text();
    auto dataset = open(options.out);
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    EXPECT_EQ((*dataset)->manifest().shards[0].path, a_);
    EXPECT_EQ(text(**dataset, 0), "one");
  }
  EXPECT_EQ(visible(storage(), folder_ / "elsewhere", /*parts=*/true).size(), 3u);
}

TEST_F(OpenTest, IndexNeverReplacesWhatIsNoIndex) {
  std::string containers[] = {a_};
  auto refused = [&](const std::string& what) {
    auto report = make_index(storage(), containers, {});
    EXPECT_EQ(report.status().code(), Code::invalid) << what;
    EXPECT_NE(report.status().text().find("--out"), std::string::npos) << report.status().text();
    EXPECT_EQ(visible(storage(), folder_ / "set", /*parts=*/true).size(), 4u) << what;
  };
  const std::string beside = a_ + ".packtrain";
  put(storage(), beside + "/thesis.txt", "years of work");
  put(storage(), beside + "/chapter.txt", "more of it");
  refused("a folder of other files");
  ASSERT_TRUE(storage().remove(beside + "/chapter.txt").ok());
  put(storage(), beside + "/manifest.json", "{}");
  refused("a manifest of something else");
  EXPECT_EQ(get(storage(), beside + "/thesis.txt"), "years of work");
  ASSERT_TRUE(storage().remove(beside + "/thesis.txt").ok());
  put(storage(), beside + "/index.npz", "of somebody else's");
  refused("a manifest of something else beside an index of something else");
  ASSERT_TRUE(remove_tree(storage(), beside).ok());
  ASSERT_TRUE(storage().remove(b_).ok());
  ASSERT_TRUE(make_index(storage(), containers, {}).ok());
  ASSERT_TRUE(make_index(storage(), containers, {}).ok()) << "an index and nothing else may be replaced";
  ASSERT_TRUE(storage().remove(beside + "/names.npz").ok());
  put(storage(), beside + "/thesis.txt", "years of work");
  refused("an index with another file in it");
  EXPECT_EQ(get(storage(), beside + "/thesis.txt"), "years of work");
}

// A dataset in the way: its shards are the only copy of the data.
TEST_F(OpenTest, IndexNeverReplacesADatasetThatHoldsItsShards) {
  std::string containers[] = {a_}, inside = folder_ / "set/own.pt";
  MakeIndexOptions options;
  options.out = inside;
  ASSERT_TRUE(make_index(storage(), containers, options).ok());
  auto text = read_whole(storage(), inside + "/manifest.json");
  ASSERT_TRUE(text.ok());
  auto manifest = Manifest::decode(*text);
  ASSERT_TRUE(manifest.ok());
  manifest->shards[0].path = "train-000000.tar";
  put(storage(), inside + "/manifest.json", manifest->encode());
  EXPECT_EQ(make_index(storage(), containers, options).status().code(), Code::invalid);
  put(storage(), inside + "/train-000000.tar", "the only copy");
  EXPECT_EQ(make_index(storage(), containers, options).status().code(), Code::invalid);
  EXPECT_EQ(get(storage(), inside + "/train-000000.tar"), "the only copy");
}

TEST_F(OpenTest, IndexTakesAnEmptyFolderAndLeavesItsNeighboursAlone) {
  std::string containers[] = {a_};
  MakeIndexOptions options;
  options.out = folder_ / "empty";
  ASSERT_TRUE(storage().make_folder(options.out).ok());
  auto report = make_index(storage(), containers, options);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_TRUE(open(options.out).ok());
  ASSERT_TRUE(remove_tree(storage(), options.out).ok());

  // The names an index is made under are taken already, by whomever.
  std::string token = process_token();
  const size_t count_at = token.rfind('-') + 1;
  const int count = std::stoi(token.substr(count_at));
  const auto taken = [&](int i) {
    return options.out + ".tmp-" + token.substr(0, count_at) + std::to_string(count + i) + "/notes.txt";
  };
  for (int i = 1; i <= 4; ++i) put(storage(), taken(i), "mine");
  for (int round = 0; round < 2; ++round) {
    report = make_index(storage(), containers, options);
    ASSERT_TRUE(report.ok()) << report.status().text();
  }
  for (int i = 1; i <= 4; ++i) EXPECT_EQ(get(storage(), taken(i)), "mine");
}

TEST_F(OpenTest, WhatKilledProcessesLeftBesideAnIndexGoesWithTheNextOne) {
  std::string containers[] = {a_};
  const std::string target = a_ + ".packtrain", own = process_token(), host = own.substr(0, own.find('-'));
  ASSERT_TRUE(make_index(storage(), containers, {}).ok());
  const auto leave = [&](const std::string& token) {
    put(storage(), target + ".tmp-" + token + "/manifest.json", "{}");
    return target + ".tmp-" + token;
  };
  const std::string dead = leave(host + "-999999999-0"), old = leave(host + "-999999999-1-old"),
                    alive = leave(host + "-" + std::to_string(::getpid()) + "-x"),
                    elsewhere = leave("another_host-1-0");
  const std::string with_more = leave(host + "-999999999-2");
  put(storage(), with_more + "/notes.txt", "mine");
  ASSERT_TRUE(make_index(storage(), containers, {}).ok());
  EXPECT_FALSE(storage().stat(dead).ok());
  EXPECT_FALSE(storage().stat(old).ok());
  EXPECT_TRUE(storage().stat(alive).ok());
  EXPECT_TRUE(storage().stat(elsewhere).ok());
  EXPECT_EQ(get(storage(), with_more + "/notes.txt"), "mine");
}

// A loader that opens the dataset while an index is made anew finds the old one or the new one.
TEST_F(OpenTest, AnIndexIsReplacedInOneStepWhereTheFilesystemCan) {
  std::string containers[] = {a_}, beside = a_ + ".packtrain";
  ASSERT_TRUE(make_index(storage(), containers, {}).ok());
  Status looked;
  std::atomic<bool> over = false;
  std::thread looker([&] {
    while (!over && looked.ok()) looked = storage().stat(beside).status();
  });
  for (int round = 0; round < 50; ++round) EXPECT_TRUE(make_index(storage(), containers, {}).ok());
  over = true;
  looker.join();
  EXPECT_TRUE(looked.ok()) << looked.text();
}

// Whichever call fails, or is the last before the end: the older index is there, under one name or another.
TEST_F(OpenTest, AnOlderIndexSurvivesEveryFailureOfReplacingIt) {
  std::string containers[] = {a_}, beside = a_ + ".packtrain";
  ASSERT_TRUE(make_index(storage(), containers, {}).ok());
  const std::string before = get(storage(), beside + "/manifest.json");
  put(storage(), a_, tar_of({{"1.txt", "another"}, {"2.txt", "one"}}));
  const Faults faults[] = {
      {.fail_rename = 1}, {.fail_rename = 1, .no_exchange = true}, {.fail_rename = 2, .no_exchange = true}};
  for (const Faults& fault : faults) {
    FaultyStorage flaky(storage(), fault);
    EXPECT_FALSE(make_index(flaky, containers, {}).ok());
    EXPECT_EQ(get(storage(), beside + "/manifest.json"), before) << fault.fail_rename;
    EXPECT_EQ(visible(storage(), folder_ / "set", /*parts=*/true).size(), 5u) << fault.fail_rename;
  }
}

TEST_F(OpenTest, AnIndexThatCannotBeMadeDurableIsNotPublished) {
  std::string containers[] = {a_}, beside = a_ + ".packtrain";
  std::vector<Faults> faults = {{.fail_sync_folder = 1}};
  for (uint64_t nth = 1; nth <= 3; ++nth) {
    faults.push_back({.fail_create = nth});
    faults.push_back({.fail_write = nth});
    faults.push_back({.fail_commit = nth});
  }
  std::string before;
  for (const bool replaces : {false, true}) {
    for (const Faults& fault : faults) {
      FaultyStorage flaky(storage(), fault);
      EXPECT_EQ(make_index(flaky, containers, {}).status().code(), Code::io);
      EXPECT_EQ(storage().stat(beside).ok(), replaces);
      if (replaces) {
        EXPECT_EQ(get(storage(), beside + "/manifest.json"), before);
      }
      EXPECT_EQ(visible(storage(), folder_ / "set", /*parts=*/true).size(), replaces ? 5u : 2u);
    }
    ASSERT_TRUE(make_index(storage(), containers, {}).ok());
    before = get(storage(), beside + "/manifest.json");
  }
}

TEST_F(OpenTest, IndexInsideADatasetIsRefused) {
  std::string containers[] = {a_}, folder = folder_ / "set/of.pt";
  MakeIndexOptions options;
  options.out = folder;
  ASSERT_TRUE(make_index(storage(), containers, options).ok());
  put(storage(), folder + "/c.tar", tar_of({{"1.txt", "one"}}));
  std::string inside[] = {folder + "/c.tar"};
  auto report = make_index(storage(), inside, {});
  EXPECT_EQ(report.status().code(), Code::invalid);
  EXPECT_NE(report.status().text().find("--out"), std::string::npos) << report.status().text();
  EXPECT_FALSE(storage().stat(inside[0] + ".packtrain").ok());
  options.out = folder_ / "elsewhere";
  report = make_index(storage(), inside, options);
  EXPECT_TRUE(report.ok()) << report.status().text();
}

TEST_F(OpenTest, AContainerGivenTwiceIsRefused) {
  std::string containers[] = {a_, b_, folder_ / "set/../set/a.tar"};
  auto report = make_index(storage(), containers, {});
  EXPECT_EQ(report.status().code(), Code::invalid);
  EXPECT_NE(report.status().text().find("twice"), std::string::npos) << report.status().text();
}

TEST_F(OpenTest, AFolderGivenToIndexComesWithTheAdviceThatFitsIt) {
  const auto advice = [&](const std::string& folder) {
    std::string containers[] = {folder};
    auto report = make_index(storage(), containers, {});
    EXPECT_EQ(report.status().code(), Code::unsupported);
    return report.status().text();
  };
  const std::string shards = folder_ / "set", photos = folder_ / "photos", dataset = folder_ / "set.pt";
  put(storage(), photos + "/cat.jpg", "a cat");
  put(storage(), dataset + "/manifest.json", "{}");
  EXPECT_NE(advice(shards + "/").find("packtrain index '" + shards + "/*.tar'"), std::string::npos);
  EXPECT_NE(advice(photos).find("packtrain pack " + photos + " OUT"), std::string::npos);
  EXPECT_NE(advice(dataset).find("packtrain info " + dataset), std::string::npos);
}

TEST_F(OpenTest, AnIndexThatCannotLieBesideItsContainerNamesTheWayOut) {
  FaultyStorage flaky(storage(), {.fail_make_folder = 1});
  std::string containers[] = {a_};
  auto report = make_index(flaky, containers, {});
  EXPECT_EQ(report.status().code(), Code::io);
  EXPECT_NE(report.status().text().find("--out DIR"), std::string::npos) << report.status().text();
  EXPECT_EQ(report.status().text().find(".tmp-"), std::string::npos) << report.status().text();
}

TEST_F(OpenTest, ChecksumRecordsEveryFieldAndBlock) {
  std::string large(9'000'000, 'x');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * i >> 7);
  put(storage(), a_, tar_of({{"1.txt", "one"}, {"2.txt", large}, {"3.txt", ""}}));
  std::string containers[] = {a_};
  MakeIndexOptions options;
  options.checksum = true;
  auto report = make_index(storage(), containers, options);
  ASSERT_TRUE(report.ok()) << report.status().text();
  auto dataset = open(a_);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  uint32_t field = (*dataset)->manifest().field_id("txt");
  FieldLocation place = (*dataset)->locate(1, field);
  EXPECT_EQ(place.check_kind, CheckKind::crc32c);
  EXPECT_EQ(place.check, crc32c(as_bytes(large)));
  EXPECT_EQ((*dataset)->locate(0, field).check, crc32c(as_bytes("one")));
  std::string bytes = get(storage(), a_);
  auto checks = (*dataset)->block_checks(0);
  ASSERT_EQ(checks.size(), 3u);
  EXPECT_EQ(checks[2], crc32c(as_bytes(bytes).subspan(2 * kBlockBytes)));
  EXPECT_EQ((*dataset)->manifest().shards[0].hash, xxh128_hex(std::as_bytes(checks)));
  EXPECT_EQ(text(**dataset, 1), large);
}

TEST_F(OpenTest, ChecksumComparesWhatAZipBringsAlong) {
  std::string path = folder_ / "set/z.zip", text(1000, 't');
  auto writer = find_format("zip")->create(storage(), path, {.compress = "none"});
  ASSERT_TRUE(writer.ok()) << writer.status().text();
  SampleToWrite::Field fields[] = {{"txt", as_bytes(text)}};
  ASSERT_TRUE((*writer)->add({.key = "a", .fields = fields}).ok());
  ASSERT_TRUE((*writer)->finish().ok());
  std::string containers[] = {path};
  MakeIndexOptions options;
  options.checksum = true;
  ASSERT_TRUE(make_index(storage(), containers, options).ok());
  std::string bytes = get(storage(), path);
  bytes[bytes.find("tttt") + 500] ^= 1;
  put(storage(), path, bytes);
  auto report = make_index(storage(), containers, options);
  EXPECT_EQ(report.status().code(), Code::corrupt);
  EXPECT_NE(report.status().text().find("a.txt"), std::string::npos) << report.status().text();
}

TEST_F(OpenTest, ClassFoldersOfSeveralContainersAreNumberedAlike) {
  put(storage(), a_, tar_of({{"cat/1.jpg", "1"}, {"dog/2.jpg", "2"}}));
  put(storage(), b_, tar_of({{"ape/3.jpg", "3"}, {"ape/4.jpg", "4"}}));
  auto dataset = open(folder_ / "set/*.tar");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->manifest().classes, (std::vector<std::string>{"ape", "cat", "dog"}));
  auto labels = (*dataset)->labels();
  EXPECT_EQ(std::vector<int64_t>(labels.begin(), labels.end()), (std::vector<int64_t>{1, 2, 0, 0}));
}

TEST_F(OpenTest, NumbersBesideNamedClassesAreToldOrRefusedWhereNoClassHasThem) {
  put(storage(), a_, tar_of({{"cat/1.jpg", "1"}, {"dog/2.jpg", "2"}}));
  put(storage(), b_, tar_of({{"3.jpg", "3"}, {"3.cls", "1"}}));
  std::string containers[] = {a_, b_};
  MakeIndexOptions options;
  options.out = folder_ / "both";
  auto report = make_index(storage(), containers, options);
  ASSERT_TRUE(report.ok()) << report.status().text();
  ASSERT_EQ(report->notes.size(), 1u);
  EXPECT_NE(report->notes[0].find("have no names"), std::string::npos) << report->notes[0];
  auto dataset = open(options.out);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->manifest().classes, (std::vector<std::string>{"cat", "dog"}));
  auto labels = (*dataset)->labels();
  EXPECT_EQ(std::vector<int64_t>(labels.begin(), labels.end()), (std::vector<int64_t>{0, 1, 1}));

  put(storage(), b_, tar_of({{"3.jpg", "3"}, {"3.cls", "2"}}));
  report = make_index(storage(), containers, options);
  EXPECT_EQ(report.status().code(), Code::unsupported);
  EXPECT_NE(report.status().text().find("names 2 classes"), std::string::npos) << report.status().text();
}

TEST_F(OpenTest, EqualKeysAreToldWithWhatToDo) {
  put(storage(), a_, tar_of({{"1.jpg", "1"}, {"2.jpg", "2"}, {"1.txt", "a"}, {"2.txt", "b"}}));
  std::string one[] = {a_};
  auto report = make_index(storage(), one, {});
  ASSERT_TRUE(report.ok()) << report.status().text();
  ASSERT_EQ(report->notes.size(), 1u);
  EXPECT_EQ(report->notes[0].find("2 samples in a tar have the key of an earlier one, the first is 1"), 0u)
      << report->notes[0];
  EXPECT_NE(report->notes[0].find("packtrain pack"), std::string::npos) << report->notes[0];

  put(storage(), a_, tar_of({{"1.jpg", "1"}}));
  put(storage(), b_, tar_of({{"1.jpg", "2"}}));
  std::string both[] = {a_, b_};
  MakeIndexOptions options;
  options.out = folder_ / "both";
  report = make_index(storage(), both, options);
  ASSERT_TRUE(report.ok()) << report.status().text();
  ASSERT_EQ(report->notes.size(), 1u);
  EXPECT_EQ(report->notes[0].find("1 sample"), 0u) << report->notes[0];

  options.splits = {"train", "val"};
  report = make_index(storage(), both, options);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_TRUE(report->notes.empty()) << "each split has its own keys";
}

TEST_F(OpenTest, WhatCannotBeReadInPlaceComesWithAdvice) {
  put(storage(), folder_ / "x.tar.gz", "\x1f\x8b\x08 and so on");
  put(storage(), folder_ / "x.txt", "plain text");
  put(storage(), folder_ / "x.tar", "");
  auto gz = open(folder_ / "x.tar.gz");
  EXPECT_EQ(gz.status().code(), Code::unsupported);
  EXPECT_NE(gz.status().text().find("packtrain pack"), std::string::npos) << gz.status().text();
  EXPECT_EQ(open(folder_ / "x.txt").status().code(), Code::unsupported);
  EXPECT_EQ(open(folder_ / "x.tar").status().code(), Code::corrupt);
  EXPECT_EQ(open(folder_ / "missing.tar").status().code(), Code::not_found);
  EXPECT_EQ(open(folder_ / "set").status().code(), Code::not_found) << "a folder without a manifest";
}

}  // namespace
}  // namespace packtrain
