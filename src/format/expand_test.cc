#include <gtest/gtest.h>

#include "io/test_storage.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

using Paths = std::vector<std::string>;

class ExpandTest : public testing::Test {
 protected:
  Paths expand(std::string_view pattern) {
    auto paths = expand_paths(storage_, pattern);
    EXPECT_TRUE(paths.ok()) << paths.status().text();
    return paths.ok() ? *paths : Paths();
  }
  MemoryStorage storage_;
};

TEST_F(ExpandTest, PlainPathStandsForItself) { EXPECT_EQ(expand("a/b.tar"), Paths{"a/b.tar"}); }

TEST_F(ExpandTest, NumericRangesKeepTheirZeros) {
  EXPECT_EQ(expand("t-{000008..000011}.tar"),
            (Paths{"t-000008.tar", "t-000009.tar", "t-000010.tar", "t-000011.tar"}));
  EXPECT_EQ(expand("{8..10}"), (Paths{"8", "9", "10"}));
  EXPECT_EQ(expand("{2..0}"), (Paths{"2", "1", "0"}));
}

TEST_F(ExpandTest, ListsNestAndMultiply) {
  EXPECT_EQ(expand("{a,b}{1,2}"), (Paths{"a1", "a2", "b1", "b2"}));
  EXPECT_EQ(expand("{train-{0..1},val}.tar"), (Paths{"train-0.tar", "train-1.tar", "val.tar"}));
  EXPECT_EQ(expand("x{,y}"), (Paths{"x", "xy"}));
}

TEST_F(ExpandTest, BracesThatAreNoPatternStay) {
  EXPECT_EQ(expand("a{b}c"), Paths{"a{b}c"});
  EXPECT_EQ(expand("a{b"), Paths{"a{b"});
  EXPECT_EQ(expand("{a{1..2}"), (Paths{"{a1", "{a2"}));
}

TEST_F(ExpandTest, DoubleColonJoinsPatterns) {
  EXPECT_EQ(expand("{1..2}.tar::x.tar"), (Paths{"1.tar", "2.tar", "x.tar"}));
}

TEST_F(ExpandTest, GlobsGiveWhatIsThereSorted) {
  for (const char* name : {"d/b-1.tar", "d/a-0.tar", "d/a-1.tar", "d/.hidden.tar", "e/a-0.tar", "d/x.zip"}) {
    put(storage_, name, "");
  }
  EXPECT_EQ(expand("d/*.tar"), (Paths{"d/a-0.tar", "d/a-1.tar", "d/b-1.tar"}));
  EXPECT_EQ(expand("d/a-?.tar"), (Paths{"d/a-0.tar", "d/a-1.tar"}));
  EXPECT_EQ(expand("d/[!a]*[0-9].tar"), Paths{"d/b-1.tar"});
  EXPECT_EQ(expand("*/a-0.tar"), (Paths{"d/a-0.tar", "e/a-0.tar"}));
  EXPECT_EQ(expand("/d/{b,a}-*.tar"), (Paths{"/d/b-1.tar", "/d/a-0.tar", "/d/a-1.tar"}));
  EXPECT_EQ(expand_paths(storage_, "d/*.h5").status().code(), Code::not_found);
}

TEST_F(ExpandTest, ExistingNameIsMeantAsItStands) {
  put(storage_, "odd{1,2}[x].tar", "");
  EXPECT_EQ(expand("odd{1,2}[x].tar"), Paths{"odd{1,2}[x].tar"});
}

TEST_F(ExpandTest, TooManyPathsAreRefusedAtOnce) {
  EXPECT_EQ(expand_paths(storage_, "{0..9999999999}").status().code(), Code::invalid);
  EXPECT_EQ(expand_paths(storage_, "{1..1000}{1..1000}{1..1000}").status().code(), Code::invalid);
  EXPECT_EQ(expand_paths(storage_, "{-9223372036854775808..9223372036854775807}").status().code(),
            Code::invalid);
  EXPECT_EQ(expand_paths(storage_, "").status().code(), Code::invalid);
}

}  // namespace
}  // namespace packtrain
