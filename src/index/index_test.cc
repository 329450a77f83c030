#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/hash.h"
#include "index/npz.h"
#include "packtrain/codec.h"
#include "packtrain/index.h"

namespace packtrain {
namespace {

// A folder of its own for each test, gone afterwards.
class IndexTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "packtrain-index-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void put(const std::string& name, std::string_view text) {
    WriteOptions options;
    options.replace = true;
    options.durable = false;
    ASSERT_TRUE(write_whole(posix_storage(), folder_ + "/" + name, as_bytes(text), options).ok());
  }
  void publish(IndexBuilder::Finished finished) {
    finished.manifest.files = {
        {"index.npz", finished.index_npz.size(), xxh128_hex(as_bytes(finished.index_npz))},
        {"names.npz", finished.names_npz.size(), xxh128_hex(as_bytes(finished.names_npz))}};
    put("index.npz", finished.index_npz);
    put("names.npz", finished.names_npz);
    put("manifest.json", finished.manifest.encode());
  }
  Result<std::shared_ptr<Dataset>> open() { return Dataset::open(posix_storage(), folder_); }

  std::string folder_;
};

constexpr std::string_view kShard = "0123456789abcdefghij";

// Three samples of two fields, the second one without "txt".
IndexBuilder three_samples() {
  IndexBuilder builder;
  const uint32_t shard = builder.add_shard({.path = "a.tar", .format = "webdataset", .bytes = kShard.size()});
  const auto add = [&](std::string_view name, uint64_t offset, uint64_t length) {
    builder.add_field(name, shard, offset, length, CheckKind::crc32c,
                      crc32c(as_bytes(kShard.substr(offset, length))), "was/" + std::string(name));
  };
  builder.begin_split("train");
  builder.begin_sample("one");
  add("txt", 0, 3);
  add("cls", 3, 1);
  builder.set_label(3);
  EXPECT_TRUE(builder.end_sample().ok());
  builder.begin_sample("two");
  add("cls", 4, 0);
  EXPECT_TRUE(builder.end_sample().ok());
  builder.begin_split("val");
  builder.begin_sample("three");
  add("cls", 5, 5);
  add("txt", 12, 8);
  builder.set_image_size(640, 480);
  EXPECT_TRUE(builder.end_sample().ok());
  builder.set_block_checks(shard, {crc32c(as_bytes(kShard))});
  builder.set_classes({"a", "b", "c", "d"});
  return builder;
}

TEST_F(IndexTest, RowsGiveBackEverySampleInOneRead) {
  put("a.tar", kShard);
  publish(three_samples().finish());
  auto dataset = open();
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->manifest().form, "rows");
  EXPECT_EQ((*dataset)->samples(), 3u);
  EXPECT_EQ((*dataset)->label(0), 3);
  EXPECT_EQ((*dataset)->label(1), kNoLabel);
  EXPECT_EQ((*dataset)->manifest().splits[1].name, "val");
  EXPECT_EQ((*dataset)->manifest().splits[1].first, 2u);
  EXPECT_EQ((*dataset)->image_size(2), (std::pair<uint32_t, uint32_t>(640, 480)));
  EXPECT_EQ((*dataset)->image_size(0), (std::pair<uint32_t, uint32_t>(0, 0)));

  SampleBytes bytes;
  ASSERT_TRUE((*dataset)->read(2, bytes).ok());
  ASSERT_EQ(bytes.fields.size(), 2u);
  EXPECT_EQ((*dataset)->manifest().fields[bytes.fields[0].field].name, "cls");
  EXPECT_EQ(as_text(bytes.fields[0].bytes), "56789");
  EXPECT_EQ(as_text(bytes.fields[1].bytes), "cdefghij");
  ASSERT_TRUE((*dataset)->read(1, bytes).ok());
  ASSERT_EQ(bytes.fields.size(), 1u);
  EXPECT_EQ(bytes.fields[0].bytes.size(), 0u);
  std::vector<std::byte> out;
  EXPECT_EQ((*dataset)->read(1, 1, out).code(), Code::not_found);
  EXPECT_EQ((*dataset)->read(3, 0, out).code(), Code::not_found);
}

// With few samples, and with so many that another thread sorts them.
TEST_F(IndexTest, KeysAreSortedByHashAndThoseOfOneHashByNumber) {
  for (const uint64_t samples : {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{4095}, uint64_t{20'000}}) {
    IndexBuilder builder;
    std::vector<std::pair<uint64_t, uint64_t>> expected;
    for (uint64_t i = 0; i < samples; ++i) {
      const std::string key = "key " + std::to_string(i % 3 == 0 ? 0 : i);  // a third of them is one key
      builder.begin_sample(key);
      ASSERT_TRUE(builder.end_sample().ok());
      expected.emplace_back(xxh64(as_bytes(key)), i);
    }
    std::sort(expected.begin(), expected.end());
    const IndexBuilder::Finished finished = builder.finish();
    const auto columns = read_npz(as_bytes(finished.names_npz));
    ASSERT_TRUE(columns.ok());
    const auto hash = column_values<uint64_t>(*columns, "lookup.hash", samples);
    const auto sample = column_values<uint64_t>(*columns, "lookup.sample", samples);
    ASSERT_TRUE(hash.ok() && sample.ok());
    for (uint64_t i = 0; i < samples; ++i) {
      ASSERT_EQ((*hash)[i], expected[i].first) << i << " of " << samples;
      ASSERT_EQ((*sample)[i], expected[i].second) << i << " of " << samples;
    }
  }
}

TEST_F(IndexTest, KeysAndPathsAreFoundBothWays) {
  put("a.tar", kShard);
  publish(three_samples().finish());
  auto dataset = open();
  ASSERT_TRUE(dataset.ok());
  EXPECT_EQ(*(*dataset)->key(1), "two");
  EXPECT_EQ(*(*dataset)->find("three"), 2u);
  EXPECT_EQ((*dataset)->find("four").status().code(), Code::not_found);
  EXPECT_EQ(*(*dataset)->path(0, 1), "was/txt");
  EXPECT_EQ(*(*dataset)->path(1, 1), "");
}

TEST_F(IndexTest, EveryOneOfManyKeysIsFoundAndNoOther) {
  for (const uint64_t samples : {uint64_t{1}, uint64_t{2}, uint64_t{9}, uint64_t{20'000}}) {
    IndexBuilder builder;
    for (uint64_t i = 0; i < samples; ++i) {
      builder.begin_sample("key " + std::to_string(i));
      ASSERT_TRUE(builder.end_sample().ok());
    }
    publish(builder.finish());
    auto dataset = open();
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    for (uint64_t i = 0; i < samples; ++i) {
      const Result<uint64_t> found = (*dataset)->find("key " + std::to_string(i));
      ASSERT_TRUE(found.ok()) << i << " of " << samples;
      ASSERT_EQ(*found, i);
      ASSERT_EQ((*dataset)->find("no key " + std::to_string(i)).status().code(), Code::not_found);
    }
  }
}

TEST_F(IndexTest, ManyReadsArriveInTheOrderAsked) {
  put("a.tar", kShard);
  publish(three_samples().finish());
  auto dataset = open();
  ASSERT_TRUE(dataset.ok());
  const std::vector<uint64_t> ids = {2, 0, 1, 1, 9, 2};
  std::vector<std::string> got;
  ASSERT_TRUE((*dataset)
                  ->read_many(ids, true,
                              [&](size_t position, const Status& status, const SampleBytes& bytes) {
                                EXPECT_EQ(position, got.size());
                                got.push_back(status.ok() ? std::string(as_text(bytes.fields[0].bytes))
                                                          : std::string(code_name(status.code())));
                                return true;
                              })
                  .ok());
  EXPECT_EQ(got, (std::vector<std::string>{"56789", "3", "", "", "not_found", "56789"}));
}

TEST_F(IndexTest, ChangedPayloadIsNoticed) {
  std::string shard(kShard);
  shard[6] ^= 1;
  put("a.tar", shard);
  publish(three_samples().finish());
  auto dataset = open();
  ASSERT_TRUE(dataset.ok());
  SampleBytes bytes;
  const Status status = (*dataset)->read(2, bytes);
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_NE(status.text().find("a.tar @ 5"), std::string::npos) << status.text();
  EXPECT_TRUE((*dataset)->read(2, bytes, false).ok());
}

TEST_F(IndexTest, ShardOfAnotherSizeIsRefused) {
  put("a.tar", std::string(kShard) + "x");
  publish(three_samples().finish());
  auto dataset = open();
  ASSERT_TRUE(dataset.ok());
  SampleBytes bytes;
  EXPECT_EQ((*dataset)->read(0, bytes).code(), Code::corrupt);
}

TEST_F(IndexTest, IndexOfAnotherDatasetIsRefused) {
  put("a.tar", kShard);
  publish(three_samples().finish());
  IndexBuilder other = three_samples();
  other.set_label(7);
  put("index.npz", other.finish().index_npz);
  auto dataset = open();
  ASSERT_FALSE(dataset.ok());
  EXPECT_EQ(dataset.status().code(), Code::corrupt);
  EXPECT_NE(dataset.status().text().find("does not belong"), std::string::npos);
}

TEST_F(IndexTest, NamesOfAnotherDatasetAreRefused) {
  put("a.tar", kShard);
  publish(three_samples().finish());
  const auto expect_refused = [&](std::string_view word) {
    auto dataset = open();  // names are opened when they are asked for
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    for (const Status& status :
         {(*dataset)->key(0).status(), (*dataset)->path(0, 0).status(), (*dataset)->find("one").status()}) {
      EXPECT_EQ(status.code(), Code::corrupt);
      EXPECT_NE(status.text().find("names.npz"), std::string::npos) << status.text();
      EXPECT_NE(status.text().find(word), std::string::npos) << status.text();
    }
    SampleBytes bytes;
    EXPECT_TRUE((*dataset)->read(0, bytes).ok());
  };
  std::string names = read_whole(posix_storage(), folder_ + "/names.npz").value();
  const size_t key = names.find("onetwothree");
  ASSERT_NE(key, names.npos);
  // As another dataset of as many samples and bytes would have it.
  IndexBuilder other;
  const uint32_t shard = other.add_shard({.path = "a.tar", .format = "webdataset", .bytes = kShard.size()});
  for (const std::string sample : {"eno", "owt", "eerht"}) {
    other.begin_sample(sample);
    other.add_field("cls", shard, 3, 1, CheckKind::none, 0, "was/cls");
    if (sample != "owt") other.add_field("txt", shard, 0, 3, CheckKind::none, 0, "was/txt");
    ASSERT_TRUE(other.end_sample().ok());
  }
  const std::string foreign = other.finish().names_npz;
  ASSERT_EQ(foreign.size(), names.size());
  put("names.npz", foreign);
  expect_refused("does not belong");
  put("names.npz", names + "x");
  expect_refused("bytes instead of");
}

TEST_F(IndexTest, ADatasetThatDoesNotBindItsNamesIsRead) {
  put("a.tar", kShard);
  IndexBuilder::Finished finished = three_samples().finish();
  finished.manifest.names_directory_hash.clear();
  EXPECT_EQ(finished.manifest.encode().find("names_directory_hash"), std::string::npos);
  publish(std::move(finished));
  auto dataset = open();
  ASSERT_TRUE(dataset.ok());
  EXPECT_EQ(*(*dataset)->key(1), "two");
}

TEST_F(IndexTest, EveryFlippedBitOfTheManifestIsNoticed) {
  std::string text = three_samples().finish().manifest.encode();
  ASSERT_TRUE(Manifest::decode(text).ok());
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(Manifest::decode(text).ok()) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
  }
  for (size_t cut = 0; cut < text.size(); ++cut)
    EXPECT_FALSE(Manifest::decode(std::string_view(text).substr(0, cut)).ok());
}

TEST_F(IndexTest, ASplitWhoseShardsWouldLieElsewhereIsRefused) {
  for (const char* name : {"../x", "a/b", "", ".x", "-x", "x\n"}) {
    Manifest manifest = three_samples().finish().manifest;
    manifest.splits.front().name = name;
    EXPECT_EQ(Manifest::decode(manifest.encode()).status().code(), Code::corrupt) << name;
  }
}

TEST_F(IndexTest, ManifestOfANewerVersionIsRefusedWithAdvice) {
  Manifest manifest = three_samples().finish().manifest;
  manifest.version = 2;
  const auto decoded = Manifest::decode(manifest.encode());
  EXPECT_EQ(decoded.status().code(), Code::unsupported);
}

TEST_F(IndexTest, TheCheckOfABlockMayBeOfWhatIsStored) {
  const std::string text = "some text of one block";
  const auto stored = encode({{"fletcher32"}}, as_bytes(text));
  ASSERT_TRUE(stored.ok());
  for (const uint32_t wrong : {0U, 1U}) {
    put("a.bin", as_text(*stored));
    IndexBuilder builder;
    const uint32_t shard = builder.add_shard({.path = "a.bin", .format = "test", .bytes = stored->size()});
    const Pipeline pipeline{{"fletcher32"}, {std::string(kStoredCheck)}};
    const Slice slice{.block = builder.add_block({.shard = shard,
                                                  .pipeline = builder.add_pipeline(pipeline),
                                                  .check_kind = CheckKind::crc32,
                                                  .stored = stored->size(),
                                                  .raw = text.size(),
                                                  .check = crc32(*stored) ^ wrong}),
                      .start = 5,
                      .length = 4};
    builder.begin_sample("s");
    builder.add_field("txt", std::span(&slice, 1), "");
    ASSERT_TRUE(builder.end_sample().ok());
    publish(builder.finish());
    auto dataset = open();
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    std::vector<std::byte> bytes;
    EXPECT_EQ((*dataset)->read(0, 0, bytes, true).code(), wrong != 0 ? Code::corrupt : Code::ok);
    EXPECT_TRUE((*dataset)->read(0, 0, bytes, false).ok());
    EXPECT_EQ(as_text(bytes), "text");
  }
}

TEST_F(IndexTest, GeneralFormHoldsSharedCompressedBlocksAndSeveralFiles) {
  const std::string text = "one shared block for many samples";
  const auto stored = encode({{"deflate", 0}}, as_bytes(text));
  if (stored.status().code() == Code::unsupported) GTEST_SKIP() << stored.status().message();
  ASSERT_TRUE(stored.ok());
  put("a.bin", as_text(*stored));
  put("b.bin", "plain");
  IndexBuilder builder;
  const uint32_t a = builder.add_shard({.path = "a.bin", .format = "test", .bytes = stored->size()});
  const uint32_t b = builder.add_shard({.path = "b.bin", .format = "test", .bytes = 5});
  const uint64_t block = builder.add_block({.shard = a,
                                            .pipeline = builder.add_pipeline({{"deflate", 0}}),
                                            .check_kind = CheckKind::crc32,
                                            .stored = stored->size(),
                                            .raw = text.size(),
                                            .check = crc32(as_bytes(text))});
  for (uint64_t i = 0; i < text.size() - 1; ++i) {
    builder.begin_sample("s" + std::to_string(i));
    const Slice slices[] = {{block, i, 1}, {block, i + 1, 1}};
    builder.add_field("two", slices, "");
    builder.add_field("plain", b, 0, 5, CheckKind::none, 0, "b");
    ASSERT_TRUE(builder.end_sample().ok());
  }
  publish(builder.finish());
  auto dataset = open();
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->manifest().form, "general");
  SampleBytes bytes;
  for (uint64_t i = 0; i < text.size() - 1; ++i) {
    ASSERT_TRUE((*dataset)->read(i, bytes).ok());
    ASSERT_EQ(bytes.fields.size(), 2u);
    EXPECT_EQ(as_text(bytes.fields[0].bytes), "plain");
    EXPECT_EQ(as_text(bytes.fields[1].bytes), text.substr(i, 2));
  }
  EXPECT_EQ(*(*dataset)->path(3, 0), "b");
}

TEST_F(IndexTest, ASampleOfFourGibibytesMakesTheIndexGeneral) {
  constexpr uint64_t kLarge = (uint64_t{1} << 32) + 5;
  for (const uint64_t length : {(uint64_t{1} << 32) - 2, (uint64_t{1} << 32) - 1, kLarge}) {
    IndexBuilder builder;
    const uint32_t shard = builder.add_shard({.path = "a.tar", .format = "webdataset", .bytes = 3 * kLarge});
    builder.begin_sample("small");
    builder.add_field("bin", shard, 512, 7, CheckKind::crc32c, 1, "small.bin");
    ASSERT_TRUE(builder.end_sample().ok());
    builder.begin_sample("large");
    builder.add_field("bin", shard, kLarge + 1, length, CheckKind::crc32c, 2, "large.bin");
    ASSERT_TRUE(builder.end_sample().ok());
    const auto dataset = Dataset::from_memory(posix_storage(), folder_, builder.finish());
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    EXPECT_EQ((*dataset)->manifest().form, length < UINT32_MAX ? "rows" : "general");
    const FieldLocation small = (*dataset)->locate(0, 0), large = (*dataset)->locate(1, 0);
    EXPECT_EQ(small.offset, 512u);
    EXPECT_EQ(small.length, 7u);
    EXPECT_TRUE(large.plain);
    EXPECT_EQ(large.offset, kLarge + 1);
    EXPECT_EQ(large.length, length);
    EXPECT_EQ(large.check, 2u);
    EXPECT_EQ(*(*dataset)->path(1, 0), "large.bin");
  }
}

TEST_F(IndexTest, FieldNamedTwiceIsCorrupt) {
  IndexBuilder builder;
  builder.add_shard({.path = "a", .bytes = 10});
  builder.begin_sample("k");
  builder.add_field("jpg", 0, 0, 1, CheckKind::none, 0, "");
  builder.add_field("jpg", 0, 1, 1, CheckKind::none, 0, "");
  const Status status = builder.end_sample();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_NE(status.text().find("jpg"), std::string::npos);
}

TEST_F(IndexTest, EmptyDatasetOpens) {
  publish(IndexBuilder().finish());
  auto dataset = open();
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->samples(), 0u);
  EXPECT_EQ((*dataset)->find("x").status().code(), Code::not_found);
}

TEST(NpzTest, ColumnsStandAtMultiplesOf64AndChecksFindEveryFlip) {
  NpzWriter writer;
  writer.add("a", std::vector<uint64_t>{1, 2, 3});
  writer.add("b", std::string_view("bytes"));
  writer.add("empty", std::vector<uint32_t>{});
  std::string file = writer.finish();
  auto columns = read_npz(as_bytes(file));
  ASSERT_TRUE(columns.ok());
  ASSERT_EQ(columns->size(), 3u);
  for (const Column& column : *columns) {
    EXPECT_EQ(static_cast<size_t>(column.data.data() - as_bytes(file).data()) % 64, 0u) << column.name;
  }
  EXPECT_EQ((*column_values<uint64_t>(*columns, "a", 3))[2], 3u);
  EXPECT_FALSE(column_values<uint32_t>(*columns, "a", 3).ok());
  EXPECT_FALSE(column_values<uint64_t>(*columns, "a", 4).ok());
  EXPECT_TRUE(damaged_columns(as_bytes(file), *columns).empty());
  file[(*columns)[0].member_offset + 130] ^= 4;
  EXPECT_EQ(damaged_columns(as_bytes(file), *columns), std::vector<std::string>{"a"});
}

TEST(NpzTest, NoTruncationAndNoFlipCrashesTheReader) {
  NpzWriter writer;
  writer.add("a", std::vector<uint64_t>{1, 2, 3});
  writer.add("b", std::string_view("bytes"));
  const std::string file = writer.finish();
  for (size_t cut = 0; cut < file.size(); ++cut) {
    const std::string part = file.substr(0, cut);
    EXPECT_FALSE(read_npz(as_bytes(part)).ok());
  }
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto columns = read_npz(as_bytes(flipped));
    if (columns.ok()) damaged_columns(as_bytes(flipped), *columns);
  }
}

TEST_F(IndexTest, BlocksThatAreNotStoredHoldTheirFillValue) {
  put("a.bin", "");
  IndexBuilder builder;
  const uint32_t shard = builder.add_shard({.path = "a.bin", .format = "test", .bytes = 0});
  const uint16_t fill = builder.add_pipeline(fill_pipeline(std::string("\0\x01\xff", 3)));
  builder.begin_sample("s");
  const Slice slices[] = {{builder.add_block({.shard = shard, .pipeline = fill, .raw = 9}), 3, 4},
                          {builder.add_block({.shard = shard, .hole = true, .raw = 2}), 0, 2}};
  builder.add_field("x", slices, "");
  ASSERT_TRUE(builder.end_sample().ok());
  publish(builder.finish());
  auto dataset = open();
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  std::vector<std::byte> bytes;
  ASSERT_TRUE((*dataset)->read(0, 0, bytes).ok());
  EXPECT_EQ(as_text(bytes), std::string_view("\0\x01\xff\0\0\0", 6));
  const std::string manifest = (*dataset)->manifest().pipelines[fill][0].value;
  EXPECT_EQ(manifest, std::string("\0\x01\xff", 3));
}

TEST_F(IndexTest, ManifestKeepsWhatArraysAreAndWhatLayBeside) {
  IndexBuilder builder = three_samples();
  builder.add_beside({.path = "../y.npy", .bytes = 7, .mtime_ns = -5});
  builder.add_beside({.path = "/labels.npy", .absent = true});
  Manifest manifest = builder.finish().manifest;
  manifest.fields[0].array = ArrayValue{"<f4", {3, 64}};
  manifest.fields[1].array = ArrayValue{"|u1", {}};
  const auto decoded = Manifest::decode(manifest.encode());
  ASSERT_TRUE(decoded.ok()) << decoded.status().text();
  EXPECT_EQ(decoded->fields[0].array, (ArrayValue{"<f4", {3, 64}}));
  EXPECT_EQ(decoded->fields[0].array->bytes(), 768u);
  EXPECT_EQ(decoded->fields[1].array, (ArrayValue{"|u1", {}}));
  ASSERT_EQ(decoded->beside.size(), 2u);
  EXPECT_EQ(decoded->beside[0].mtime_ns, -5);
  EXPECT_FALSE(decoded->beside[0].absent);
  EXPECT_TRUE(decoded->beside[1].absent);
}

TEST(IndexBuilderTest, AnArrayIsKnownOnlyWhereEveryValueAndContainerAgrees) {
  const auto array_of = [](uint64_t second_length, const char* second_type) {
    IndexBuilder builder;
    const uint32_t shard = builder.add_shard({.path = "a", .bytes = 100});
    builder.set_array("x", {"<f4", {2}});
    builder.begin_sample("1");
    builder.add_field("x", shard, 0, 8, CheckKind::none, 0, "");
    EXPECT_TRUE(builder.end_sample().ok());
    builder.set_array("x", {second_type, {2}});
    builder.begin_sample("2");
    builder.add_field("x", shard, 8, second_length, CheckKind::none, 0, "");
    EXPECT_TRUE(builder.end_sample().ok());
    return builder.finish().manifest.fields[0].array;
  };
  EXPECT_EQ(array_of(8, "<f4"), (ArrayValue{"<f4", {2}}));
  EXPECT_EQ(array_of(8, "<i4"), std::nullopt);
  EXPECT_EQ(array_of(4, "<f4"), std::nullopt);
}

TEST(IndexBuilderTest, AContainerWithoutSplitsJoinsNoSplitOfAnother) {
  IndexBuilder builder;
  builder.add_shard({.path = "a", .bytes = 10});
  const auto add = [&] {
    builder.begin_sample(std::to_string(builder.samples()));
    EXPECT_TRUE(builder.end_sample().ok());
  };
  builder.begin_container();
  add();
  builder.begin_container();
  builder.begin_split("train");
  add();
  builder.begin_split("val");
  builder.begin_container();
  add();
  EXPECT_EQ(builder.splits(), (std::vector<std::string>{"all", "train", "val", "all"}));
  const Manifest manifest = builder.finish().manifest;
  EXPECT_EQ(manifest.splits[0].count, 1u);
  EXPECT_EQ(manifest.splits[2].count, 0u);
  EXPECT_EQ(manifest.splits[3].first, 2u);
}

TEST(IndexBuilderTest, ALengthThatNoContainerHoldsIsRefused) {
  IndexBuilder builder;
  const uint32_t shard = builder.add_shard({.path = "a.tar", .format = "webdataset", .bytes = 1024});
  builder.begin_sample("a");
  builder.add_field("bin", shard, 512, uint64_t{1} << 48, CheckKind::none, 0, "a.bin");
  const Status status = builder.end_sample();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_NE(status.text().find("281474976710656 bytes"), std::string::npos) << status.text();
}

}  // namespace
}  // namespace packtrain
