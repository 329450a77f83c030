#include <algorithm>

#include "pack/scan_test_support.h"

namespace packtrain {
namespace {

using namespace std::string_literals;

// A storage with files a.jpg, b.jpg, sub/c.png in data/.
struct Files : MemoryStorage {
  Files() {
    put(*this, "data/a.jpg", "a");
    put(*this, "data/b.jpg", "bb");
    put(*this, "data/sub/c.png", "ccc");
  }
};

Status failure(Storage& storage, const ScanOptions& options) { return scan(storage, options).status(); }
Status failure(Storage& storage, const std::string& path) {
  return failure(storage, scan_options({{"", path}}));
}

TEST(ListSourceTest, PickledDictAsTheCourseWritesIt) {
  Files storage;
  put(storage, "data/list.pkl",
      "\x80\4}\x94(\x8c\5b.jpg\x94K\x07\x8c\x09sub/c.png\x94M\x0c\2\x8c\7./a.jpg\x94K\7u."s);
  const Catalog catalog = scan_ok(storage, "data/list.pkl");
  EXPECT_EQ(described(catalog), (Lines{
                                    "train/7 b: cls='7' jpg=b.jpg",
                                    "train/524 sub/c: cls='524' png=sub/c.png",
                                    "train/7 a: cls='7' jpg=a.jpg",
                                }));
  EXPECT_TRUE(catalog.classes.empty());
  EXPECT_EQ(catalog.cells[0].size, 2U);
}

TEST(ListSourceTest, PicklesOfPairsAndOfPaths) {
  Files storage;
  put(storage, "data/pairs.pkl",
      "\x80\2]q\0(X\5\0\0\0a.jpgq\1X\3\0\0\0dogq\2\x86X\5\0\0\0b.jpgU\3cat\x86"
      "e."s);
  const Catalog pairs = scan_ok(storage, "data/pairs.pkl");
  EXPECT_EQ(pairs.classes, (Lines{"cat", "dog"}));
  EXPECT_EQ(pairs.samples[0].label, 1);
  put(storage, "data/paths.pkl", "(lp0\nVa.jpg\np1\naVb.jpg\np2\na."s);
  EXPECT_EQ(described(scan_ok(storage, "data/paths.pkl")),
            (Lines{"train/- a: jpg=a.jpg", "train/- b: jpg=b.jpg"}));
}

TEST(ListSourceTest, HostileAndOddPicklesAreErrors) {
  Files storage;
  put(storage, "data/hostile.pkl", "cos\nsystem\n(S'touch /tmp/owned'\ntR.");
  const Status hostile = failure(storage, "data/hostile.pkl");
  EXPECT_EQ(hostile.code(), Code::corrupt);
  EXPECT_NE(hostile.text().find("data/hostile.pkl"), std::string::npos);
  put(storage, "data/odd.pkl", "}(\x8c\5a.jpg](K\1K\2eu.");
  EXPECT_EQ(failure(storage, "data/odd.pkl").code(), Code::unsupported);
  put(storage, "data/number.pkl", "K\1.");
  EXPECT_EQ(failure(storage, "data/number.pkl").code(), Code::unsupported);
  put(storage, "data/keys.pkl", "}(K\1K\2u.");
  EXPECT_EQ(failure(storage, "data/keys.pkl").code(), Code::unsupported);
  put(storage, "data/empty.pkl", "}.");
  EXPECT_EQ(failure(storage, "data/empty.pkl").code(), Code::corrupt);
}

TEST(ListSourceTest, RootMayLieElsewhereAndPathsMayBeAbsolute) {
  Files storage;
  put(storage, "lists/train.csv", "path,label\n/data/a.jpg,1\nsub/c.png,2\n");
  ScanOptions options = scan_options({{"", "lists/train.csv"}});
  options.root = "/data/";
  const Catalog catalog = scan_ok(storage, options);
  EXPECT_EQ(described(catalog),
            (Lines{"train/1 a: cls='1' jpg=a.jpg", "train/2 sub/c: cls='2' png=sub/c.png"}));
  EXPECT_EQ(catalog.cells[0].size, 1U);
  EXPECT_EQ(catalog.roots[0].folder, "/data/");
}

TEST(ListSourceTest, ARootIsGuessedOnlyWhereOneFolderHoldsTheFiles) {
  MemoryStorage storage;
  put(storage, "w/test/1.txt", "test");
  put(storage, "w/train/1.txt", "train");
  put(storage, "w/lists/train.csv", "path,label\n1.txt,0\n");
  const Status several = failure(storage, "w/lists/train.csv");
  EXPECT_EQ(several.code(), Code::invalid);
  for (const char* part : {"w/lists/train.csv", "w/test", "w/train", "--root"})
    EXPECT_NE(several.text().find(part), std::string::npos) << several.text();

  // A path that only one of them has settles it, wherever it stands in the list.
  put(storage, "w/train/2.txt", "train");
  for (const char* folder : {"w/test", "w/train"}) put(storage, std::string(folder) + "/3.txt", "x");
  put(storage, "w/lists/train.csv", "path,label\n1.txt,0\n3.txt,0\n2.txt,0\n");
  const Catalog guessed = scan_ok(storage, "w/lists/train.csv");
  ASSERT_EQ(guessed.roots.size(), 1U);
  EXPECT_EQ(guessed.roots[0].folder, "w/train");
  ASSERT_EQ(guessed.warnings.size(), 1U);
  EXPECT_NE(guessed.warnings[0].find("w/train"), std::string::npos) << guessed.warnings[0];
  EXPECT_NE(guessed.warnings[0].find("--root"), std::string::npos) << guessed.warnings[0];

  // The list's own folder comes first, even if not all is there.
  put(storage, "w/lists/1.txt", "own");
  put(storage, "w/lists/3.txt", "own");
  const Catalog own = scan_ok(storage, "w/lists/train.csv");
  EXPECT_EQ(own.roots[0].folder, "w/lists");
  EXPECT_EQ(own.missing, Lines{"2.txt"});
  EXPECT_TRUE(own.warnings.empty());
}

TEST(ListSourceTest, TwoListsOverOneRootShareItsNames) {
  Files storage;
  put(storage, "data/train.pkl", "}(\x8c\5a.jpgK\1u.");
  put(storage, "data/val.pkl", "}(\x8c\5b.jpgK\1u.");
  const Catalog catalog =
      scan_ok(storage, scan_options({{"train", "data/train.pkl"}, {"val", "data/val.pkl"}}));
  EXPECT_EQ(described(catalog), (Lines{"train/1 a: cls='1' jpg=a.jpg", "val/1 b: cls='1' jpg=b.jpg"}));
  EXPECT_EQ(recorded_path(catalog, catalog.cells[1]), "b.jpg");
}

TEST(ListSourceTest, TablesKeepFurtherColumnsAsJson) {
  Files storage;
  put(storage, "data/list.csv",
      "\xef\xbb\xbf"
      "id,Filename,Class,note\r\n1,a.jpg,dog,\"x, \"\"y\"\"\nz\"\r\n2,b.jpg,cat,\r\n");
  const Catalog catalog = scan_ok(storage, "data/list.csv");
  EXPECT_EQ(catalog.classes, (Lines{"cat", "dog"}));
  EXPECT_EQ(described(catalog),
            (Lines{R"(train/1 a: cls='1' jpg=a.jpg json='{"id": "1", "note": "x, \"y\"\nz"}')",
                   R"(train/0 b: cls='0' jpg=b.jpg json='{"id": "2", "note": ""}')"}));
  put(storage, "data/list.tsv", "file\ttarget\na.jpg\t5\nb.jpg\t\n");
  EXPECT_EQ(described(scan_ok(storage, "data/list.tsv")),
            (Lines{"train/5 a: cls='5' jpg=a.jpg", "train/- b: jpg=b.jpg"}));
}

TEST(ListSourceTest, ColumnsCanBeChosen) {
  Files storage;
  put(storage, "data/list.csv", "path,where,label,kind\nx,a.jpg,1,red\ny,b.jpg,2,blue\n");
  ScanOptions options = scan_options({{"", "data/list.csv"}});
  options.path_column = "where";
  options.label_column = "kind";
  const Catalog catalog = scan_ok(storage, options);
  EXPECT_EQ(catalog.classes, (Lines{"blue", "red"}));
  EXPECT_EQ(described(catalog)[0], R"(train/1 a: cls='1' jpg=a.jpg json='{"path": "x", "label": "1"}')");
  options.label_column = "absent";
  EXPECT_EQ(failure(storage, options).code(), Code::invalid);
  put(storage, "data/list.csv", "a.jpg,1\nb.jpg,2\n");
  EXPECT_NE(failure(storage, "data/list.csv").text().find("first line"), std::string::npos)
      << "it would be lost";
  put(storage, "data/list.csv", "where,kind\nb.jpg,2\n");
  const Status unknown = failure(storage, "data/list.csv");
  EXPECT_EQ(unknown.code(), Code::invalid);
  EXPECT_NE(unknown.text().find("--path-column"), std::string::npos) << unknown.text();
}

TEST(ListSourceTest, DamagedTablesNameTheLine) {
  Files storage;
  for (const char* text :
       {"path,label\na.jpg,1\nb.jpg\n", "path,label\na.jpg,1\n\"b.jpg,2\n", "path,label\na.jpg,1\n,2\n"}) {
    put(storage, "data/list.csv", text);
    const Status status = failure(storage, "data/list.csv");
    EXPECT_EQ(status.code(), Code::corrupt) << text;
    EXPECT_NE(status.text().find("line 3"), std::string::npos) << status.text();
  }
  put(storage, "data/list.csv", "");
  EXPECT_EQ(failure(storage, "data/list.csv").code(), Code::corrupt);
}

TEST(ListSourceTest, JsonListsOfEveryForm) {
  Files storage;
  const Lines labelled = {"train/1 a: cls='1' jpg=a.jpg", "train/2 b: cls='2' jpg=b.jpg"};
  put(storage, "data/l.json", R"({"a.jpg": 1, "b.jpg": 2})");
  EXPECT_EQ(described(scan_ok(storage, "data/l.json")), labelled);
  put(storage, "data/l.json", R"([["a.jpg", 1], ["b.jpg", 2.0]])");
  EXPECT_EQ(described(scan_ok(storage, "data/l.json")), labelled);
  put(storage, "data/l.jsonl", "{\"image\": \"a.jpg\", \"y\": 1}\n\n{\"image\": \"b.jpg\", \"y\": 2}\n");
  EXPECT_EQ(described(scan_ok(storage, "data/l.jsonl")), labelled);
  put(storage, "data/l.json", R"(["a.jpg"])");
  EXPECT_EQ(described(scan_ok(storage, "data/l.json")), Lines{"train/- a: jpg=a.jpg"});
  put(storage, "data/l.json", R"([{"path": "a.jpg", "label": [1, 2], "box": {"x": 1.5}}])");
  EXPECT_EQ(described(scan_ok(storage, "data/l.json")),
            Lines{R"(train/- a: jpg=a.jpg json='{"box": {"x": 1.5}, "label": [1, 2]}')"});
  put(storage, "data/l.json", R"({"a.jpg": {"label": "dog", "w": 3}})");
  EXPECT_EQ(described(scan_ok(storage, "data/l.json")),
            Lines{R"(train/0 a: cls='0' jpg=a.jpg json='{"w": 3}')"});
}

TEST(ListSourceTest, BrokenJsonIsAnError) {
  Files storage;
  put(storage, "data/l.json", "[1");
  EXPECT_EQ(failure(storage, "data/l.json").code(), Code::corrupt);
  put(storage, "data/l.json", "[1]");
  EXPECT_EQ(failure(storage, "data/l.json").code(), Code::corrupt);
  put(storage, "data/l.json", "3");
  EXPECT_EQ(failure(storage, "data/l.json").code(), Code::unsupported);
  put(storage, "data/l.jsonl", "{\"path\": \"a.jpg\"}\n{oops\n");
  EXPECT_NE(failure(storage, "data/l.jsonl").text().find("line 2"), std::string::npos);
}

// The same labels as every kind of list spells them: `texts` for tables, `values` for JSON.
void expect_refused(Storage& storage, const Lines& texts, const Lines& values,
                    std::initializer_list<std::string_view> told) {
  std::string csv = "path,label\n", tsv = "path\tlabel\n", json = "[", lines;
  for (size_t i = 0; i < texts.size(); ++i) {
    csv += "a.jpg," + texts[i] + "\n";
    tsv += "a.jpg\t" + texts[i] + "\n";
    json += std::string(i == 0 ? "" : ",") + "[\"a.jpg\"," + values[i] + "]";
    lines += "{\"path\": \"a.jpg\", \"label\": " + values[i] + "}\n";
  }
  put(storage, "data/l.csv", csv);
  put(storage, "data/l.tsv", tsv);
  put(storage, "data/l.json", json + "]");
  put(storage, "data/l.jsonl", lines);
  for (const char* list : {"data/l.csv", "data/l.tsv", "data/l.json", "data/l.jsonl"}) {
    const Status status = failure(storage, list);
    EXPECT_EQ(status.code(), Code::invalid) << list << ": " << status.text();
    for (const std::string_view part : told)
      EXPECT_NE(status.text().find(part), std::string::npos) << list << ": " << status.text();
  }
}

TEST(ListSourceTest, AStrayWordAmongNumbersIsRefusedInEveryList) {
  Files storage;
  expect_refused(storage, {"0", "1", "2", "n/a"}, {"0", "1", "2", "\"n/a\""}, {"\"n/a\"", "--classes"});
  expect_refused(storage, {"cat", "7", "dog"}, {"\"cat\"", "7", "\"dog\""}, {"\"7\"", "--classes"});
  put(storage, "data/l.csv", "path,label\na.jpg,0\nb.jpg,1\na.jpg,n/a\n");
  EXPECT_NE(failure(storage, "data/l.csv").text().find("line 4"), std::string::npos)
      << failure(storage, "data/l.csv").text();
}

TEST(ListSourceTest, NumbersThatAreNotWholeAreNoLabels) {
  Files storage;
  expect_refused(storage, {"0.143", "0.5"}, {"0.143", "0.5"}, {"0.143", "--label-column none"});
  expect_refused(storage, {"1", "2.5"}, {"1", "2.5"}, {"2.5", "--label-column none"});
  expect_refused(storage, {"-1", "99999999999999999999"}, {"-1", "99999999999999999999"},
                 {"--label-column none"});
  put(storage, "data/l.json", R"([["a.jpg", 1], ["b.jpg", [1, 2]]])");
  EXPECT_EQ(failure(storage, "data/l.json").code(), Code::invalid);
}

TEST(ListSourceTest, ValuesThatAreNoLabelsAreKept) {
  Files storage;
  put(storage, "data/l.csv", "path,label\na.jpg,0.143\n");
  put(storage, "data/l.jsonl", "{\"path\": \"a.jpg\", \"label\": 0.143}\n");
  ScanOptions options = scan_options({{"", "data/l.csv"}});
  options.label_column = "none";
  EXPECT_EQ(described(scan_ok(storage, options)), Lines{R"(train/- a: jpg=a.jpg json='{"label": "0.143"}')"});
  options.sources[0].path = "data/l.jsonl";
  EXPECT_EQ(described(scan_ok(storage, options)), Lines{R"(train/- a: jpg=a.jpg json='{"label": 0.143}')"});
  put(storage, "data/l.json", R"([{"path": "a.jpg", "label": [1, 2]}])");
  const Catalog several = scan_ok(storage, "data/l.json");
  ASSERT_EQ(several.warnings.size(), 1U);
  EXPECT_NE(several.warnings[0].find("entry 0"), std::string::npos) << several.warnings[0];
}

TEST(ListSourceTest, AFileOfClassesMakesEveryLabelAName) {
  Files storage;
  put(storage, "classes", "cat\n3\n0.5\n");
  put(storage, "data/l.csv", "path,label\na.jpg,3\nb.jpg,cat\na.jpg,0.5\n");
  ScanOptions options = scan_options({{"", "data/l.csv"}});
  options.classes_file = "classes";
  const Catalog catalog = scan_ok(storage, options);
  ASSERT_EQ(catalog.samples.size(), 3U);
  EXPECT_EQ(catalog.samples[0].label, 1);
  EXPECT_EQ(catalog.samples[1].label, 0);
  EXPECT_EQ(catalog.samples[2].label, 2);
}

TEST(ListSourceTest, AListWithoutLabelsSaysWhichColumnsItHas) {
  Files storage;
  put(storage, "data/l.csv", "path,species,note\na.jpg,cat,x\n");
  put(storage, "data/l.jsonl", "{\"path\": \"a.jpg\", \"species\": \"cat\"}\n");
  put(storage, "data/m.json", R"({"a.jpg": {"species": "cat"}})");
  put(storage, "data/text.csv", "path,text,species\na.jpg,hello,cat\n");
  for (const char* list : {"data/l.csv", "data/l.jsonl", "data/m.json", "data/text.csv"}) {
    ScanOptions options = scan_options({{"", list}});
    const Catalog catalog = scan_ok(storage, options);
    ASSERT_EQ(catalog.warnings.size(), 1U) << list;
    EXPECT_NE(catalog.warnings[0].find("species"), std::string::npos) << catalog.warnings[0];
    EXPECT_NE(catalog.warnings[0].find("--label-column"), std::string::npos) << catalog.warnings[0];
    options.label_column = "none";
    EXPECT_TRUE(scan_ok(storage, options).warnings.empty()) << list;
    options.label_column = "absent";
    EXPECT_EQ(failure(storage, options).code(), Code::invalid) << list;
  }
  put(storage, "data/paths.csv", "path\na.jpg\n");
  EXPECT_TRUE(scan_ok(storage, "data/paths.csv").warnings.empty());
}

TEST(ListSourceTest, TheLabelMayBeAbsentFromTheFirstObjects) {
  Files storage;
  put(storage, "data/l.jsonl", "{\"path\": \"a.jpg\"}\n{\"path\": \"b.jpg\", \"label\": 4}\n");
  EXPECT_EQ(described(scan_ok(storage, "data/l.jsonl")),
            (Lines{"train/- a: jpg=a.jpg", "train/4 b: cls='4' jpg=b.jpg"}));
}

TEST(ListSourceTest, LabelsBeyondTheClassesAreRefused) {
  Files storage;
  put(storage, "data/l.csv", "path,label\na.jpg,0\nb.jpg,2\n");
  put(storage, "classes", "x\ny\n");
  ScanOptions options = scan_options({{"", "data/l.csv"}});
  options.classes_file = "classes";
  EXPECT_EQ(failure(storage, options).code(), Code::invalid);
  put(storage, "classes", "x\ny\nz\n");
  EXPECT_EQ(scan_ok(storage, options).classes.size(), 3U);
}

TEST(ListSourceTest, NumbersOfOneSourceAndNamesOfAnotherAreNotEquated) {
  Files storage;
  put(storage, "data/numbers.csv", "path,label\na.jpg,0\nb.jpg,1\n");
  put(storage, "data/names.csv", "path,label\nsub/c.png,cow\na.jpg,bee\n");
  put(storage, "tree/bee/x.jpg", "x");
  put(storage, "classes", "ant\nbee\ncow\n");
  for (const std::string other : {"data/names.csv", "tree"}) {
    for (const bool numbers_first : {true, false}) {
      ScanOptions options = numbers_first ? scan_options({{"train", "data/numbers.csv"}, {"val", other}})
                                          : scan_options({{"", other}, {"", "data/numbers.csv"}});
      const Status refused = failure(storage, options);
      EXPECT_EQ(refused.code(), Code::invalid);
      for (const std::string& part : {std::string("data/numbers.csv"), other, std::string("--classes")})
        EXPECT_NE(refused.text().find(part), std::string::npos) << refused.text();
      options.classes_file = "classes";
      const Catalog catalog = scan_ok(storage, options);
      EXPECT_EQ(catalog.classes, (Lines{"ant", "bee", "cow"}));
    }
  }
  // Those that have no labels at all are of either kind.
  put(storage, "data/none.csv", "path\nb.jpg\n");
  EXPECT_EQ(scan_ok(storage, scan_options({{"", "data/none.csv"}, {"", "tree"}})).classes, Lines{"bee"});
}

bool warns(const Catalog& catalog, std::initializer_list<std::string_view> parts) {
  return std::any_of(catalog.warnings.begin(), catalog.warnings.end(), [&](const std::string& warning) {
    return std::all_of(parts.begin(), parts.end(),
                       [&](std::string_view part) { return warning.find(part) != std::string::npos; });
  });
}

TEST(ListSourceTest, FilesNamedMoreThanOnceAreToldOf) {
  Files storage;
  put(storage, "data/l.csv", "path,label\na.jpg,x\nb.jpg,y\n./a.jpg,x\n");
  EXPECT_TRUE(warns(scan_ok(storage, "data/l.csv"), {"1 file", "more than once", "a.jpg"}));
  EXPECT_FALSE(warns(scan_ok(storage, "data/l.csv"), {"contradict"}));
  put(storage, "data/l.csv", "path,label\nb.jpg,x\nb.jpg,x\na.jpg,x\nsub/c.png,z\na.jpg,y\n");
  const Catalog contradicting = scan_ok(storage, "data/l.csv");
  EXPECT_EQ(contradicting.samples.size(), 5U) << "told of, and packed";
  EXPECT_EQ(contradicting.files, 3U + 2U + 1U) << "files, folders and the list: each once";
  EXPECT_TRUE(warns(contradicting, {"2 files", "(a.jpg is one)", "1 file contradict"}));
  EXPECT_FALSE(warns(contradicting, {"several splits"}));
  put(storage, "data/l.csv", "path,label,split\na.jpg,x,train\na.jpg,x,val\n");
  EXPECT_TRUE(warns(scan_ok(storage, "data/l.csv"), {"more than once", "is in several splits"}));
  put(storage, "data/l.csv", "path,label\na.jpg,x\nb.jpg,x\n");
  EXPECT_TRUE(scan_ok(storage, "data/l.csv").warnings.empty());
}

TEST(ListSourceTest, AMemberThatComesTwiceInARowIsRefused) {
  Files storage;
  put(storage, "data/l.jsonl",
      "{\"path\": \"a.jpg\", \"label\": 1}\n"
      "{\"path\": \"b.jpg\", \"label\": 1, \"label\": 2}\n");
  put(storage, "data/rows.json", R"([{"path": "a.jpg", "path": "b.jpg", "label": 1}])");
  put(storage, "data/members.json", R"({"a.jpg": {"label": 1, "note": "x", "note": "y"}})");
  for (const auto& [list, where] : {std::pair("data/l.jsonl", "line 2: has \"label\" more than once"),
                                    std::pair("data/rows.json", "entry 0: has \"path\" more than once"),
                                    std::pair("data/members.json", "a.jpg: has \"note\" more than once")}) {
    const Status status = failure(storage, list);
    EXPECT_EQ(status.code(), Code::corrupt);
    EXPECT_NE(status.text().find(std::string(list) + ": " + where), std::string::npos) << status.text();
  }
}

TEST(ListSourceTest, AColumnOfSplitsMakesSplits) {
  Files storage;
  put(storage, "data/l.csv", "path,label,Split\na.jpg,x,val\nb.jpg,y, test \nsub/c.png,x,val\n");
  put(storage, "data/l.jsonl",
      R"({"path": "a.jpg", "label": "x", "split": "val"})"
      "\n"
      R"({"path": "b.jpg", "label": "y", "split": "test"})"
      "\n"
      R"({"path": "sub/c.png", "label": "x", "split": "val"})");
  put(storage, "data/l.json",
      R"({"a.jpg": {"label": "x", "split": "val"}, "b.jpg": {"label": "y", "split": "test"},
          "sub/c.png": {"label": "x", "split": "val"}})");
  for (const char* list : {"data/l.csv", "data/l.jsonl", "data/l.json"}) {
    const Catalog catalog = scan_ok(storage, list);
    EXPECT_EQ(catalog.splits, (Lines{"val", "test"})) << "no split without samples";
    EXPECT_EQ(described(catalog), (Lines{"val/0 a: cls='0' jpg=a.jpg", "test/1 b: cls='1' jpg=b.jpg",
                                         "val/0 sub/c: cls='0' png=sub/c.png"}));
    EXPECT_TRUE(warns(catalog, {list, "val", "test", "--split-column"}));

    ScanOptions none = scan_options({{"", list}});
    none.split_column = "none";
    EXPECT_EQ(scan_ok(storage, none).splits, Lines{"train"});
    EXPECT_TRUE(scan_ok(storage, none).warnings.empty());
    EXPECT_NE(described(scan_ok(storage, none))[0].find("\"val\""), std::string::npos) << "kept as text";

    const Catalog named = scan_ok(storage, scan_options({{"dev", list}}));
    EXPECT_EQ(named.splits, Lines{"dev"});
    EXPECT_TRUE(warns(named, {list, "not used", "dev"}));
    EXPECT_NE(described(named)[0].find("\"val\""), std::string::npos) << "kept as text";

    ScanOptions absent = scan_options({{"", list}});
    absent.split_column = "fold";
    EXPECT_NE(failure(storage, absent).text().find("fold"), std::string::npos);
  }
  put(storage, "data/fold.csv", "path,label,fold\na.jpg,1,0\nb.jpg,2,1\n");
  ScanOptions fold = scan_options({{"", "data/fold.csv"}});
  EXPECT_EQ(scan_ok(storage, fold).splits, Lines{"train"});
  fold.split_column = "fold";
  EXPECT_EQ(scan_ok(storage, fold).splits, (Lines{"0", "1"}));
  EXPECT_TRUE(scan_ok(storage, fold).warnings.empty());
  fold.split_column = "label";
  EXPECT_EQ(failure(storage, fold).code(), Code::invalid);
}

TEST(ListSourceTest, RowsOfNoSplitOrOfOneThatCannotBeAreRefused) {
  Files storage;
  const std::pair<const char*, const char*> bad[] = {
      {"data/l.csv", "path,split\na.jpg,train\nb.jpg,\n"},
      {"data/l.csv", "path,split\na.jpg,train\nb.jpg,../up\n"},
      {"data/l.jsonl", "{\"path\": \"a.jpg\"}\n{\"path\": \"b.jpg\", \"split\": \"val\"}\n"},
      {"data/l.jsonl", "{\"path\": \"a.jpg\", \"split\": \"val\"}\n\"b.jpg\"\n"},
      {"data/l.jsonl", "{\"path\": \"a.jpg\", \"split\": [1]}\n"},
  };
  for (const auto& [path, text] : bad) {
    put(storage, path, text);
    const Status refused = failure(storage, path);
    EXPECT_EQ(refused.code(), Code::invalid) << text;
    for (const char* part : {path, "line ", "--split-column none"})
      EXPECT_NE(refused.text().find(part), std::string::npos) << refused.text();
  }
}

TEST(ListSourceTest, CaptionsHaveSplitsToo) {
  Files storage;
  put(storage, "data/l.csv", "image,caption,split\na.jpg,one,train\nb.jpg,two,val\na.jpg,three,train\n");
  EXPECT_EQ(described(scan_ok(storage, "data/l.csv")),
            (Lines{"train/- a: jpg=a.jpg json='{\"captions\": [\"one\", \"three\"]}' txt='one\nthree'",
                   R"(val/- b: jpg=b.jpg json='{"captions": ["two"]}' txt='two')"}));
  put(storage, "data/l.csv", "image,caption,split\na.jpg,one,train\na.jpg,two,val\n");
  EXPECT_NE(failure(storage, "data/l.csv").text().find("line 3"), std::string::npos);
}

TEST(ListSourceTest, AFurtherColumnOfFilesIsTold) {
  Files storage;
  put(storage, "data/l.csv", "image,mask,label,note\na.jpg,sub/c.png,1,v1.0\nb.jpg,b.jpg,0,gone.jpg\n");
  const Catalog catalog = scan_ok(storage, "data/l.csv");
  EXPECT_TRUE(warns(catalog, {"\"mask\"", "data/l.csv", "not packed"}));
  EXPECT_EQ(catalog.warnings.size(), 1U);
  put(storage, "data/l.jsonl", "{\"image\": \"a.jpg\", \"mask\": \"/data/b.jpg\", \"label\": 1}\n");
  EXPECT_TRUE(warns(scan_ok(storage, "/data/l.jsonl"), {"\"mask\""}));
}

TEST(ListSourceTest, OfSeveralColumnsOfLabelsTheOneTakenIsTold) {
  Files storage;
  put(storage, "data/l.csv", "filename,class,class_id\na.jpg,pug,7\nb.jpg,corgi,3\n");
  put(storage, "data/l.jsonl", "{\"path\": \"a.jpg\", \"class\": \"pug\", \"class_id\": 7}\n");
  for (const char* list : {"data/l.csv", "data/l.jsonl"}) {
    EXPECT_TRUE(warns(scan_ok(storage, list), {"\"class\"", "class_id", "--label-column"}));
    ScanOptions chosen = scan_options({{"", list}});
    chosen.label_column = "class_id";
    EXPECT_TRUE(scan_ok(storage, chosen).warnings.empty());
  }
}

TEST(ListSourceTest, MissingFilesAreNamedAndLeftOut) {
  TemporaryFolder folder;
  Storage& storage = posix_storage();
  put(storage, folder / "a.jpg", "a");
  const std::string long_name(300, 'x');
  put(storage, folder / "l.csv",
      "path,label\ngone.jpg,dog\na.jpg,cat\n" + long_name + ".jpg,cow\na.jpg/b.jpg,cat\n");
  const Catalog catalog = scan_ok(storage, folder / "l.csv");
  EXPECT_EQ(catalog.missing_count, 3U);
  EXPECT_EQ(catalog.missing, (Lines{"gone.jpg", long_name + ".jpg", "a.jpg/b.jpg"}));
  EXPECT_EQ(described(catalog), Lines{"train/0 a: cls='0' jpg=a.jpg"});
  EXPECT_EQ(catalog.classes, (Lines{"cat", "cow", "dog"}));  // numbers do not depend on what is missing
  EXPECT_EQ(catalog.bytes, 2U);
}

TEST(ListSourceTest, MissingFilesAreAllCountedAndTheFirstNamed) {
  Files storage;
  std::string list = "path,label\n";
  for (int i = 0; i < 1500; ++i) list += "gone" + std::to_string(i) + ".jpg,0\n";
  put(storage, "data/l.csv", list + "a.jpg,1\n");
  put(storage, "data/a.jpg", "a");
  const Catalog catalog = scan_ok(storage, "data/l.csv");
  EXPECT_EQ(catalog.missing_count, 1500U);
  EXPECT_EQ(catalog.missing.size(), 1000U);
}

TEST(ListSourceTest, FilesListedTwiceAreTwoSamples) {
  Files storage;
  put(storage, "data/l.csv", "path\na.jpg\na.jpg\n");
  const Lines keys = key_names(scan_ok(storage, "data/l.csv"));
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0], "a");
  EXPECT_NE(keys[1], "a");
}

TEST(ListSourceTest, WhatIsNoSourceIsSaid) {
  MemoryStorage storage;
  put(storage, "movie.mp4", "....");
  EXPECT_EQ(failure(storage, "movie.mp4").code(), Code::unsupported);
}

}  // namespace
}  // namespace packtrain
