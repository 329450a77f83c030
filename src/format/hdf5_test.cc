#include <gtest/gtest.h>

#include <map>

#include "format/hdf5_records.h"
#include "io/test_storage.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

struct Sample {
  std::string key;
  int64_t label = kNoLabel;
  std::map<std::string, std::string> fields;
  std::string split = {};
};

Status write(Storage& storage, const std::string& format, const std::string& path, WriteSpec spec,
             const std::vector<Sample>& samples) {
  PACKTRAIN_ASSIGN(writer, find_format(format)->create(storage, path, spec));
  for (const Sample& sample : samples) {
    if (!sample.split.empty()) PACKTRAIN_TRY(writer->begin_split(sample.split));
    std::vector<SampleToWrite::Field> fields;
    for (const auto& [name, bytes] : sample.fields) fields.push_back({name, as_bytes(bytes)});
    PACKTRAIN_TRY(writer->add({.key = sample.key, .label = sample.label, .fields = fields}));
  }
  return writer->finish();
}

Result<std::shared_ptr<Dataset>> open_hdf5(Storage& storage, const std::string& path) {
  PACKTRAIN_ASSIGN(format, recognise_format(storage, path));
  IndexBuilder builder;
  PACKTRAIN_TRY(format->index(storage, path, {}, builder));
  return Dataset::from_memory(storage, "", builder.finish());
}

WriteSpec spec_of(std::vector<std::string> fields) {
  WriteSpec spec;
  spec.compress = "none";
  spec.fields = std::move(fields);
  return spec;
}

std::string field(const Dataset& dataset, uint64_t sample, const std::string& name) {
  std::vector<std::byte> bytes;
  const Status status = dataset.read(sample, dataset.manifest().field_id(name), bytes);
  EXPECT_TRUE(status.ok()) << status.text();
  return std::string(as_text(bytes));
}

const std::string kJpeg = "\xff\xd8\xff\xe0";

TEST(Hdf5ChecksumTest, IsTheOneThatTheFormatPrescribes) {
  // Values of Bob Jenkins' own driver, with an initial value of zero.
  EXPECT_EQ(hdf5_checksum(as_bytes("")), 0xdeadbeefu);
  EXPECT_EQ(hdf5_checksum(as_bytes("Four score and seven years ago")), 0x17770551u);
}

TEST(Hdf5VlenTest, SplitsAreGroupsInTheirOrder) {
  MemoryStorage storage;
  ASSERT_TRUE(write(storage, "hdf5-vlen", "x", spec_of({"jpg"}),
                    {{"a", 1, {{"jpg", kJpeg + "a"}}, "val"},
                     {"b", 2, {{"jpg", kJpeg + "b"}}, "train"},
                     {"c", 3, {{"jpg", kJpeg + std::string(100'000, 'c')}}, "train"}})
                  .ok());
  auto dataset = open_hdf5(storage, "x");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  const Manifest& manifest = (*dataset)->manifest();
  EXPECT_EQ(manifest.shards[0].format, "hdf5-vlen");
  ASSERT_EQ(manifest.splits.size(), 2u);
  EXPECT_EQ(manifest.splits[0].name, "val");
  EXPECT_EQ(manifest.splits[1].count, 2u);
  EXPECT_EQ(field(**dataset, 2, "jpg").size(), 100'004u);
  EXPECT_EQ(*(*dataset)->key(2), "000000002") << "the course's layout keeps no keys";
  EXPECT_EQ((*dataset)->label(1), 2);
}

TEST(Hdf5VlenTest, ASplitInPiecesIsRefused) {
  MemoryStorage storage;
  const Status status = write(
      storage, "hdf5-vlen", "x", spec_of({"jpg"}),
      {{"a", 1, {{"jpg", "a"}}, "val"}, {"b", 2, {{"jpg", "b"}}, "train"}, {"c", 3, {{"jpg", "c"}}, "val"}});
  EXPECT_EQ(status.code(), Code::invalid) << status.text();
  EXPECT_TRUE(visible(storage).empty());
}

TEST(Hdf5Test, LabelsOfAllSizesAndNoneAreKept) {
  for (const char* format : {"hdf5", "hdf5-vlen"}) {
    for (const std::vector<int64_t>& labels :
         {std::vector<int64_t>{-32768, 32767}, {0, 32768}, {0, int64_t{1} << 40}, {5, kNoLabel}}) {
      MemoryStorage storage;
      ASSERT_TRUE(write(storage, format, "x", spec_of({"jpg", "txt"}),
                        {{"a", labels[0], {{"jpg", "1"}}}, {"b", labels[1], {{"txt", ""}}}})
                      .ok());
      auto dataset = open_hdf5(storage, "x");
      ASSERT_TRUE(dataset.ok()) << dataset.status().text();
      EXPECT_EQ((*dataset)->label(0), labels[0]) << format;
      EXPECT_EQ((*dataset)->label(1), labels[1]) << format;
      EXPECT_FALSE((*dataset)->locate(0, (*dataset)->manifest().field_id("txt")).present);
      EXPECT_TRUE((*dataset)->locate(1, (*dataset)->manifest().field_id("txt")).present);
    }
  }
}

TEST(Hdf5Test, ManyFieldsFitIntoOneGroup) {
  for (const char* format : {"hdf5", "hdf5-vlen"}) {
    std::map<std::string, std::string> fields;
    std::vector<std::string> names;
    for (int i = 0; i < 250; ++i) {
      names.push_back("field" + std::to_string(1000 + i));
      fields[names.back()] = "value " + std::to_string(i);
    }
    MemoryStorage storage;
    ASSERT_TRUE(write(storage, format, "x", spec_of(names), {{"a", 1, fields}, {"b", 2, fields}}).ok());
    auto dataset = open_hdf5(storage, "x");
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    for (const auto& [name, value] : fields) EXPECT_EQ(field(**dataset, 1, name), value);
  }
}

TEST(Hdf5Test, NamesThatCollideOrCannotBeAreRefused) {
  MemoryStorage storage;
  for (const std::vector<std::string>& fields : std::vector<std::vector<std::string>>{
           {"jpg", "jpg_offsets"}, {"labels"}, {"a/b"}, {"."}, {"__key__"}}) {
    EXPECT_EQ(find_format("hdf5")->create(storage, "x", spec_of(fields)).status().code(), Code::invalid);
  }
  EXPECT_EQ(find_format("hdf5-vlen")->create(storage, "x", spec_of({"targets"})).status().code(),
            Code::invalid);
  WriteSpec compressed = spec_of({"jpg"});
  compressed.compress = "deflate";
  EXPECT_EQ(find_format("hdf5")->create(storage, "x", compressed).status().code(), Code::unsupported);
}

TEST(Hdf5Test, TheLargestColumnNeedNotWaitInMemory) {
  MemoryStorage storage;
  std::vector<Sample> samples;
  for (int i = 0; i < 50; ++i) {
    const char letter = static_cast<char>('a' + i % 26);
    samples.push_back({std::to_string(i), i, {{"bin", std::string(1'000'000, letter)}, {"txt", {letter}}}});
  }
  ASSERT_TRUE(write(storage, "hdf5", "x", spec_of({"bin", "txt"}), samples).ok());
  auto dataset = open_hdf5(storage, "x");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  for (uint64_t i = 0; i < samples.size(); ++i) {
    EXPECT_TRUE(field(**dataset, i, "bin") == samples[i].fields["bin"]) << i;
    EXPECT_EQ(field(**dataset, i, "txt"), samples[i].fields["txt"]);
  }
}

TEST(Hdf5Test, TheSameSamplesGiveTheSameBytes) {
  for (const char* format : {"hdf5", "hdf5-vlen"}) {
    MemoryStorage storage;
    const std::vector<Sample> samples = {{"a", 1, {{"jpg", "1"}, {"txt", "2"}}}, {"b", 2, {{"txt", "3"}}}};
    ASSERT_TRUE(write(storage, format, "1", spec_of({"jpg", "txt"}), samples).ok());
    ASSERT_TRUE(write(storage, format, "2", spec_of({"jpg", "txt"}), samples).ok());
    EXPECT_TRUE(get(storage, "1") == get(storage, "2"));
  }
}

TEST(Hdf5Test, IndexReadsHeadsAndNotPayload) {
  for (const char* format : {"hdf5", "hdf5-vlen"}) {
    MemoryStorage storage;
    std::vector<Sample> samples;
    for (int i = 0; i < 300; ++i) {
      samples.push_back({std::to_string(i), i, {{"jpg", std::string(100'000, 'x')}, {"txt", "short"}}});
    }
    ASSERT_TRUE(write(storage, format, "x", spec_of({"jpg", "txt"}), samples).ok());
    CountingStorage counted(storage);
    IndexBuilder builder;
    ASSERT_TRUE(find_format(format)->index(counted, "x", {}, builder).ok());
    EXPECT_LT(counted.bytes_read(), samples.size() * 100'000 / 100) << format;  // a hundredth of the payload
    EXPECT_LT(counted.reads_done(), 400u) << format;
  }
}

TEST(Hdf5Test, SmallValuesAreIndexedByFewReads) {
  for (const char* format : {"hdf5", "hdf5-vlen"}) {
    MemoryStorage storage;
    std::vector<Sample> samples;
    for (int i = 0; i < 20'000; ++i) {
      samples.push_back({"key " + std::to_string(i), i, {{"txt", "text of " + std::to_string(i)}}});
    }
    ASSERT_TRUE(write(storage, format, "x", spec_of({"txt"}), samples).ok());
    CountingStorage counted(storage);
    IndexBuilder builder;
    ASSERT_TRUE(find_format(format)->index(counted, "x", {}, builder).ok());
    EXPECT_LT(counted.reads_done(), 100u) << format;
  }
}

TEST(Hdf5Test, AnAbandonedWriterLeavesNothing) {
  for (const char* format : {"hdf5", "hdf5-vlen"}) {
    MemoryStorage storage;
    {
      auto writer = find_format(format)->create(storage, "x", spec_of({"jpg"}));
      ASSERT_TRUE(writer.ok());
      const SampleToWrite::Field jpg{"jpg", as_bytes(kJpeg)};
      ASSERT_TRUE((*writer)->add({.key = "a", .fields = std::span(&jpg, 1)}).ok());
    }
    EXPECT_TRUE(visible(storage).empty());
  }
}

TEST(Hdf5Test, FailuresOfWritingAreHandedOn) {
  for (const char* format : {"hdf5", "hdf5-vlen"}) {
    MemoryStorage inner;
    FaultyStorage commit(inner, {.fail_commit = 1}), writing(inner, {.fail_write = 1});
    EXPECT_EQ(write(commit, format, "x", spec_of({"jpg"}), {{"a", 1, {{"jpg", "1"}}}}).code(), Code::io);
    EXPECT_FALSE(write(writing, format, "x", spec_of({"jpg"}), {{"a", 1, {{"jpg", "1"}}}}).ok());
    EXPECT_TRUE(visible(inner).empty());
  }
}

}  // namespace
}  // namespace packtrain
