#include "pack/stems.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace packtrain {
namespace {

// Samples as "stem: field=name …".
std::vector<std::string> samples_of(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::vector<std::string> samples;
  uint32_t last = UINT32_MAX;
  for (const GroupedName& grouped : group_by_stem(views)) {
    const std::string& name = names[grouped.name];
    if (grouped.sample != last) samples.push_back(name.substr(0, grouped.stem_bytes) + ":");
    last = grouped.sample;
    samples.back() += " " + field_of(name, grouped) + "=" + name;
  }
  return samples;
}
using Samples = std::vector<std::string>;

TEST(StemsTest, FilesWithOneStemAreOneSample) {
  EXPECT_EQ(samples_of({"a.jpg", "a.json", "a.seg.png", "b.jpg"}),
            (Samples{"a: jpg=a.jpg json=a.json seg.png=a.seg.png", "b: jpg=b.jpg"}));
}

TEST(StemsTest, DotsInAStemDoNotDivideIt) {
  EXPECT_EQ(samples_of({"IMG.2019.01.jpg", "IMG.2019.02.jpg"}),
            (Samples{"IMG.2019.01: jpg=IMG.2019.01.jpg", "IMG.2019.02: jpg=IMG.2019.02.jpg"}));
  EXPECT_EQ(samples_of({"IMG.2019.01.jpg", "IMG.2019.01.seg.png"}),
            (Samples{"IMG.2019.01: jpg=IMG.2019.01.jpg seg.png=IMG.2019.01.seg.png"}));
}

TEST(StemsTest, CountersAreNotFields) {
  EXPECT_EQ(samples_of({"a.jpg", "a.1.jpg", "a.2.jpg"}),
            (Samples{"a.1: jpg=a.1.jpg", "a.2: jpg=a.2.jpg", "a: jpg=a.jpg"}));
}

TEST(StemsTest, LongestDottedNameJoinsTheShortestStem) {
  EXPECT_EQ(samples_of({"a.b.jpg", "a.b.seg.png", "a.jpg"}),
            (Samples{"a: b.jpg=a.b.jpg b.seg.png=a.b.seg.png jpg=a.jpg"}));
}

TEST(StemsTest, OfTwoThatWantOneFieldTheOneSpeltSoKeepsIt) {
  EXPECT_EQ(samples_of({"a.JPG", "a.jpg"}), (Samples{"a.JPG: jpg=a.JPG", "a: jpg=a.jpg"}));
  EXPECT_EQ(samples_of({"a.JPG", "a.Jpg"}), (Samples{"a: jpg=a.JPG", "a.Jpg: jpg=a.Jpg"}));
  EXPECT_EQ(samples_of({"a", "a.bin"}), (Samples{"a: bin=a", "a: bin=a.bin"}));
}

TEST(StemsTest, NamesThatDifferInCaseAreDifferentSamples) {
  EXPECT_EQ(samples_of({"A.jpg", "a.jpg"}), (Samples{"A: jpg=A.jpg", "a: jpg=a.jpg"}));
}

TEST(StemsTest, SamplesAreInTheOrderOfTheirFirstName) {
  EXPECT_EQ(samples_of({"a.jpg", "a-1.jpg", "a 2.jpg"}),
            (Samples{"a 2: jpg=a 2.jpg", "a-1: jpg=a-1.jpg", "a: jpg=a.jpg"}));
}

TEST(StemsTest, OddNames) {
  EXPECT_EQ(samples_of({"README"}), (Samples{"README: bin=README"}));
  EXPECT_EQ(samples_of({"a."}), (Samples{"a.: bin=a."}));
  EXPECT_EQ(samples_of({"..."}), (Samples{"...: bin=..."}));
  EXPECT_EQ(samples_of({"a b\n.jpg"}), (Samples{"a b\n: jpg=a b\n.jpg"}));
  EXPECT_EQ(samples_of({"\xff\xfe.jpg"}), (Samples{"\xff\xfe: jpg=\xff\xfe.jpg"}));
  const std::string longest(251, 'x');
  EXPECT_EQ(samples_of({longest + ".jpg"}), (Samples{longest + ": jpg=" + longest + ".jpg"}));
  const std::string no_extension = "a." + std::string(kLongestField + 1, 'x');
  EXPECT_EQ(samples_of({no_extension}), (Samples{no_extension + ": bin=" + no_extension}));
  EXPECT_EQ(samples_of({}), Samples{});
}

TEST(StemsTest, FieldNamesAreOfFewCharacters) {
  EXPECT_EQ(field_name("JPEG"), "jpeg");
  EXPECT_EQ(field_name("my ext\xc3\xa4"), "my_ext__");
  EXPECT_EQ(field_name(""), "bin");
}

TEST(StemsTest, HiddenAndTemporaryNames) {
  for (const char* name : {".DS_Store", "._a.jpg", ".git", "Thumbs.db", "desktop.ini", "__MACOSX"})
    EXPECT_EQ(name_kind(name), NameKind::hidden) << name;
  for (const char* name : {"a.jpg~", "a.tmp", "a.jpg.part", ".nfs0000001"})
    EXPECT_EQ(name_kind(name), NameKind::temporary) << name;
  for (const char* name : {"a.jpg", "a", "_a", "__init__.py", "part", "tmp"})
    EXPECT_EQ(name_kind(name), NameKind::ordinary) << name;
}

}  // namespace
}  // namespace packtrain
