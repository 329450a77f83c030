#include "format/grouping.h"

#include <gtest/gtest.h>

#include "io/test_storage.h"

namespace packtrain {
namespace {

std::string split(std::string_view name, Divider divider = Divider::first_dot) {
  auto parts = split_member_name(name, divider);
  return parts ? std::string(parts->key) + "|" + std::string(parts->field) : "-";
}

TEST(MemberNameTest, KeyEndsAtTheFirstDotOfTheLastComponent) {
  EXPECT_EQ(split("a.jpg"), "a|jpg");
  EXPECT_EQ(split("a/b.seg.png"), "a/b|seg.png");
  EXPECT_EQ(split("v1.0/b.png"), "v1.0/b|png");
  EXPECT_EQ(split("./a.jpg"), "./a|jpg");
  EXPECT_EQ(split("a.b.c.jpg", Divider::last_dot), "a.b.c|jpg");
}

TEST(MemberNameTest, WhatHasNoStemOrNoFieldBelongsToNoSample) {
  for (const char* name : {"", "a", "a/b", "v1.0/b", ".a", "a/.b.jpg", "a.", "a/", "__x__", "__x__/a.jpg"}) {
    EXPECT_EQ(split(name), "-") << name;
    EXPECT_EQ(split(name, Divider::last_dot), "-") << name;
  }
  EXPECT_EQ(split("__x/a.jpg"), "__x/a|jpg");
  EXPECT_EQ(split("d/__x__/a.jpg"), "d/__x__/a|jpg");
}

TEST(LabelTest, IsAWholeNumberAndNothingElse) {
  EXPECT_EQ(parse_label(as_bytes("12")), 12);
  EXPECT_EQ(parse_label(as_bytes("-7\r\n")), -7);
  EXPECT_EQ(parse_label(as_bytes(" \t3\n ")), 3);
  EXPECT_EQ(parse_label(as_bytes("9223372036854775807")), INT64_MAX);
  for (const char* text : {"", " ", "a", "1.5", "1.0", "1 2", "9223372036854775808", "0x10", "+-3"}) {
    EXPECT_EQ(parse_label(as_bytes(text)), std::nullopt) << text;
  }
}

class MemberListTest : public testing::Test {
 protected:
  std::shared_ptr<Dataset> dataset(const std::vector<std::string>& names, const IndexOptions& options = {}) {
    MemberList members;
    for (const std::string& name : names) members.add(name, {});
    IndexBuilder builder;
    uint32_t shard = builder.add_shard({.path = "x"});
    status_ = members.add_samples(Adjacency::irrelevant, shard, options, builder);
    if (!status_.ok()) return nullptr;
    auto made = Dataset::from_memory(storage_, "", builder.finish());
    EXPECT_TRUE(made.ok()) << made.status().text();
    return *made;
  }
  MemoryStorage storage_;
  Status status_;
};

TEST_F(MemberListTest, ManyFilesThatBecomeOneSampleAreToldOf) {
  std::vector<std::string> names, notes;
  for (int i = 0; i < 20; ++i) names.push_back("a.b.c" + std::to_string(i) + ".jpg");
  IndexOptions options;
  options.notes = &notes;
  EXPECT_EQ(dataset(names, options)->samples(), 1u);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("end in .jpg are fields of the one sample a"), std::string::npos) << notes[0];
  notes.clear();
  dataset({"a.jpg", "a.seg.png", "a.depth.png", "a.json"}, options);
  EXPECT_TRUE(notes.empty()) << "that is what fields are for";
}

TEST_F(MemberListTest, DotsInStemsAreNotTakenForFields) {
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i) names.push_back("photo." + std::to_string(i) + ".JPG");
  auto made = dataset(names);
  ASSERT_NE(made, nullptr) << status_.text();
  EXPECT_EQ(made->samples(), 1000u);
  ASSERT_EQ(made->manifest().fields.size(), 1u);
  EXPECT_EQ(made->manifest().fields[0].name, "jpg");
}

TEST_F(MemberListTest, EndlessExtensionsAreRefused) {
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i) names.push_back("part." + std::to_string(i));
  EXPECT_EQ(dataset(names), nullptr);
  EXPECT_EQ(status_.code(), Code::unsupported);
}

TEST_F(MemberListTest, FilesWithoutAnExtensionAreCountedAndNamed) {
  MembersLeftOut files;
  IndexOptions options;
  options.without_extension = &files;
  auto made =
      dataset({"utt1", "a/utt2", "a/3.", "a/4.wav", ".hidden", "a/.hidden.txt", "__meta__/x", "a/"}, options);
  ASSERT_NE(made, nullptr) << status_.text();
  EXPECT_EQ(made->samples(), 1u);
  EXPECT_EQ(files.count, 3u);
  EXPECT_EQ(files.names, (std::vector<std::string>{"utt1", "a/utt2", "a/3."}));
  EXPECT_NE(without_extension_in_words(files).find("utt1, a/utt2, a/3."), std::string::npos);
  EXPECT_EQ(without_extension_in_words({}), "");
}

TEST_F(MemberListTest, ClassFoldersNeedOneCommonDepth) {
  EXPECT_EQ(dataset({"a/1.jpg", "b/1.jpg"})->manifest().classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(dataset({"r/s/a/1.jpg", "r/s/b/1.jpg"})->manifest().classes,
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(dataset({"r/ab/1.jpg", "r/ac/1.jpg"})->manifest().classes,
            (std::vector<std::string>{"ab", "ac"}));
  EXPECT_TRUE(dataset({"a/1.jpg", "1.jpg"})->manifest().classes.empty());
  EXPECT_TRUE(dataset({"r/a/1.jpg", "r/b/c/1.jpg"})->manifest().classes.empty());
  EXPECT_TRUE(dataset({"r/a/1.jpg", "r/2.jpg"})->manifest().classes.empty());
  EXPECT_TRUE(dataset({"r/1.jpg", "r/2.jpg"})->manifest().classes.empty());
  EXPECT_TRUE(dataset({"a/1.jpg", "a/1.cls", "b/1.jpg"})->manifest().classes.empty());
}

TEST_F(MemberListTest, GivenClassesNumberTheFolders) {
  std::vector<std::string> classes = {"a", "b", "c"}, folders;
  IndexOptions options;
  options.classes = &classes;
  options.class_folders = &folders;
  auto made = dataset({"r/c/1.jpg", "r/c/2.jpg"}, options);
  EXPECT_EQ(made->label(1), 2);
  EXPECT_EQ(folders, std::vector<std::string>{"c"});
  classes.clear();
  EXPECT_EQ(dataset({"a/1.jpg", "b/1.jpg"}, options)->label(0), kNoLabel);
}

}  // namespace
}  // namespace packtrain
