#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "pack/scan_test_support.h"
#include "pack/walk.h"

namespace packtrain {
namespace {

TEST(TreeSourceTest, ClassFoldersAreNumberedBySortedName) {
  MemoryStorage storage;
  put(storage, "photos/dog/2.jpg", "xx");
  put(storage, "photos/cat/1.jpg", "x");
  put(storage, "photos/cat/deep/er/3.jpg", "xxx");
  put(storage, "photos/Zebra/4.jpg", "");
  const Catalog catalog = scan_ok(storage, "photos");
  EXPECT_EQ(catalog.classes, (Lines{"Zebra", "cat", "dog"}));
  EXPECT_EQ(described(catalog), (Lines{
                                    "train/0 Zebra/4: cls='0' jpg=Zebra/4.jpg",
                                    "train/1 cat/1: cls='1' jpg=cat/1.jpg",
                                    "train/1 cat/deep/er/3: cls='1' jpg=cat/deep/er/3.jpg",
                                    "train/2 dog/2: cls='2' jpg=dog/2.jpg",
                                }));
  EXPECT_EQ(catalog.bytes, 6U + 4U);    // the files, and a digit each
  EXPECT_EQ(catalog.files, 4U + 6U);    // files and folders
  EXPECT_EQ(catalog.cells.size(), 4U);  // a label takes no memory of its own
  EXPECT_EQ(catalog.count_fields(), 8U);
  ASSERT_EQ(catalog.warnings.size(), 1U);
  EXPECT_NE(catalog.warnings[0].find("1 image is empty: Zebra/4.jpg"), std::string::npos)
      << catalog.warnings[0];
}

TEST(TreeSourceTest, FlatFolderHasNoLabels) {
  MemoryStorage storage;
  put(storage, "flat/b.jpg", "x");
  put(storage, "flat/a.jpg", "x");
  put(storage, "flat/a.json", "{}");
  EXPECT_EQ(described(scan_ok(storage, "flat")),
            (Lines{"train/- a: jpg=a.jpg json=a.json", "train/- b: jpg=b.jpg"}));
}

TEST(TreeSourceTest, SplitFoldersShareClasses) {
  MemoryStorage storage;
  put(storage, "set/train/dog/1.jpg", "x");
  put(storage, "set/train/cat/2.jpg", "x");
  put(storage, "set/val/dog/3.jpg", "x");
  put(storage, "set/Test/4.jpg", "x");
  const Catalog catalog = scan_ok(storage, "set");
  EXPECT_EQ(catalog.splits, (Lines{"Test", "train", "val"}));
  EXPECT_EQ(described(catalog), (Lines{
                                    "Test/- Test/4: jpg=Test/4.jpg",
                                    "train/0 train/cat/2: cls='0' jpg=train/cat/2.jpg",
                                    "train/1 train/dog/1: cls='1' jpg=train/dog/1.jpg",
                                    "val/1 val/dog/3: cls='1' jpg=val/dog/3.jpg",
                                }));
  put(storage, "set/LICENSE", "free");
  const Catalog with_file = scan_ok(storage, "set");
  EXPECT_EQ(described(with_file)[0], "other/- LICENSE: bin=LICENSE");
  ASSERT_EQ(with_file.warnings.size(), 2U);
  EXPECT_NE(with_file.warnings[1].find("\"Test\" has 1 file in no class folder"), std::string::npos);
}

TEST(TreeSourceTest, NamedSplitIsNeverASplitTree) {
  MemoryStorage storage;
  put(storage, "set/train/1.jpg", "x");
  put(storage, "set/test/2.jpg", "x");
  const Catalog catalog = scan_ok(storage, scan_options({{"dev", "set"}}));
  EXPECT_EQ(catalog.splits, Lines{"dev"});
  EXPECT_EQ(catalog.classes, (Lines{"test", "train"}));
  EXPECT_EQ(catalog.warnings.size(), 1U);
}

TEST(TreeSourceTest, SeveralSourcesShareClassesAndKeepTheirPathsApart) {
  MemoryStorage storage;
  put(storage, "one/b/x.jpg", "x");
  put(storage, "two/a/x.jpg", "x");
  put(storage, "two/b/x.jpg", "x");
  const Catalog catalog = scan_ok(storage, scan_options({{"train", "one"}, {"val", "two"}}));
  EXPECT_EQ(described(catalog), (Lines{
                                    "train/1 b/x: cls='1' jpg=b/x.jpg",
                                    "val/0 a/x: cls='0' jpg=a/x.jpg",
                                    "val/1 b/x: cls='1' jpg=b/x.jpg",
                                }));
  EXPECT_EQ(recorded_path(catalog, catalog.cells[0]), "train/b/x.jpg");
  EXPECT_EQ(recorded_path(catalog, catalog.cells[2]), "val/b/x.jpg");
  EXPECT_EQ(key_names(catalog), (Lines{"train/b/x", "val/a/x", "val/b/x"}));
}

TEST(TreeSourceTest, FilesBesideClassFoldersAreKeptAndTold) {
  MemoryStorage storage;
  put(storage, "set/a/1.jpg", "x");
  put(storage, "set/labels.txt", "a");
  const Catalog catalog = scan_ok(storage, "set");
  EXPECT_EQ(described(catalog),
            (Lines{"train/- labels: txt=labels.txt", "train/0 a/1: cls='0' jpg=a/1.jpg"}));
  ASSERT_EQ(catalog.warnings.size(), 1U);
  EXPECT_NE(catalog.warnings[0].find("1 file beside its class folders; it is packed"), std::string::npos);
}

TEST(TreeSourceTest, LoneFolderOfFoldersIsTold) {
  MemoryStorage storage;
  put(storage, "set/images/a/1.jpg", "x");
  const Catalog catalog = scan_ok(storage, "set");
  EXPECT_EQ(catalog.classes, Lines{"images"});
  ASSERT_EQ(catalog.warnings.size(), 1U);
  EXPECT_NE(catalog.warnings[0].find("images"), std::string::npos);
}

TEST(TreeSourceTest, ClassesFileNumbersThem) {
  MemoryStorage storage;
  put(storage, "set/a/1.jpg", "x");
  put(storage, "set/b/2.jpg", "x");
  ScanOptions options = scan_options({{"", "set"}});
  options.classes_file = "classes";
  for (const char* text : {"b\r\nc\na\n", "[\"b\", \"c\", \"a\"]", "{\"a\": 2, \"b\": 0, \"c\": 1}",
                           "{\"0\": \"b\", \"1\": \"c\", \"2\": \"a\"}"}) {
    put(storage, "classes", text);
    const Catalog catalog = scan_ok(storage, options);
    EXPECT_EQ(catalog.classes, (Lines{"b", "c", "a"})) << text;
    EXPECT_EQ(catalog.samples[0].label, 2) << text;
  }
  put(storage, "classes", "b\n");
  const auto unknown = scan(storage, options);
  EXPECT_EQ(unknown.status().code(), Code::invalid);
  EXPECT_NE(unknown.status().message().find("\"a\""), std::string::npos) << unknown.status().message();
  for (const char* text :
       {"", "a\nb\na\n", "[1]", "{\"a\": 1, \"b\": 2}", "{\"a\": [1]}", "[\"a\"", "{\"a\": 0, \"b\": 0}"}) {
    put(storage, "classes", text);
    EXPECT_FALSE(scan(storage, options).ok()) << text;
  }
}

TEST(TreeSourceTest, OwnClsFilesAreKeptBesideTheClass) {
  MemoryStorage storage;
  put(storage, "set/a/1.jpg", "x");
  put(storage, "set/a/1.cls", "7");
  EXPECT_EQ(described(scan_ok(storage, "set")), Lines{"train/0 a/1: cls='0' jpg=a/1.jpg source.cls=a/1.cls"});
  ScanOptions without = scan_options({{"", "set"}});
  without.cls_field = false;
  put(storage, "set/a/2.jpg", "x");
  EXPECT_EQ(described(scan_ok(storage, without))[1], "train/0 a/2: jpg=a/2.jpg");
}

TEST(TreeSourceTest, EmptyImagesAreCounted) {
  MemoryStorage storage;
  put(storage, "set/a/1.jpg", "");
  put(storage, "set/a/2.PNG", "");
  put(storage, "set/a/3.txt", "");
  put(storage, "set/a/4.jpg", "x");
  const Catalog catalog = scan_ok(storage, "set");
  EXPECT_EQ(catalog.samples.size(), 4U);
  ASSERT_EQ(catalog.warnings.size(), 1U);
  EXPECT_NE(catalog.warnings[0].find("2 images are empty, the first is a/1.jpg"), std::string::npos)
      << catalog.warnings[0];
}

TEST(TreeSourceTest, AnnotationsAmongFoldersOfImagesAreTold) {
  MemoryStorage storage;
  put(storage, "coco/annotations/captions_val2017.json", "{}");
  put(storage, "coco/val2017/1.jpg", "x");
  const Catalog catalog = scan_ok(storage, "coco");
  ASSERT_EQ(catalog.warnings.size(), 1U);
  EXPECT_NE(catalog.warnings[0].find("coco/annotations/captions_val2017.json"), std::string::npos)
      << catalog.warnings[0];
  put(storage, "coco/annotations/2.jpg", "x");
  EXPECT_TRUE(scan_ok(storage, "coco").warnings.empty()) << "a class of images";
}

TEST(TreeSourceTest, APatternOfFoldersIsRefusedWithWhatToDo) {
  MemoryStorage storage;
  put(storage, "d/tr1/a/1.jpg", "x");
  put(storage, "d/tr2/a/1.jpg", "x");
  const Status refused = scan(storage, scan_options({{"", "d/tr*"}})).status();
  EXPECT_EQ(refused.code(), Code::invalid);
  for (const char* part : {"d/tr*", "d/tr1", "name each folder"})
    EXPECT_NE(refused.text().find(part), std::string::npos) << refused.text();
}

TEST(TreeSourceTest, OddNamesOnARealFilesystem) {
  TemporaryFolder folder;
  Storage& storage = posix_storage();
  const std::string longest = std::string(251, 'n') + ".jpg";
  const std::vector<std::string> names = {"a b.jpg", "new\nline.jpg",    "\xff\xfe.jpg", longest, "UP.JPEG",
                                          "up.jpeg", "dots.in.stem.jpg", "trailing.",    "none"};
  for (const std::string& name : names) put(storage, folder / ("set/c/" + name), name);
  for (const char* name :
       {".hidden.jpg", "._a b.jpg", ".DS_Store", "Thumbs.db", "x.jpg~", "y.part", ".nfs01", "z.tmp"})
    put(storage, folder / ("set/c/" + std::string(name)), "no");
  put(storage, folder / "set/.git/config", "no");
  const Catalog catalog = scan_ok(storage, folder / "set");
  ASSERT_EQ(catalog.samples.size(), names.size());
  EXPECT_EQ(catalog.skipped.hidden, 5U);
  EXPECT_EQ(catalog.skipped.temporary, 4U);
  EXPECT_EQ(catalog.skipped.examples.size(), 9U);
  std::vector<std::string> recorded;
  for (const Cell& cell : catalog.cells) {
    if (cell.origin != Origin::file) continue;
    EXPECT_EQ(cell.size, recorded_path(catalog, cell).size() - 2);
    EXPECT_GT(cell.mtime_ns(), 0);
    recorded.push_back(recorded_path(catalog, cell).substr(2));
  }
  std::vector<std::string> expected = names;
  std::sort(expected.begin(), expected.end());
  std::sort(recorded.begin(), recorded.end());
  EXPECT_EQ(recorded, expected);
  std::vector<std::string> keys = key_names(catalog);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
}

TEST(TreeSourceTest, SymlinksAreFollowedAndLoopsSurvived) {
  TemporaryFolder folder;
  Storage& storage = posix_storage();
  put(storage, folder / "set/a/1.jpg", "x");
  put(storage, folder / "elsewhere/2.jpg", "xx");
  put(storage, folder / "elsewhere/file.jpg", "xxx");
  const auto link = [&](const std::string& to, const std::string& name) {
    ASSERT_EQ(symlink(to.c_str(), (folder / name).c_str()), 0);
  };
  link(folder / "elsewhere", "set/b");
  link("../../elsewhere/file.jpg", "set/a/linked.jpg");
  link("..", "set/a/up");
  link(".", "set/a/self");
  link("../a", "set/a/again");
  link("nowhere", "set/a/broken.jpg");
  link("round.jpg", "set/a/round.jpg");
  ASSERT_EQ(mkfifo((folder / "set/a/pipe").c_str(), 0600), 0);
  const Catalog catalog = scan_ok(storage, folder / "set");
  EXPECT_EQ(described(catalog), (Lines{
                                    "train/0 a/1: cls='0' jpg=a/1.jpg",
                                    "train/0 a/linked: cls='0' jpg=a/linked.jpg",
                                    "train/1 b/2: cls='1' jpg=b/2.jpg",
                                    "train/1 b/file: cls='1' jpg=b/file.jpg",
                                }));
  EXPECT_EQ(catalog.cells[1].size, 3U);
  EXPECT_EQ(catalog.skipped.loops, 3U);
  EXPECT_EQ(catalog.skipped.broken_links, 2U);
  EXPECT_EQ(catalog.skipped.special, 1U);
}

TEST(TreeSourceTest, LooksAtEveryFileOnceAndListsEveryFolderOnce) {
  TemporaryFolder folder;
  Storage& posix = posix_storage();
  for (int i = 0; i < 50; ++i)
    put(posix, folder / ("set/c" + std::to_string(i % 5) + "/" + std::to_string(i)), "x");
  CountingStorage storage(posix);
  scan_ok(storage, folder / "set");
  EXPECT_EQ(storage.lists(), 6U);
  // The source, whether it is a dataset, and eleven looks whether it is a container that is a folder.
  EXPECT_EQ(storage.stats(), 50U + 3U + 10U);
  EXPECT_EQ(storage.opens(), 0U);
}

TEST(TreeSourceTest, EqualTreesGiveEqualCatalogs) {
  MemoryStorage one, two;
  for (int i = 0; i < 40; ++i)
    put(one, "set/" + std::to_string(i % 7) + "/" + std::to_string(i) + ".jpg", "x");
  for (int i = 39; i >= 0; --i)
    put(two, "set/" + std::to_string(i % 7) + "/" + std::to_string(i) + ".jpg", "x");
  EXPECT_EQ(described(scan_ok(one, "set")), described(scan_ok(two, "set")));
}

TEST(TreeSourceTest, WhatCannotBeListedOrLookedAtIsNamedAndTheRestIsThere) {
  MemoryStorage memory;
  for (const char* name : {"set/a/1.jpg", "set/a/2.jpg", "set/a/2.txt", "set/b/3.jpg", "set/c/4.jpg"})
    put(memory, name, "x");
  Faults no_list;
  no_list.fail_list = 1;
  no_list.on = [](std::string_view path) { return path == "set/b"; };
  FaultyStorage unlisted(memory, no_list);
  const Catalog without_folder = scan_ok(unlisted, "set");
  EXPECT_EQ(without_folder.unreadable_count, 1U);
  ASSERT_EQ(without_folder.unreadable.size(), 1U);
  EXPECT_EQ(without_folder.unreadable[0].path, "set/b");
  EXPECT_NE(without_folder.unreadable[0].what.find("counts as one"), std::string::npos);
  // The class that cannot be listed keeps its number.
  EXPECT_EQ(described(without_folder),
            (Lines{"train/0 a/1: cls='0' jpg=a/1.jpg", "train/0 a/2: cls='0' jpg=a/2.jpg txt=a/2.txt",
                   "train/2 c/4: cls='2' jpg=c/4.jpg"}));
  EXPECT_EQ(without_folder.classes, (Lines{"a", "b", "c"}));

  for (const Code code : {Code::io, Code::not_found}) {
    Faults no_stat;
    no_stat.fail_stat = 1;
    no_stat.from_then_on = true;
    no_stat.code = code;
    no_stat.on = [](std::string_view path) { return path.starts_with("set/a/2."); };
    FaultyStorage unseen(memory, no_stat);
    const Catalog without_file = scan_ok(unseen, "set");
    EXPECT_EQ(without_file.unreadable_count, 1U);  // two files of one sample
    ASSERT_EQ(without_file.unreadable.size(), 1U);
    EXPECT_EQ(without_file.unreadable[0].path, "set/a/2.jpg");
    EXPECT_EQ(without_file.unreadable[0].what.find("vanished") == 0, code == Code::not_found);
    EXPECT_EQ(described(without_file),
              (Lines{"train/0 a/1: cls='0' jpg=a/1.jpg", "train/1 b/3: cls='1' jpg=b/3.jpg",
                     "train/2 c/4: cls='2' jpg=c/4.jpg"}));
  }
}

TEST(TreeSourceTest, AFolderThatCannotBeListedDoesNotChangeWhatTheOthersMean) {
  MemoryStorage memory;
  for (const char* name : {"set/train/a/1.jpg", "set/train/b/2.jpg", "set/val/a/3.jpg", "set/x/4.jpg"})
    put(memory, name, "x");
  const auto without = [&](std::string folder) {
    Faults faults;
    faults.fail_list = 1;
    faults.on = [folder](std::string_view path) { return path == folder; };
    FaultyStorage storage(memory, faults);
    return scan_ok(storage, "set");
  };
  // With x it is no split tree, whether or not x can be listed.
  EXPECT_EQ(without("set/x").classes, (Lines{"train", "val", "x"}));
  ASSERT_TRUE(memory.remove("set/x/4.jpg").ok());
  ASSERT_TRUE(memory.remove("set/x").ok());
  EXPECT_EQ(without("set/train/a").classes, (Lines{"a", "b"}));
  EXPECT_EQ(described(without("set/train/a")), (Lines{"train/1 train/b/2: cls='1' jpg=train/b/2.jpg",
                                                      "val/0 val/a/3: cls='0' jpg=val/a/3.jpg"}));
  EXPECT_EQ(without("set/val").splits, Lines{"train"});
}

TEST(TreeSourceTest, ASourceThatCannotBeListedAtAllIsAnError) {
  MemoryStorage memory;
  put(memory, "set/a/1.jpg", "x");
  for (const char* folder : {"set", "set/a"}) {
    Faults faults;
    faults.fail_list = 1;
    faults.on = [folder](std::string_view path) { return path == folder; };
    FaultyStorage storage(memory, faults);
    const auto nothing = scan(storage, scan_options({{"", "set"}}));
    EXPECT_EQ(nothing.status().code(), Code::io);
    EXPECT_NE(nothing.status().text().find(folder), std::string::npos) << nothing.status().text();
  }
}

TEST(TreeSourceTest, EmptyAndAbsentSourcesAreErrors) {
  MemoryStorage storage;
  ASSERT_TRUE(storage.make_folder("empty/sub").ok());
  EXPECT_EQ(scan(storage, scan_options({{"", "empty"}})).status().code(), Code::invalid);
  EXPECT_EQ(scan(storage, scan_options({{"", "absent"}})).status().code(), Code::not_found);
  EXPECT_EQ(scan(storage, scan_options({})).status().code(), Code::invalid);
}

TEST(TreeSourceTest, FolderOfShardsIsTold) {
  MemoryStorage storage;
  put(storage, "shards/0.tar", "x");
  const Catalog catalog = scan_ok(storage, "shards");
  ASSERT_EQ(catalog.warnings.size(), 1U);
  EXPECT_NE(catalog.warnings[0].find("shards/*.tar"), std::string::npos);
}

TEST(TreeSourceTest, ProgressIsToldAndCanStop) {
  MemoryStorage storage;
  for (int i = 0; i < 500; ++i) put(storage, "set/" + std::to_string(i), "x");
  ScanOptions options = scan_options({{"", "set"}});
  uint64_t files = 0;
  options.progress = [&](const ProgressEvent& event) {
    EXPECT_EQ(event.phase, "scan");
    EXPECT_EQ(event.unit, "files");
    files = event.items;
    return true;
  };
  scan_ok(storage, options);
  EXPECT_EQ(files, 500U);
  options.progress = [](const ProgressEvent&) { return false; };
  EXPECT_EQ(scan(storage, options).status().code(), Code::stopped);
}

TEST(WalkTest, PathsAreInTheOrderOfFoldersFilesFirst) {
  EXPECT_TRUE(path_before("z", "a/b"));
  EXPECT_TRUE(path_before("a/z", "a/b/c"));
  EXPECT_TRUE(path_before("a/b/c", "b/a"));
  EXPECT_TRUE(path_before("a/x", "a-b/x"));
  EXPECT_FALSE(path_before("a/b", "a/b"));
}

TEST(TreeSourceTest, TwoFilesForOneFieldAreNamed) {
  MemoryStorage storage;
  put(storage, "tree/k/t.txt", "x");
  put(storage, "tree/k/t.cls", "1");
  put(storage, "tree/k/t.source.cls", "2");
  const Status status = scan(storage, scan_options({{"", "tree"}})).status();
  EXPECT_EQ(status.code(), Code::invalid);
  EXPECT_NE(status.text().find("tree/k/t."), std::string::npos) << status.text();
}

}  // namespace
}  // namespace packtrain
