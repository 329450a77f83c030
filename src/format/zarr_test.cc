#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/little_endian.h"
#include "format/npy_header.h"
#include "format/zip_store.h"
#include "io/test_storage.h"
#include "packtrain/codec.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

template <class T>
std::string raw_numbers(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

const std::string kGroup = R"({"zarr_format": 3, "node_type": "group", "attributes": {}})";
const std::string kLittle = R"({"name": "bytes", "configuration": {"endian": "little"}})";

std::string array_json(const std::string& type, const std::string& shape, const std::string& chunks,
                       const std::string& codecs, const std::string& more = R"("fill_value": 0)") {
  return R"({"zarr_format": 3, "node_type": "array", "shape": )" + shape + R"(, "data_type": ")" + type +
         R"(", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": )" + chunks +
         R"(}}, "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "codecs": [)" +
         codecs + "], " + more + "}";
}

std::string sharding(const std::string& inner, const std::string& codecs,
                     const std::string& location = "end") {
  return R"({"name": "sharding_indexed", "configuration": {"chunk_shape": )" + inner + R"(, "codecs": [)" +
         codecs + R"(], "index_codecs": [)" + kLittle + R"(, {"name": "crc32c"}], "index_location": ")" +
         location + R"("}})";
}

std::string shard_index(const std::vector<uint64_t>& places) {
  std::string index = raw_numbers(places);
  return index + raw_numbers<uint32_t>({crc32c(as_bytes(index))});
}

Result<std::shared_ptr<Dataset>> open_zarr(Storage& storage, std::string_view path) {
  IndexBuilder builder;
  PACKTRAIN_TRY(find_format("zarr")->index(storage, path, {}, builder));
  return Dataset::from_memory(storage, "", builder.finish());
}

std::string zarr_field(const Dataset& dataset, uint64_t sample, std::string_view name) {
  std::vector<std::byte> bytes;
  const Status status = dataset.read(sample, dataset.manifest().field_id(name), bytes);
  return status.ok() ? std::string(as_text(bytes)) : "! " + status.text();
}

TEST(ZarrTest, FolderOfChunksIsRead) {
  MemoryStorage storage;
  put(storage, "/a.zarr/zarr.json", kGroup);
  put(storage, "/a.zarr/x/zarr.json", array_json("uint16", "[5, 2]", "[2, 2]", kLittle));
  put(storage, "/a.zarr/x/c/0/0", raw_numbers<uint16_t>({1, 2, 3, 4}));
  put(storage, "/a.zarr/x/c/2/0", raw_numbers<uint16_t>({9, 10, 0, 0}));  // chunk 1 is missing
  put(storage, "/a.zarr/labels/zarr.json", array_json("int8", "[5]", "[5]", kLittle));
  put(storage, "/a.zarr/labels/c/0", "\x05\x04\x03\x02\xff");
  EXPECT_TRUE(find_format("zarr")->recognise(storage, "/a.zarr"));
  auto dataset = open_zarr(storage, "/a.zarr");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  ASSERT_EQ((*dataset)->samples(), 5u);
  EXPECT_EQ(zarr_field(**dataset, 1, "x"), raw_numbers<uint16_t>({3, 4}));
  EXPECT_EQ(zarr_field(**dataset, 2, "x"), std::string(4, '\0'));
  EXPECT_EQ(zarr_field(**dataset, 4, "x"), raw_numbers<uint16_t>({9, 10}));
  EXPECT_EQ((*dataset)->label(4), -1);
}

TEST(ZarrTest, MissingChunksHoldTheFillValue) {
  struct Case {
    const char *type, *fill;
    std::string item;
  };
  const std::string zeros(8, '\0');
  for (const Case& one : {Case{"uint8", "7", "\x07"},
                          {"int16", "-32767", raw_numbers<int16_t>({-32767})},
                          {"int16", "-32768.0", raw_numbers<int16_t>({-32768})},
                          {"uint64", "18446744073709551615", raw_numbers<uint64_t>({UINT64_MAX})},
                          {"float32", "\"NaN\"", std::string("\x00\x00\xc0\x7f", 4)},
                          {"float32", "\"0x7fc00001\"", std::string("\x01\x00\xc0\x7f", 4)},
                          {"float64", "\"-Infinity\"", std::string("\0\0\0\0\0\0\xf0\xff", 8)},
                          {"float64", "1.5", raw_numbers<double>({1.5})},
                          {"float16", "\"NaN\"", std::string("\x00\x7e", 2)},
                          {"float16", "65504", std::string("\xff\x7b", 2)},
                          {"float16", "-0.333251953125", std::string("\x55\xb5", 2)},
                          {"float16", "5.9604644775390625e-8", std::string("\x01\x00", 2)},
                          {"complex64", "[0.0, \"NaN\"]", std::string("\0\0\0\0\x00\x00\xc0\x7f", 8)},
                          {"bool", "true", "\x01"},
                          {"float64", "0.0", zeros},
                          {"float64", "null", zeros}}) {
    MemoryStorage storage;
    put(storage, "/a/zarr.json", kGroup);
    put(storage, "/a/x/zarr.json",
        array_json(one.type, "[5, 2]", "[2, 2]", kLittle, std::string(R"("fill_value": )") + one.fill));
    const std::string row = one.item + one.item, written(2 * row.size(), 'w');
    put(storage, "/a/x/c/1/0", written);
    auto dataset = open_zarr(storage, "/a");
    ASSERT_TRUE(dataset.ok()) << one.type << ": " << dataset.status().text();
    for (const uint64_t sample : {0, 1, 4})
      EXPECT_EQ(zarr_field(**dataset, sample, "x"), row) << one.type << " " << one.fill << " " << sample;
    EXPECT_EQ(zarr_field(**dataset, 2, "x"), written.substr(0, row.size()));
  }
}

TEST(ZarrTest, LabelsThatWereNeverWrittenAreTheFillValue) {
  MemoryStorage storage;
  put(storage, "/a/zarr.json", kGroup);
  put(storage, "/a/x/zarr.json", array_json("uint8", "[4, 1]", "[1, 1]", kLittle));
  put(storage, "/a/labels/zarr.json", array_json("int32", "[4]", "[2]", kLittle, R"("fill_value": -1)"));
  put(storage, "/a/labels/c/0", raw_numbers<int32_t>({5, 6}));
  auto dataset = open_zarr(storage, "/a");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->label(1), 6);
  EXPECT_EQ((*dataset)->label(2), -1);
}

TEST(ZarrTest, AFillValueThatIsNotUnderstoodIsRefusedWhereItCounts) {
  for (const char* fill : {"\"what\"", "300", "-1", "1.5", "{}", "[1]"}) {
    MemoryStorage storage;
    put(storage, "/a/zarr.json", kGroup);
    put(storage, "/a/x/zarr.json",
        array_json("uint8", "[4]", "[2]", kLittle, std::string(R"("fill_value": )") + fill));
    put(storage, "/a/x/c/0", "ab");
    EXPECT_EQ(open_zarr(storage, "/a").status().code(), Code::unsupported) << fill;
    put(storage, "/a/x/c/1", "cd");
    EXPECT_TRUE(open_zarr(storage, "/a").ok()) << fill;
  }
}

TEST(ZarrTest, ShardsAreReadWhereverTheirIndexLies) {
  for (const char* location : {"end", "start"}) {
    MemoryStorage storage;
    const bool front = std::string_view(location) == "start";
    put(storage, "/a/zarr.json", kGroup);
    put(storage, "/a/x/zarr.json",
        array_json("uint8", "[7, 2]", "[4, 2]", sharding("[1, 2]", kLittle, location)));
    const uint64_t at = front ? 68 : 0, none = UINT64_MAX;
    // Out of order, with a gap, and one missing.
    const std::string index = shard_index({at + 4, 2, at, 2, none, none, at + 7, 2}), data = "c-a-b??dd";
    put(storage, "/a/x/c/0/0", front ? index + data : data + index);
    const std::string second = shard_index({at, 2, at + 2, 2, at + 4, 2, none, none});
    put(storage, "/a/x/c/1/0", front ? second + "eeffgg" : "eeffgg" + second);
    auto dataset = open_zarr(storage, "/a");
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    std::string all;
    for (uint64_t i = 0; i < 7; ++i) all += zarr_field(**dataset, i, "x");
    EXPECT_EQ(all, std::string("b?c-\0\0ddeeffgg", 14));
  }
}

TEST(ZarrTest, DamagedShardIndexIsCorrupt) {
  MemoryStorage storage;
  put(storage, "/a/zarr.json", kGroup);
  put(storage, "/a/x/zarr.json", array_json("uint8", "[2]", "[2]", sharding("[1]", kLittle)));
  const std::string whole = "ab" + shard_index({0, 1, 1, 1});
  for (size_t at = 2; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    put(storage, "/a/x/c/0", flipped);
    EXPECT_EQ(open_zarr(storage, "/a").status().code(), Code::corrupt) << at;
  }
  put(storage, "/a/x/c/0", "ab" + shard_index({0, 1, 30, 50}));
  EXPECT_EQ(open_zarr(storage, "/a").status().code(), Code::corrupt) << "outside of the shard";
  put(storage, "/a/x/c/0", "ab");
  EXPECT_EQ(open_zarr(storage, "/a").status().code(), Code::corrupt) << "too short for an index";
}

TEST(ZarrTest, ChunkOfTheWrongSizeIsCorrupt) {
  MemoryStorage storage;
  put(storage, "/a/zarr.json", kGroup);
  put(storage, "/a/x/zarr.json", array_json("uint16", "[2]", "[2]", kLittle));
  put(storage, "/a/x/c/0", "abc");
  EXPECT_EQ(open_zarr(storage, "/a").status().code(), Code::corrupt);
}

TEST(ZarrTest, VersionTwoIsRead) {
  MemoryStorage storage;
  put(storage, "/a/.zgroup", R"({"zarr_format": 2})");
  put(storage, "/a/x/.zarray", R"({"zarr_format": 2, "shape": [3, 1], "chunks": [2, 1], "dtype": "<u2",
      "compressor": null, "fill_value": null, "order": "C", "filters": null})");
  put(storage, "/a/x/0.0", raw_numbers<uint16_t>({1, 2}));
  put(storage, "/a/x/1.0", raw_numbers<uint16_t>({3, 0}));
  put(storage, "/a/keys/.zarray", R"({"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "|O",
      "compressor": null, "fill_value": "", "order": "C", "filters": [{"id": "vlen-utf8"}]})");
  std::string texts = raw_numbers<uint32_t>({3});
  for (const std::string text : {"one", "", "three"})
    texts += raw_numbers<uint32_t>({static_cast<uint32_t>(text.size())}) + text;
  put(storage, "/a/keys/0", texts);
  auto dataset = open_zarr(storage, "/a");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ(zarr_field(**dataset, 2, "x"), raw_numbers<uint16_t>({3}));
  EXPECT_EQ(*(*dataset)->key(2), "three");
  for (size_t length = 0; length < texts.size(); ++length) {
    put(storage, "/a/keys/0", texts.substr(0, length));
    EXPECT_EQ(open_zarr(storage, "/a").status().code(), Code::corrupt) << length;
  }
}

TEST(ZarrTest, WhatNoRowCanBeReadFromIsASentence) {
  const auto code = [](const std::string& type, const std::string& chunks, const std::string& codecs) {
    MemoryStorage storage;
    put(storage, "/a/zarr.json", kGroup);
    put(storage, "/a/x/zarr.json", array_json(type, "[4, 4]", chunks, codecs));
    return open_zarr(storage, "/a").status().code();
  };
  EXPECT_EQ(code("uint8", "[1, 2]", kLittle), Code::unsupported);
  EXPECT_EQ(code("float7", "[1, 4]", kLittle), Code::unsupported);
  EXPECT_EQ(code("uint16", "[1, 4]", R"({"name": "bytes", "configuration": {"endian": "big"}})"),
            Code::unsupported);
  EXPECT_EQ(code("uint8", "[1, 4]", R"({"name": "transpose", "configuration": {"order": [1, 0]}})"),
            Code::unsupported);
  EXPECT_EQ(code("uint8", "[1, 4]", kLittle + R"(, {"name": "bz2"})"), Code::unsupported);
  EXPECT_EQ(code("uint8", "[0, 4]", kLittle), Code::corrupt);
  EXPECT_EQ(code("uint8", "[1]", kLittle), Code::corrupt);
  EXPECT_EQ(code("uint8", "[1, 4]", ""), Code::corrupt);
}

TEST(ZarrTest, ClaimsBeyondWhatIsStoredAreCorrupt) {
  for (const char* shape : {"[1152921504606846975]", "[4000000000]", "[1000, 1000000000]"}) {
    MemoryStorage storage;
    put(storage, "/a/zarr.json", kGroup);
    const bool two = std::string_view(shape).find(',') != std::string_view::npos;
    put(storage, "/a/x/zarr.json",
        array_json("uint8", shape, two ? "[1, 1000000000]" : "[1000000000000000]", kLittle));
    EXPECT_EQ(open_zarr(storage, "/a").status().code(), Code::corrupt) << shape;
  }
}

TEST(ZarrTest, ShardsThatClaimCountlessChunksAreCorrupt) {
  MemoryStorage storage;
  put(storage, "/a/zarr.json", kGroup);
  put(storage, "/a/x/zarr.json",
      array_json("uint8", "[1000000000000]", "[1000000000000]", sharding("[1]", kLittle)));
  EXPECT_EQ(open_zarr(storage, "/a").status().code(), Code::corrupt);
}

TEST(ZarrTest, ConsolidatedNamesThatLeaveTheFolderAreNotFollowed) {
  MemoryStorage storage;
  put(storage, "/secret/c/0", "ab");
  put(storage, "/a/zarr.json",
      R"({"zarr_format": 3, "node_type": "group", "consolidated_metadata":
      {"metadata": {"../secret": )" +
          array_json("uint8", "[2]", "[2]", kLittle) + "}}}");
  EXPECT_EQ(open_zarr(storage, "/a").status().code(), Code::corrupt);
}

TEST(ZarrTest, StackedRowsAreCompressedOneByOne) {
  for (const char* compress : {"none", "blosc", "zstd"}) {
    MemoryStorage storage;
    WriteSpec spec;
    spec.compress = compress;
    spec.fields = {"npy"};
    auto writer = find_format("zarr")->create(storage, "a.zarr.zip", spec);
    if (writer.status().code() == Code::unsupported) continue;
    ASSERT_TRUE(writer.ok()) << writer.status().text();
    std::vector<std::string> files;
    for (int i = 0; i < 9; ++i) {
      const std::vector<uint64_t> shape = {1000};
      files.push_back(make_npy_header("<f4", shape) + raw_numbers(std::vector<float>(1000, 0.5f * float(i))));
      const SampleToWrite::Field fields[] = {{"npy", as_bytes(files.back())}};
      ASSERT_TRUE((*writer)->add({.key = std::to_string(i), .fields = fields}).ok());
    }
    ASSERT_TRUE((*writer)->finish().ok());
    const size_t bytes = get(storage, "a.zarr.zip").size();
    EXPECT_EQ(bytes > 9 * 4000, std::string_view(compress) == "none") << bytes;
    auto dataset = open_zarr(storage, "a.zarr.zip");
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    for (uint64_t i = 0; i < files.size(); ++i) EXPECT_TRUE(zarr_field(**dataset, i, "npy") == files[i]) << i;
  }
}

TEST(ZarrTest, SamplesThatCrossInnerChunksAreOneStretch) {
  MemoryStorage storage;
  WriteSpec spec;
  spec.fields = {"bin"};
  auto writer = find_format("zarr")->create(storage, "a.zarr.zip", spec);
  ASSERT_TRUE(writer.ok()) << writer.status().text();
  const std::string large(50'000, 'x');
  for (int i = 0; i < 200; ++i) {
    const SampleToWrite::Field fields[] = {{"bin", as_bytes(large)}};
    ASSERT_TRUE((*writer)->add({.key = std::to_string(i), .fields = fields}).ok());
  }
  ASSERT_TRUE((*writer)->finish().ok());
  auto dataset = open_zarr(storage, "a.zarr.zip");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->manifest().form, "rows");
  for (uint64_t i = 0; i < 200; ++i) ASSERT_TRUE(zarr_field(**dataset, i, "bin") == large);
}

TEST(ZarrTest, AFieldMayBeCalledKey) {
  MemoryStorage storage;
  WriteSpec spec;
  spec.fields = {"key", "txt"};
  auto writer = find_format("zarr")->create(storage, "a.zarr.zip", spec);
  ASSERT_TRUE(writer.ok()) << writer.status().text();
  for (int i = 0; i < 3; ++i) {
    const std::string key = "not the key " + std::to_string(10 - i), text = "text " + std::to_string(i);
    const SampleToWrite::Field fields[] = {{"key", as_bytes(key)}, {"txt", as_bytes(text)}};
    ASSERT_TRUE((*writer)->add({.key = "sample/" + std::to_string(i), .fields = fields}).ok());
  }
  ASSERT_TRUE((*writer)->finish().ok());
  auto dataset = open_zarr(storage, "a.zarr.zip");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  ASSERT_EQ((*dataset)->manifest().fields.size(), 2u);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*dataset)->key(i).value(), "sample/" + std::to_string(i));
    EXPECT_EQ(zarr_field(**dataset, i, "key"), "not the key " + std::to_string(10 - i));
    EXPECT_EQ(zarr_field(**dataset, i, "txt"), "text " + std::to_string(i));
  }
}

TEST(ZarrTest, AZipOfAFolderIsRead) {
  MemoryStorage storage;
  auto zip = ZipStore::create(storage, "b.zip", 0, {});
  ASSERT_TRUE(zip.ok());
  ASSERT_TRUE((*zip)->add("a.zarr/zarr.json", as_bytes(kGroup)).ok());
  ASSERT_TRUE((*zip)->add("a.zarr/x/zarr.json", as_bytes(array_json("uint8", "[2]", "[1]", kLittle))).ok());
  ASSERT_TRUE((*zip)->add("a.zarr/x/c/0", as_bytes("a")).ok());
  ASSERT_TRUE((*zip)->add("a.zarr/x/c/1", as_bytes("b")).ok());
  ASSERT_TRUE((*zip)->finish().ok());
  EXPECT_EQ((*recognise_format(storage, "b.zip"))->name, "zarr");
  auto dataset = open_zarr(storage, "b.zip");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ(zarr_field(**dataset, 1, "x"), "b");
}

}  // namespace
}  // namespace packtrain
