#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/little_endian.h"
#include "format/parquet_records.h"
#include "io/test_storage.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

const Format& parquet() { return *find_format("parquet"); }

std::string photo(size_t bytes) { return "\xff\xd8\xff\xe0" + std::string(bytes, 'j'); }

// Samples with an image each, and every third without a text if there are texts.
Status write(Storage& storage, const std::string& path, uint64_t samples, bool texts) {
  WriteSpec spec;
  spec.fields = texts ? std::vector<std::string>{"jpg", "txt"} : std::vector<std::string>{"jpg"};
  spec.labels = true;
  PACKTRAIN_ASSIGN(writer, parquet().create(storage, path, spec));
  for (uint64_t i = 0; i < samples; ++i) {
    const std::string key = "k" + std::to_string(i), image = photo(i % 7 * 1000), text = "text of " + key;
    std::vector<SampleToWrite::Field> fields = {{"jpg", as_bytes(image)}};
    if (texts && i % 3 != 0) fields.push_back({"txt", as_bytes(text)});
    const int64_t label = i % 5 == 0 ? kNoLabel : static_cast<int64_t>(i) - 10;
    PACKTRAIN_TRY(writer->add({.key = key, .label = label, .fields = fields}));
  }
  return writer->finish();
}

Result<std::shared_ptr<Dataset>> open_parquet(Storage& storage, const std::string& path,
                                              const IndexOptions& options = {}) {
  IndexBuilder builder;
  PACKTRAIN_TRY(parquet().index(storage, path, options, builder));
  return Dataset::from_memory(storage, "", builder.finish());
}

std::string read_field(const Dataset& dataset, uint64_t sample, std::string_view field) {
  std::vector<std::byte> bytes;
  const Status status = dataset.read(sample, dataset.manifest().field_id(field), bytes);
  return status.ok() ? std::string(as_text(bytes)) : status.text();
}

TEST(ParquetTest, ImagesKeepTheirPathsAndLabelsOverRowGroups) {
  MemoryStorage storage;
  ASSERT_TRUE(write(storage, "x", 2345, false).ok());
  const auto dataset = open_parquet(storage, "x");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  ASSERT_EQ((*dataset)->samples(), 2345u);
  EXPECT_EQ((*dataset)->manifest().form, "rows") << "a sample is one read";
  for (const uint64_t i : {0, 1, 999, 1000, 2344}) {
    EXPECT_EQ(read_field(**dataset, i, "jpg"), photo(i % 7 * 1000));
    EXPECT_EQ(*(*dataset)->path(i, 0), "k" + std::to_string(i) + ".jpg");
    EXPECT_EQ((*dataset)->label(i), i % 5 == 0 ? kNoLabel : static_cast<int64_t>(i) - 10);
  }
}

TEST(ParquetTest, OtherSamplesHaveAColumnForEachFieldAndKeys) {
  MemoryStorage storage;
  ASSERT_TRUE(write(storage, "x", 1500, true).ok());
  const auto dataset = open_parquet(storage, "x");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  for (const uint64_t i : {0, 1, 2, 1001, 1499}) {
    EXPECT_EQ(*(*dataset)->key(i), "k" + std::to_string(i));
    EXPECT_EQ(read_field(**dataset, i, "jpg"), photo(i % 7 * 1000));
    const uint32_t txt = (*dataset)->manifest().field_id("txt");
    EXPECT_EQ((*dataset)->locate(i, txt).present, i % 3 != 0);
    if (i % 3 == 0) continue;
    EXPECT_EQ(read_field(**dataset, i, "txt"), "text of k" + std::to_string(i));
  }
}

TEST(ParquetTest, ADamagedRowGroupIsPassedOverWhenAsked) {
  MemoryStorage storage;
  ASSERT_TRUE(write(storage, "x", 2500, false).ok());
  std::string file = get(storage, "x");
  const auto whole = open_parquet(storage, "x");
  ASSERT_TRUE(whole.ok());
  // The u32 length stands in front of the value.
  const uint64_t value = (*whole)->locate(1001, 0).offset;
  file[value - 1] = '\x7f';
  put(storage, "x", file);
  const Status status = open_parquet(storage, "x").status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_NE(status.text().find("row group 1"), std::string::npos) << status.text();
  std::vector<Damage> damage;
  IndexOptions options;
  options.recover = true;
  options.damage = &damage;
  const auto saved = open_parquet(storage, "x", options);
  ASSERT_TRUE(saved.ok()) << saved.status().text();
  EXPECT_EQ((*saved)->samples(), 1500u);
  EXPECT_EQ(*(*saved)->path(1000, 0), "k2000.jpg");
  EXPECT_EQ(damage.size(), 1u);
}

TEST(ParquetTest, NoByteOfTheFooterLosesRowsInSilence) {
  MemoryStorage storage;
  ASSERT_TRUE(write(storage, "x", 1100, true).ok());
  const std::string file = get(storage, "x");
  const auto footer_bytes = load_le<uint32_t>(file.data() + file.size() - 8);
  size_t refused = 0;
  for (size_t at = file.size() - 8 - footer_bytes; at < file.size() - 8; ++at) {
    for (const int byte : {0, 255, file[at] ^ 1, file[at] ^ 16}) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(byte);
      put(storage, "y", damaged);
      const auto dataset = open_parquet(storage, "y");
      if (!dataset.ok()) {
        ++refused;
        continue;
      }
      EXPECT_EQ((*dataset)->samples(), 1100u) << "byte " << at << " = " << (byte & 255);
    }
  }
  EXPECT_GT(refused, 0u);
}

TEST(ParquetTest, WhatCannotBeWrittenIsRefused) {
  MemoryStorage storage;
  WriteSpec spec;
  spec.fields = {"jpg"};
  spec.compress = "zstd";
  EXPECT_EQ(parquet().create(storage, "x", spec).status().code(), Code::unsupported);
  EXPECT_TRUE(visible(storage, "").empty());
}

TEST(ParquetTest, LevelsComeInRunsAndInBits) {
  std::vector<bool> present;
  // Three times 1; then one group of eight: 0 1 0 1 0 1 0 1, of which five count.
  const std::string levels("\x06\x01\x03\xaa", 4);
  ASSERT_TRUE(parse_parquet_levels(as_bytes(levels), 1, 8, present).ok());
  EXPECT_EQ(present, (std::vector<bool>{true, true, true, false, true, false, true, false}));
  // Two bits a level: 2 1 0 2 and four more.
  present.clear();
  const std::string wide("\x03\x86\x00", 3);
  ASSERT_TRUE(parse_parquet_levels(as_bytes(wide), 2, 4, present).ok());
  EXPECT_EQ(present, (std::vector<bool>{true, false, false, true}));
  for (const std::string& damaged : {std::string(), std::string("\x06", 1), std::string("\x07\xaa", 2),
                                     std::string("\x00\x01", 2), std::string("\x40\x01", 2)}) {
    present.clear();
    EXPECT_EQ(parse_parquet_levels(as_bytes(damaged), 1, 8, present).code(), Code::corrupt);
  }
}

}  // namespace
}  // namespace packtrain
