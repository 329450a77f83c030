#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "base/little_endian.h"
#include "format/arrow_records.h"
#include "io/test_storage.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

struct Row {
  std::string key;
  int64_t label = kNoLabel;
  std::vector<std::pair<std::string, std::string>> fields;
};

const Format& arrow() { return *find_format("arrow"); }

Status write(Storage& storage, const std::string& path, const WriteSpec& spec, const std::vector<Row>& rows) {
  PACKTRAIN_ASSIGN(writer, arrow().create(storage, path, spec));
  for (const Row& row : rows) {
    std::vector<SampleToWrite::Field> fields;
    for (const auto& [name, bytes] : row.fields) fields.push_back({name, as_bytes(bytes)});
    PACKTRAIN_TRY(writer->add({.key = row.key, .label = row.label, .fields = fields}));
  }
  return writer->finish();
}

WriteSpec spec_of(std::vector<std::string> fields, bool labels) {
  WriteSpec spec;
  spec.fields = std::move(fields);
  spec.labels = labels;
  return spec;
}

Result<std::shared_ptr<Dataset>> open(Storage& storage, const std::string& path,
                                      const IndexOptions& options = {}) {
  IndexBuilder builder;
  PACKTRAIN_TRY(arrow().index(storage, path, options, builder));
  return Dataset::from_memory(storage, "", builder.finish());
}

std::string read(const Dataset& dataset, uint64_t sample, std::string_view field) {
  std::vector<std::byte> bytes;
  const Status status = dataset.read(sample, dataset.manifest().field_id(field), bytes);
  return status.ok() ? std::string(as_text(bytes)) : status.text();
}

std::string jpeg(size_t bytes) { return "\xff\xd8\xff\xe0" + std::string(bytes, 'j'); }

// The columns of a file, from its footer.
ArrowSchema schema_of(const std::string& file) {
  const auto bytes = static_cast<size_t>(load_le<int32_t>(file.data() + file.size() - 10));
  const auto footer = parse_arrow_footer(as_bytes(file).subspan(file.size() - 10 - bytes, bytes));
  return *parse_arrow_schema(footer->schema, footer->version);
}

TEST(ArrowTest, ImagesHaveTheLayoutOfTheCourse) {
  MemoryStorage storage;
  ASSERT_TRUE(write(storage, "x", spec_of({"jpg"}, true),
                    {{"a", 3, {{"jpg", jpeg(10)}}}, {"b", 65535, {{"jpg", jpeg(20)}}}})
                  .ok());
  const std::string file = get(storage, "x");
  const ArrowSchema schema = schema_of(file);
  ASSERT_EQ(schema.columns.size(), 2u);
  EXPECT_EQ(schema.columns[0].name, "image_data");
  EXPECT_EQ(schema.columns[0].value.type, ArrowType::binary);
  EXPECT_EQ(schema.columns[1].name, "label");
  EXPECT_EQ(schema.columns[1].value.width, 2u);
  EXPECT_FALSE(schema.columns[1].value.is_signed);
  const auto dataset = open(storage, "x");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->manifest().fields.size(), 1u);
  EXPECT_EQ(read(**dataset, 1, "jpg"), jpeg(20));
  EXPECT_EQ((*dataset)->label(0), 3);
  EXPECT_EQ((*dataset)->label(1), 65535);
  EXPECT_EQ(*(*dataset)->key(1), "000000001");
  EXPECT_EQ((*dataset)->manifest().form, "rows");
}

TEST(ArrowTest, LabelsThatAreNoUint16MakeTheColumnWide) {
  for (const int64_t label : {int64_t{-1}, int64_t{65536}, std::numeric_limits<int64_t>::max()}) {
    MemoryStorage storage;
    ASSERT_TRUE(
        write(storage, "x", spec_of({"png"}, true),
              {{"a", 7, {{"png", "1"}}}, {"b", label, {{"png", "2"}}}, {"c", kNoLabel, {{"png", "3"}}}})
            .ok());
    const std::string file = get(storage, "x");
    EXPECT_EQ(schema_of(file).columns[1].value.width, 8u);
    EXPECT_TRUE(schema_of(file).columns[1].value.is_signed);
    // The schema in front of the batches says the same as the one behind them.
    put(storage, "stream",
        std::string_view(file).substr(8, file.size() - 18 - load_le<uint32_t>(&file[file.size() - 10])));
    for (const char* path : {"x", "stream"}) {
      const auto dataset = open(storage, path);
      ASSERT_TRUE(dataset.ok()) << dataset.status().text();
      const auto labels = (*dataset)->labels();
      EXPECT_EQ(std::vector<int64_t>(labels.begin(), labels.end()),
                (std::vector<int64_t>{7, label, kNoLabel}));
    }
  }
}

TEST(ArrowTest, SmallRowsShareABatchAndAreStillOneReadEach) {
  MemoryStorage storage;
  std::vector<Row> rows;
  for (int i = 0; i < 5000; ++i) {
    const std::string number = std::to_string(i);
    rows.push_back({"k" + number, i, {{"json", "{\"n\": " + number + "}"}, {"txt", "text " + number}}});
  }
  ASSERT_TRUE(write(storage, "x", spec_of({"json", "txt"}, true), rows).ok());
  const uint64_t payload = 5000 * 40;
  EXPECT_LT(get(storage, "x").size(), 3 * payload) << "a batch for each row would take more";
  const auto dataset = open(storage, "x");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  ASSERT_EQ((*dataset)->samples(), 5000u);
  EXPECT_EQ((*dataset)->manifest().form, "rows");
  for (const uint64_t i : {0, 1, 77, 4999}) {
    EXPECT_EQ(*(*dataset)->key(i), rows[i].key);
    EXPECT_EQ(read(**dataset, i, "json"), rows[i].fields[0].second);
    EXPECT_EQ(read(**dataset, i, "txt"), rows[i].fields[1].second);
    EXPECT_EQ((*dataset)->label(i), static_cast<int64_t>(i));
  }
}

TEST(ArrowTest, AFieldThatIsCalledLabelKeepsItsName) {
  MemoryStorage storage;
  ASSERT_TRUE(
      write(storage, "x", spec_of({"label", "txt"}, true), {{"a", 4, {{"label", "words"}, {"txt", "t"}}}})
          .ok());
  const auto dataset = open(storage, "x");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ(read(**dataset, 0, "label"), "words");
  EXPECT_EQ((*dataset)->label(0), 4);
}

TEST(ArrowTest, WhatCannotBeWrittenIsRefused) {
  MemoryStorage storage;
  WriteSpec zstd = spec_of({"jpg"}, false);
  zstd.compress = "zstd";
  EXPECT_EQ(arrow().create(storage, "x", zstd).status().code(), Code::unsupported);
  EXPECT_EQ(arrow().create(storage, "x", spec_of({"__key__", "txt"}, false)).status().code(),
            Code::unsupported);
  EXPECT_EQ(write(storage, "x", spec_of({"jpg"}, false), {{"a", kNoLabel, {{"txt", "t"}}}}).code(),
            Code::invalid);
  EXPECT_TRUE(visible(storage, "").empty());
}

TEST(ArrowTest, AFileWithoutItsFooterIsWalkedOnlyWhenAsked) {
  MemoryStorage storage;
  std::vector<Row> rows;
  for (int i = 0; i < 20; ++i) rows.push_back({"", i, {{"jpg", jpeg(100)}}});
  ASSERT_TRUE(write(storage, "x", spec_of({"jpg"}, true), rows).ok());
  const std::string whole = get(storage, "x");
  const auto full = open(storage, "x");
  ASSERT_TRUE(full.ok());
  std::vector<Damage> damage;
  IndexOptions options;
  options.recover = true;
  options.damage = &damage;
  uint64_t last = 0;
  for (size_t length = 0; length < whole.size(); length += 7) {
    put(storage, "cut", whole.substr(0, length));
    EXPECT_EQ(open(storage, "cut").status().code(), Code::corrupt) << length;
    damage.clear();
    const auto saved = open(storage, "cut", options);
    if (!saved.ok()) {
      EXPECT_EQ(last, 0u) << length << ": " << saved.status().text();
      continue;
    }
    EXPECT_FALSE(damage.empty()) << length;
    EXPECT_GE((*saved)->samples(), last);
    last = (*saved)->samples();
    for (uint64_t i = 0; i < last; ++i) EXPECT_EQ(read(**saved, i, "jpg"), rows[i].fields[0].second);
  }
  EXPECT_EQ(last, rows.size());
}

TEST(ArrowTest, ADamagedBatchIsPassedOverWhenAsked) {
  MemoryStorage storage;
  ASSERT_TRUE(write(storage, "x", spec_of({"jpg"}, false),
                    {{"", kNoLabel, {{"jpg", jpeg(10)}}},
                     {"", kNoLabel, {{"jpg", jpeg(4000)}}},
                     {"", kNoLabel, {{"jpg", jpeg(30)}}}})
                  .ok());
  std::string file = get(storage, "x");
  const auto whole = open(storage, "x");
  ASSERT_TRUE(whole.ok());
  // The offsets of the second batch stand right in front of its value.
  const uint64_t value = (*whole)->locate(1, 0).offset;
  store_le<int32_t>(file.data() + value - 4, 5000);
  put(storage, "x", file);
  const Status status = open(storage, "x").status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_NE(status.text().find("--recover"), std::string::npos) << status.text();
  std::vector<Damage> damage;
  IndexOptions options;
  options.recover = true;
  options.damage = &damage;
  const auto saved = open(storage, "x", options);
  ASSERT_TRUE(saved.ok()) << saved.status().text();
  ASSERT_EQ((*saved)->samples(), 2u);
  EXPECT_EQ(read(**saved, 1, "jpg"), jpeg(30));
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_LT(damage[0].offset, value);
}

TEST(ArrowTest, NoByteOfABatchsHeadLosesRowsInSilence) {
  MemoryStorage storage;
  std::vector<Row> rows;
  for (int i = 0; i < 40; ++i) rows.push_back({std::to_string(i), i, {{"txt", std::to_string(i)}}});
  ASSERT_TRUE(write(storage, "x", spec_of({"txt"}, true), rows).ok());
  const std::string file = get(storage, "x");
  const auto whole = open(storage, "x");
  ASSERT_TRUE(whole.ok()) << whole.status().text();
  ASSERT_EQ((*whole)->samples(), rows.size());
  size_t refused = 0;
  for (size_t at = 8; at < std::min<size_t>((*whole)->locate(0, 0).offset, 2000); ++at) {
    for (const int byte : {0, 5, 255, file[at] ^ 1}) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(byte);
      put(storage, "y", damaged);
      const auto dataset = open(storage, "y");
      if (!dataset.ok()) {
        ++refused;
        continue;
      }
      EXPECT_EQ((*dataset)->samples(), rows.size()) << "byte " << at << " = " << (byte & 255);
    }
  }
  EXPECT_GT(refused, 0u);
}

TEST(ArrowTest, AHundredThousandBatchesCostFewReads) {
  MemoryStorage storage;
  {
    auto writer = arrow().create(storage, "x", spec_of({"jpg"}, true));
    ASSERT_TRUE(writer.ok());
    const std::string image = jpeg(20);
    const SampleToWrite::Field field{"jpg", as_bytes(image)};
    for (int i = 0; i < 100'000; ++i)
      ASSERT_TRUE((*writer)->add({.key = "", .label = i % 1000, .fields = std::span(&field, 1)}).ok());
    ASSERT_TRUE((*writer)->finish().ok());
  }
  CountingStorage counted(storage);
  IndexBuilder builder;
  ASSERT_TRUE(arrow().index(counted, "x", {}, builder).ok());
  EXPECT_EQ(builder.samples(), 100'000u);
  EXPECT_LT(counted.reads_done(), 200u);
}

}  // namespace
}  // namespace packtrain
