#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <regex>
#include <set>

#include "base/hash.h"
#include "pack/catalog.h"
#include "packtrain/storage.h"

namespace packtrain {
namespace {

// A catalog of one-field samples with these stems.
Catalog catalog_of(const std::vector<std::string>& stems, const std::string& field = "jpg") {
  Catalog catalog;
  catalog.fields = {field};
  catalog.splits = {"train"};
  catalog.roots = {{"root", ""}};
  for (const std::string& stem : stems) {
    CatalogSample sample;
    sample.first_cell = catalog.cells.size();
    sample.stem = catalog.keep(stem);
    catalog.samples.push_back(sample);
    Cell cell;
    cell.path = catalog.keep(stem + "." + field);
    catalog.cells.push_back(cell);
  }
  return catalog;
}

using Names = std::vector<std::string>;

Names keys_of(Catalog catalog) {
  Names names;
  make_keys(catalog);
  for (const CatalogSample& sample : catalog.samples) names.emplace_back(catalog.name(sample.stem));
  return names;
}

std::string hash_of(std::string_view original, uint64_t attempt = 0) {
  return "-" + hex64(xxh64(as_bytes(original), attempt));
}

TEST(NamingTest, SafeNamesAreKept) {
  const Names names = {"a", "cat/dog-1", "A_b/c/0001"};
  EXPECT_EQ(keys_of(catalog_of(names)), names);
}

TEST(NamingTest, OtherBytesBecomeUnderscores) {
  EXPECT_EQ(keys_of(catalog_of({"a b.c", "x\ny", "/abs//p", "-o", "dir/-x", "\xff\xfe", ".hid/.den",
                                "__meta__/x", "a/__x", "..", "."})),
            (Names{"a_b_c", "x_y", "abs/p", "_o", "dir/_x", "_", "_hid/_den", "_meta__/x", "a/_x",
                   "_" + hash_of(".."), "_" + hash_of(".")}));
}

TEST(NamingTest, WhoeverNeedsNoChangeKeepsItsName) {
  EXPECT_EQ(keys_of(catalog_of({"a b", "a_b", "a.b"})),
            (Names{"a_b" + hash_of("a b"), "a_b", "a_b" + hash_of("a.b")}));
  EXPECT_EQ(keys_of(catalog_of({"a b", "a.b"})), (Names{"a_b", "a_b" + hash_of("a.b")}));
}

TEST(NamingTest, EqualNamesAndTakenHashesStillEnd) {
  const std::string taken = "a" + hash_of("a");
  EXPECT_EQ(keys_of(catalog_of({"a", "a", "a", taken})),
            (Names{"a", "a" + hash_of("a", 1), "a" + hash_of("a", 2), taken}));
}

TEST(NamingTest, LongNamesAreCutToFitATarHeader) {
  const std::string long_name = "folder/" + std::string(300, 'x');
  for (const std::string& field : {std::string("jpg"), std::string(40, 'f')}) {
    const Names keys =
        keys_of(catalog_of({long_name, long_name + "y", std::string(99 - field.size(), 'z')}, field));
    for (const std::string& key : keys) EXPECT_LE(key.size() + 1 + field.size(), 100U);
    EXPECT_TRUE(keys[0].ends_with(hash_of(long_name)));
    EXPECT_NE(keys[0], keys[1]);
    EXPECT_EQ(keys[2], std::string(99 - field.size(), 'z'));
  }
}

TEST(NamingTest, EveryKeyIsUniqueAndFitForEveryReader) {
  Names stems;
  uint64_t state = 1;
  const std::string alphabet("ab_-/. \n\xff", 9);
  for (int i = 0; i < 20000; ++i) {
    std::string stem;
    for (int length = 1 + i % 6; length > 0; --length) {
      state = state * 6364136223846793005 + 1442695040888963407;
      stem += alphabet[(state >> 33) % alphabet.size()];
    }
    stems.push_back(stem);
  }
  const Catalog catalog = catalog_of(stems);
  const Names keys = keys_of(catalog);
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), stems.size());
  EXPECT_EQ(keys_of(catalog), keys);
  const std::regex fit("[A-Za-z0-9](?:[A-Za-z0-9_-]*)|_(?:[A-Za-z0-9-][A-Za-z0-9_-]*)?");
  for (const std::string& key : keys) {
    for (size_t at = 0; at <= key.size();) {
      const size_t end = std::min(key.find('/', at), key.size());
      const std::string part = key.substr(at, end - at);
      ASSERT_TRUE(std::regex_match(part, fit)) << key;
      at = end + 1;
    }
  }
}

TEST(NamingTest, RecordedPathsAreSafeToExtract) {
  Catalog catalog = catalog_of({"x"});
  const auto recorded = [&](const std::string& path, Origin origin = Origin::file) {
    Cell cell;
    cell.origin = origin;
    cell.path = catalog.keep(path);
    return recorded_path(catalog, cell);
  };
  EXPECT_EQ(recorded("a b/\xff\n.jpg"), "a b/\xff\n.jpg");
  EXPECT_EQ(recorded("/etc/passwd"), "etc/passwd");
  EXPECT_EQ(recorded("../../x"), "_parent/_parent/x");
  EXPECT_EQ(recorded("a/./b//c/"), "a/b/c");
  EXPECT_EQ(recorded(std::string("a\0b", 3)), "a_b");
  EXPECT_EQ(recorded("/"), "_");
  EXPECT_EQ(recorded(""), "");
  EXPECT_EQ(recorded("x", Origin::text), "");
  catalog.roots[0].prefix = "train";
  EXPECT_EQ(recorded("../x"), "train/_parent/x");
}

}  // namespace
}  // namespace packtrain
