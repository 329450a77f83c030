#include <gtest/gtest.h>

#include <algorithm>

#include "base/little_endian.h"
#include "format/lmdb_records.h"
#include "io/test_storage.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

const Format& lmdb() { return *find_format("lmdb"); }

using Values = std::vector<std::pair<std::string, std::string>>;  // keys and values, as the writer names them

Status write_values(Storage& storage, const std::string& path, const Values& values,
                    const std::string& compress = "auto") {
  WriteSpec spec;
  spec.compress = compress;
  PACKTRAIN_ASSIGN(writer, lmdb().create(storage, path, spec));
  for (const auto& [name, value] : values) {
    const size_t dot = name.rfind('.');
    const SampleToWrite::Field field{std::string_view(name).substr(dot + 1), as_bytes(value)};
    PACKTRAIN_TRY(
        writer->add({.key = std::string_view(name).substr(0, dot), .fields = std::span(&field, 1)}));
  }
  return writer->finish();
}

// A node of a page made by hand.
struct MadeNode {
  std::string key, value;
  uint16_t flags = 0;
  uint64_t child = 0;        // of a branch, or of a big value
  uint32_t value_bytes = 0;  // of a big value
};

std::string make_page(uint32_t page_bytes, uint64_t number, uint16_t kind,
                      const std::vector<MadeNode>& nodes) {
  std::string page(page_bytes, '\0');
  size_t lower = kLmdbPageHeadBytes, upper = page_bytes;
  for (const MadeNode& node : nodes) {
    std::string bytes(kLmdbNodeHeadBytes, '\0');
    const bool big = (node.flags & kLmdbBigValue) != 0;
    const uint64_t low = kind == kLmdbBranch
                             ? node.child
                             : (big ? node.value_bytes : node.value.size()) | uint64_t{node.flags} << 32;
    store_le(bytes.data(), low);
    store_le(bytes.data() + 6, static_cast<uint16_t>(node.key.size()));
    bytes += node.key;
    if (big) {
      bytes.resize(bytes.size() + 8);
      store_le(bytes.data() + bytes.size() - 8, node.child);
    } else {
      bytes += node.value;
    }
    upper -= bytes.size() + bytes.size() % 2;
    page.replace(upper, bytes.size(), bytes);
    store_le(page.data() + lower, static_cast<uint16_t>(upper));
    lower += kLmdbSlotBytes;
  }
  store_le(page.data(), number);
  store_le(page.data() + 10, kind);
  store_le(page.data() + 12, static_cast<uint16_t>(lower));
  store_le(page.data() + 14, static_cast<uint16_t>(upper));
  return page;
}

std::string make_meta(const LmdbMeta& meta, uint64_t number) {
  std::string page(meta.page_bytes, '\0');
  write_lmdb_meta(meta, number, reinterpret_cast<std::byte*>(page.data()));
  return page;
}

// A file with these pages behind the meta pages.
std::string make_file(LmdbTree tree, const std::vector<std::string>& pages, uint32_t page_bytes = 4096) {
  LmdbMeta meta{.page_bytes = page_bytes, .tree = tree, .last_page = pages.size() + 1, .transaction = 0};
  std::string bytes = make_meta(meta, 0);
  meta.transaction = 1;
  bytes += make_meta(meta, 1);
  for (const std::string& page : pages) bytes += page;
  return bytes;
}

std::string make_leaf_file(const std::vector<MadeNode>& nodes, uint32_t page_bytes = 4096,
                           uint16_t flags = 0) {
  return make_file({.flags = flags, .depth = 1, .leaf_pages = 1, .entries = nodes.size(), .root = 2},
                   {make_page(page_bytes, 2, kLmdbLeaf, nodes)}, page_bytes);
}

class LmdbTest : public testing::Test {
 protected:
  Result<std::shared_ptr<Dataset>> open(const std::string& path, const IndexOptions& options = {}) {
    IndexBuilder builder;
    PACKTRAIN_TRY(lmdb().index(storage_, path, options, builder));
    return Dataset::from_memory(storage_, "", builder.finish());
  }
  Result<std::shared_ptr<Dataset>> open_bytes(const std::string& bytes,
                                              std::vector<Damage>* damage = nullptr) {
    put(storage_, "x.lmdb", bytes);
    IndexOptions options;
    options.recover = damage != nullptr;
    options.damage = damage;
    return open("x.lmdb", options);
  }
  // The only field of a sample.
  static std::string bytes_of(const Dataset& dataset, const std::string& key) {
    auto found = dataset.find(key);
    SampleBytes got;
    if (!found.ok() || !dataset.read(*found, got).ok() || got.fields.size() != 1) return "nothing";
    return std::string(as_text(got.fields[0].bytes));
  }
  void expect_corrupt(const std::string& bytes, std::string_view reason) {
    auto dataset = open_bytes(bytes);
    ASSERT_FALSE(dataset.ok()) << reason;
    EXPECT_EQ(dataset.status().code(), Code::corrupt) << dataset.status().text();
    EXPECT_NE(dataset.status().text().find(reason), std::string::npos) << dataset.status().text();
  }
  void expect_unsupported(const std::string& bytes, std::string_view reason) {
    auto dataset = open_bytes(bytes);
    ASSERT_FALSE(dataset.ok()) << reason;
    EXPECT_EQ(dataset.status().code(), Code::unsupported) << dataset.status().text();
    EXPECT_NE(dataset.status().text().find(reason), std::string::npos) << dataset.status().text();
  }

  MemoryStorage storage_;
};

TEST_F(LmdbTest, FolderAndFileAreTheSameContainer) {
  ASSERT_TRUE(storage_.make_folder("/set/train.lmdb").ok());
  ASSERT_TRUE(write_values(storage_, "/set/train.lmdb/data.mdb", {{"a.txt", "one"}, {"b.txt", "two"}}).ok());
  for (const char* path : {"/set/train.lmdb", "/set/train.lmdb/", "/set/train.lmdb/data.mdb"}) {
    EXPECT_TRUE(lmdb().recognise(storage_, path)) << path;
    auto dataset = open(path);
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    EXPECT_EQ((*dataset)->manifest().shards.at(0).path, "/set/train.lmdb/data.mdb");
    EXPECT_EQ(bytes_of(**dataset, "b"), "two");
  }
  IndexOptions options;
  options.shard_path = "/set/./train.lmdb";
  auto dataset = open("/set/train.lmdb", options);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->manifest().shards.at(0).path, "/set/./train.lmdb/data.mdb");
  EXPECT_FALSE(lmdb().recognise(storage_, "/set"));
}

TEST_F(LmdbTest, ValuesLieInTheirLeafOrInPagesOfTheirOwn) {
  Values values;
  for (const size_t bytes : {0, 1, 2023, 2024, 2025, 2026, 4079, 4080, 4081, 8176, 100'000, 5'000'000}) {
    values.emplace_back("k" + std::to_string(bytes) + ".bin",
                        std::string(bytes, static_cast<char>('a' + bytes % 26)));
  }
  ASSERT_TRUE(write_values(storage_, "x.lmdb", values).ok());
  auto dataset = open("x.lmdb");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  ASSERT_EQ((*dataset)->samples(), values.size());
  for (const auto& [name, value] : values) {
    EXPECT_TRUE(bytes_of(**dataset, name.substr(0, name.size() - 4)) == value) << name;
    auto found = (*dataset)->find(name.substr(0, name.size() - 4));
    EXPECT_TRUE((*dataset)->locate(*found, 0).plain);
  }
}

TEST_F(LmdbTest, TreeGrowsByAsManyLevelsAsItNeeds) {
  // Keys of 500 bytes: eight to a page, in leaves and in branches; every number of pages up to some hundred,
  // so that each way in which a level may end comes up.
  for (size_t entries = 1; entries < 700; entries += entries < 150 ? 1 : 37) {
    Values values;
    for (size_t i = 0; i < entries; ++i) {
      std::string key = std::to_string(i * 7919 % 1'000'003);
      values.emplace_back(key + std::string(496 - key.size(), 'k') + ".txt", std::to_string(i));
    }
    MemoryStorage storage;
    ASSERT_TRUE(write_values(storage, "x", values).ok());
    const std::string bytes = get(storage, "x");
    for (size_t page = 2 * 4096; page < bytes.size(); page += 4096) {
      if (load_le<uint16_t>(bytes.data() + page + 10) != kLmdbBranch) continue;
      EXPECT_GE(load_le<uint16_t>(bytes.data() + page + 12), kLmdbPageHeadBytes + 2 * kLmdbSlotBytes)
          << entries << " entries: a branch with a single child";
    }
    IndexBuilder builder;
    const Status status = lmdb().index(storage, "x", {}, builder);
    ASSERT_TRUE(status.ok()) << entries << ": " << status.text();
    ASSERT_EQ(builder.samples(), entries);
  }
}

TEST_F(LmdbTest, IndexReadsTheTreeAndNoValuesOfTheirOwnPages) {
  Values values;
  for (int i = 0; i < 500; ++i) {
    values.emplace_back(std::to_string(i) + ".cls", std::to_string(i));
    values.emplace_back(std::to_string(i) + ".jpg", std::string(20'000, 'x'));
  }
  ASSERT_TRUE(write_values(storage_, "x.lmdb", values).ok());
  CountingStorage counted(storage_);
  IndexBuilder builder;
  ASSERT_TRUE(lmdb().index(counted, "x.lmdb", {}, builder).ok());
  EXPECT_LT(counted.bytes_read(), 100'000u);
  EXPECT_LT(counted.reads_done(), 6u);
}

TEST_F(LmdbTest, SameSamplesGiveTheSameBytes) {
  const Values values = {
      {"b.jpg", std::string(9000, 'b')}, {"a.jpg", std::string(5000, 'a')}, {"a.cls", "1"}};
  ASSERT_TRUE(write_values(storage_, "1", values).ok());
  ASSERT_TRUE(write_values(storage_, "2", values).ok());
  EXPECT_TRUE(get(storage_, "1") == get(storage_, "2"));
}

TEST_F(LmdbTest, WhatLmdbCannotHoldIsRefusedByName) {
  const std::string longest(507, 'k');
  EXPECT_TRUE(write_values(storage_, "1", {{longest + ".txt", "x"}}).ok());
  Status status = write_values(storage_, "2", {{longest + "k.txt", "x"}});
  EXPECT_EQ(status.code(), Code::invalid);
  EXPECT_NE(status.text().find("kkkk"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("511"), std::string::npos) << status.text();
  status = write_values(storage_, "3", {{"a.txt", "x"}, {"b.txt", "y"}, {"a.txt", "z"}});
  EXPECT_EQ(status.code(), Code::invalid);
  EXPECT_NE(status.text().find("a.txt"), std::string::npos) << status.text();
  EXPECT_EQ(write_values(storage_, "4", {}, "deflate").code(), Code::unsupported);
  EXPECT_EQ(visible(storage_, "").size(), 1u) << "nothing is left of what failed";
}

TEST_F(LmdbTest, KeysWithoutExtensionAreSamplesNamedByTheirContent) {
  const std::string jpeg = "\xff\xd8\xff\xe0 and so on";
  auto dataset =
      open_bytes(make_leaf_file({{"0a1b", jpeg}, {"0a1c", jpeg}, {"__len__", "2"}, {"info.json", "{}"}}));
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  ASSERT_EQ((*dataset)->samples(), 3u);
  EXPECT_EQ(bytes_of(**dataset, "0a1c"), jpeg);
  EXPECT_EQ(bytes_of(**dataset, "info"), "{}");
  EXPECT_NE((*dataset)->manifest().field_id("jpg"), UINT32_MAX);

  dataset = open_bytes(make_leaf_file({{"a", jpeg}, {"b", "something else"}}));
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->manifest().fields.at(0).name, "data") << "the values do not agree on what they are";
}

TEST_F(LmdbTest, FewKeysWithoutExtensionAreLeftOutAndCounted) {
  put(storage_, "x.lmdb", make_leaf_file({{"a.txt", "1"}, {"b.txt", "2"}, {"length", "2"}}));
  MembersLeftOut left_out;
  IndexOptions options;
  options.without_extension = &left_out;
  auto dataset = open("x.lmdb", options);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->samples(), 2u);
  EXPECT_EQ(left_out.names, std::vector<std::string>{"length"});
}

TEST_F(LmdbTest, KeysThatAreNoTextAreShownInHexadecimalDigitsOrAsNumbers) {
  auto dataset =
      open_bytes(make_leaf_file({{std::string("\0\1\xfe", 3), "x"}, {"a\xff.", "y"}, {"größe", "z"}}));
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ(bytes_of(**dataset, "0001fe"), "x");
  EXPECT_EQ(bytes_of(**dataset, "61ff2e"), "y");
  EXPECT_EQ(bytes_of(**dataset, "größe"), "z");
  dataset = open_bytes(make_leaf_file({{std::string("\x39\x30\0\0", 4), "x"}}, 4096, kLmdbIntegerKeys));
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ(bytes_of(**dataset, "12345"), "x");
}

TEST_F(LmdbTest, PagesMayHaveOtherSizes) {
  for (uint32_t bytes = kLmdbSmallestPage; bytes <= kLmdbLargestPage; bytes *= 2) {
    auto dataset = open_bytes(make_leaf_file({{"a.txt", "1"}, {"b.cls", "2"}}, bytes));
    ASSERT_TRUE(dataset.ok()) << bytes << ": " << dataset.status().text();
    EXPECT_EQ((*dataset)->samples(), 2u);
    EXPECT_EQ(bytes_of(**dataset, "b"), "2");
  }
}

TEST_F(LmdbTest, NewerOfTheTwoStatesCounts) {
  LmdbMeta meta{.page_bytes = 4096, .last_page = 3};
  const std::string older = make_page(4096, 2, kLmdbLeaf, {{"old.txt", "1"}});
  const std::string newer = make_page(4096, 3, kLmdbLeaf, {{"new.txt", "1"}});
  for (const bool first_is_newer : {false, true}) {
    std::string bytes;
    for (const uint64_t number : {0, 1}) {
      const bool is_newer = (number == 0) == first_is_newer;
      meta.transaction = is_newer ? 8 : 7;
      meta.tree = {.depth = 1, .leaf_pages = 1, .entries = 1, .root = is_newer ? uint64_t{3} : uint64_t{2}};
      bytes += make_meta(meta, number);
    }
    auto dataset = open_bytes(bytes + older + newer);
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    EXPECT_EQ(std::string(*(*dataset)->key(0)), "new");
  }
}

TEST_F(LmdbTest, DamagedMetaPageIsAnErrorAndTheOtherOneServesForRecovery) {
  for (const size_t at : {16, 4096 + 16}) {
    std::string bytes = make_leaf_file({{"a.txt", "1"}});
    bytes[at] = 'x';
    expect_corrupt(bytes, "--recover");
    std::vector<Damage> damage;
    auto dataset = open_bytes(bytes, &damage);
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    EXPECT_EQ((*dataset)->samples(), 1u);
    EXPECT_EQ(damage.size(), 1u);
  }
}

TEST_F(LmdbTest, DamagedLeafLosesItsOwnEntriesOnly) {
  Values values;
  for (int i = 0; i < 1000; ++i) values.emplace_back(std::to_string(i) + ".txt", std::string(100, 'x'));
  ASSERT_TRUE(write_values(storage_, "y.lmdb", values).ok());
  std::string bytes = get(storage_, "y.lmdb");
  bytes[3 * 4096 + 10] = 7;
  expect_corrupt(bytes, "@ 12288");
  std::vector<Damage> damage;
  auto dataset = open_bytes(bytes, &damage);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_GT((*dataset)->samples(), 950u);
  EXPECT_LT((*dataset)->samples(), 1000u);
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_EQ(damage[0].offset, 12288u);
}

TEST_F(LmdbTest, TreesThatLeadInCirclesAreDamage) {
  const auto branch = [](uint64_t number, std::vector<uint64_t> children) {
    std::vector<MadeNode> nodes;
    for (uint64_t child : children) nodes.push_back({.key = "k", .child = child});
    return make_page(4096, number, kLmdbBranch, nodes);
  };
  const std::string leaf = make_page(4096, 4, kLmdbLeaf, {{"a.txt", "1"}});
  expect_corrupt(make_file({.depth = 3, .entries = 1, .root = 2}, {branch(2, {3, 2}), branch(3, {4}), leaf}),
                 "page 2 is used twice");
  expect_corrupt(make_file({.depth = 3, .entries = 1, .root = 2}, {branch(2, {3, 3}), branch(3, {4}), leaf}),
                 "page 3 is used twice");
  expect_corrupt(make_file({.depth = 33, .entries = 1, .root = 2}, {branch(2, {3}), branch(3, {4}), leaf}),
                 "depth");
  expect_corrupt(make_file({.depth = 2, .entries = 1, .root = 2}, {branch(2, {3}), branch(3, {4}), leaf}),
                 "leaf");
  expect_corrupt(make_file({.depth = 2, .entries = 1, .root = 2}, {branch(2, {1})}), "outside");
  expect_corrupt(make_file({.depth = 2, .entries = 1, .root = 2}, {branch(2, {uint64_t{1} << 47})}),
                 "outside");
  expect_corrupt(make_file({.depth = 0, .entries = 1}, {leaf}), "are recorded");
  auto sound =
      open_bytes(make_file({.depth = 3, .entries = 1, .root = 2}, {branch(2, {3}), branch(3, {4}), leaf}));
  EXPECT_TRUE(sound.ok()) << sound.status().text();
}

TEST_F(LmdbTest, ValuesThatShareBytesAreDamage) {
  const auto big = [](std::string key, uint64_t page, uint32_t bytes) {
    return MadeNode{.key = std::move(key), .flags = kLmdbBigValue, .child = page, .value_bytes = bytes};
  };
  const LmdbTree tree{.depth = 1, .entries = 2, .root = 2};
  const auto file = [&](const std::vector<MadeNode>& nodes) {
    return make_file(tree, {make_page(4096, 2, kLmdbLeaf, nodes), std::string(3 * 4096, 'v')});
  };
  const std::string padding(4096, 'v');
  auto sound =
      open_bytes(make_file(tree, {make_page(4096, 2, kLmdbLeaf, {big("a.jpg", 3, 8176), big("b.jpg", 5, 9)}),
                                  padding, padding, padding}));
  EXPECT_TRUE(sound.ok()) << sound.status().text();
  expect_corrupt(file({big("a.jpg", 3, 8176), big("b.jpg", 4, 9)}), "outside");  // the last page is 3
  expect_corrupt(make_file(tree, {make_page(4096, 2, kLmdbLeaf, {big("a.jpg", 3, 8176), big("b.jpg", 4, 9)}),
                                  padding, padding}),
                 "page 4 is used twice");
  expect_corrupt(make_file(tree, {make_page(4096, 2, kLmdbLeaf, {big("a.jpg", 2, 9), big("b.jpg", 4, 9)}),
                                  padding, padding}),
                 "page 2 is used twice");
  std::string many =
      make_leaf_file({{"a.txt", std::string(1000, 'a')}, {"b.txt", std::string(2000, 'b')}, {"c.txt", "c"}});
  // All three nodes at the place of the second: more than the page has.
  for (const size_t slot : {0, 2}) std::copy_n(&many[8192 + 16 + 2], 2, &many[8192 + 16 + 2 * slot]);
  expect_corrupt(many, "overlap");
}

TEST_F(LmdbTest, OnlyDatabaseMayHaveAName) {
  std::string record(48, '\0');
  store_le<uint16_t>(record.data() + 6, 1);
  store_le<uint64_t>(record.data() + 32, 1);
  store_le<uint64_t>(record.data() + 40, 3);
  const std::string leaf = make_page(4096, 3, kLmdbLeaf, {{"a.txt", "1"}});
  const MadeNode named{.key = "images", .value = record, .flags = kLmdbTree};
  const auto file = [&](std::vector<MadeNode> nodes) {
    const LmdbTree tree{.depth = 1, .entries = nodes.size(), .root = 2};
    return make_file(tree, {make_page(4096, 2, kLmdbLeaf, nodes), leaf});
  };
  auto dataset = open_bytes(file({named}));
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ(bytes_of(**dataset, "a"), "1");
  expect_unsupported(file({{"b.txt", "2"}, named}), "images");
  MadeNode itself = named;
  store_le<uint64_t>(itself.value.data() + 40, 2);
  expect_corrupt(file({itself}), "used twice");
}

TEST(LmdbFileTest, ShortValuesAreAtHandOnceTheyWereRead) {
  const TemporaryFolder folder;
  Storage& storage = posix_storage();
  const std::string path = folder / "a.lmdb";
  const std::string large(64 << 10, 'l');
  ASSERT_TRUE(write_values(storage, path, {{"a.txt", std::string(3000, 'a')}, {"b.bin", large}}).ok());
  OpenOptions without_cache;
  without_cache.cache = false;
  auto dataset = open_dataset(storage, path, without_cache);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  const auto field = [&](uint64_t sample, std::string_view name) {
    return (*dataset)->locate(sample, (*dataset)->manifest().field_id(name));
  };
  EXPECT_FALSE((*dataset)->is_at_hand(field(0, "txt"))) << "it may have to come from a disk";
  for (const auto& [sample, name] : {std::pair{0, "txt"}, {1, "bin"}}) {
    std::vector<std::byte> bytes(field(sample, name).length);
    ASSERT_TRUE((*dataset)->read_plain(field(sample, name), bytes).ok());
  }
  EXPECT_TRUE((*dataset)->is_at_hand(field(0, "txt")));
  EXPECT_FALSE((*dataset)->is_at_hand(field(1, "bin")))
      << "its copy takes longer than a thread may be held up";
  FieldLocation outside = field(0, "txt");
  outside.offset = uint64_t{1} << 40;
  EXPECT_FALSE((*dataset)->is_at_hand(outside));
}

TEST_F(LmdbTest, WhatIsNotReadSaysSo) {
  expect_unsupported(make_leaf_file({{.key = "a", .value = "x", .flags = kLmdbDuplicates}}), "dupsort");
  std::string other = make_leaf_file({{"a.txt", "1"}});
  other[20] = other[4096 + 20] = 2;
  expect_unsupported(other, "version 2");
  std::string narrow = make_leaf_file({{"a.txt", "1"}});
  for (const size_t page : {0, 4096}) narrow.replace(page, 200, narrow.substr(page + 4, 196));
  EXPECT_TRUE(lmdb().recognise(storage_, "x.lmdb"));
  expect_unsupported(narrow, "32 bits");
}

}  // namespace
}  // namespace packtrain
