#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "base/json.h"
#include "format/publish_index.h"
#include "io/test_storage.h"
#include "pack/test_dataset.h"
#include "packtrain/format.h"
#include "packtrain/pack.h"

namespace packtrain {
namespace {

const std::vector<std::string> kFiles = {"manifest.json", "index.npz", "names.npz", "train-000000.tar",
                                         "train-000001.tar"};

VerifyReport checked(Storage& storage, const std::string& path = "set", const VerifyOptions& options = {}) {
  Result<VerifyReport> report = verify(storage, path, options);
  EXPECT_TRUE(report.ok()) << report.status().text();
  return report.ok() ? std::move(*report) : VerifyReport();
}

std::string in_words(const VerifyReport& report) {
  std::string text;
  for (const Finding& finding : report.findings) {
    text += finding.file + " " + finding.key + "." + finding.field + " @ " + std::to_string(finding.offset) +
            ": " + finding.what + "\n";
  }
  return text;
}

void flip(Storage& storage, const std::string& path, uint64_t bit) {
  std::string bytes = get(storage, path);
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  put(storage, path, bytes);
}

uint64_t count_from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class VerifyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    put_dataset(storage_, "set", {make_samples(20, 3000, 1), make_samples(19, 3000, 2)}, {"a", "b", "c"});
  }
  MemoryStorage storage_;
};

TEST_F(VerifyTest, ASoundDatasetHasNoFindings) {
  for (uint32_t jobs : {1, 2, 5}) {
    const VerifyReport report = checked(storage_, "set", {.jobs = jobs});
    EXPECT_EQ(report.findings_count, 0u) << in_words(report);
    EXPECT_EQ(report.samples, 39u);
    EXPECT_EQ(report.shards, 2u);
    EXPECT_FALSE(report.structure_only);
  }
}

TEST_F(VerifyTest, EveryFlippedBitIsFound) {
  std::mt19937_64 random(7);
  const uint64_t flips = count_from_environment("PACKTRAIN_FLIPS", 200);
  for (uint64_t i = 0; i < flips; ++i) {
    const std::string path = "set/" + kFiles[random() % kFiles.size()];
    const uint64_t bit = random() % (8 * get(storage_, path).size());
    flip(storage_, path, bit);
    EXPECT_GT(checked(storage_, "set", {.jobs = 1}).findings_count, 0u) << path << " bit " << bit;
    flip(storage_, path, bit);
  }
  EXPECT_EQ(checked(storage_).findings_count, 0u);
}

TEST_F(VerifyTest, EveryTruncationIsFound) {
  std::mt19937_64 random(8);
  const uint64_t cuts = count_from_environment("PACKTRAIN_FLIPS", 200) / 4;
  for (uint64_t i = 0; i < cuts; ++i) {
    const std::string path = "set/" + kFiles[random() % kFiles.size()];
    const std::string bytes = get(storage_, path);
    const uint64_t length = random() % bytes.size();
    put(storage_, path, bytes.substr(0, length));
    EXPECT_GT(checked(storage_, "set", {.recover = true, .jobs = 1}).findings_count, 0u)
        << path << " at " << length;
    put(storage_, path, bytes);
  }
}

TEST_F(VerifyTest, ADamagedFieldIsNamedByShardKeyAndOffset) {
  auto dataset = Dataset::open(storage_, "set");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  const FieldLocation at = (*dataset)->locate(25, (*dataset)->manifest().field_id("jpg"));
  const std::string key((*dataset)->key(25).value());
  flip(storage_, "set/train-000001.tar", 8 * (at.offset + at.length / 2));
  const VerifyReport report = checked(storage_);
  ASSERT_EQ(report.findings_count, 1u) << in_words(report);
  EXPECT_EQ(report.damaged_samples, 1u);
  EXPECT_EQ(report.findings[0].file, "train-000001.tar");
  EXPECT_EQ(report.findings[0].key, key);
  EXPECT_EQ(report.findings[0].field, "jpg");
  EXPECT_EQ(report.findings[0].offset, at.offset);
}

TEST_F(VerifyTest, DamageBetweenFieldsIsNamedByItsByteAndTheSampleBeside) {
  auto dataset = Dataset::open(storage_, "set");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  const uint32_t cls = (*dataset)->manifest().field_id("cls");
  const FieldLocation at = (*dataset)->locate(3, cls);
  const std::string key((*dataset)->key(3).value());

  flip(storage_, "set/train-000000.tar", 8 * (at.offset - 512 + 100));  // the mode in its header
  VerifyReport report = checked(storage_);
  ASSERT_EQ(report.findings_count, 1u) << in_words(report);
  EXPECT_EQ(report.findings[0].key, key);
  EXPECT_EQ(report.findings[0].offset, at.offset - 512 + 100);
  EXPECT_NE(report.findings[0].what.find("header"), std::string::npos) << in_words(report);
  flip(storage_, "set/train-000000.tar", 8 * (at.offset - 512 + 100));

  flip(storage_, "set/train-000000.tar", 8 * (at.offset + at.length + 5));
  report = checked(storage_);
  ASSERT_EQ(report.findings_count, 1u) << in_words(report);
  EXPECT_EQ(report.findings[0].key, key);
  EXPECT_EQ(report.findings[0].offset, at.offset + at.length + 5);
  EXPECT_NE(report.findings[0].what.find("padding"), std::string::npos) << in_words(report);
  flip(storage_, "set/train-000000.tar", 8 * (at.offset + at.length + 5));

  const uint64_t last = get(storage_, "set/train-000000.tar").size() - 1;
  flip(storage_, "set/train-000000.tar", 8 * last);
  report = checked(storage_);
  ASSERT_EQ(report.findings_count, 1u) << in_words(report);
  EXPECT_EQ(report.findings[0].offset, last);
}

TEST_F(VerifyTest, RecoverSaysWhatCanStillBeRead) {
  auto dataset = Dataset::open(storage_, "set");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  const FieldLocation at = (*dataset)->locate(3, (*dataset)->manifest().field_id("cls"));
  flip(storage_, "set/train-000000.tar", 8 * (at.offset - 512));
  const VerifyReport report = checked(storage_, "set", {.recover = true});
  ASSERT_EQ(report.recoverable.size(), 1u);
  EXPECT_NE(report.recoverable[0].find("of 20 samples"), std::string::npos) << report.recoverable[0];

  put(storage_, "set/manifest.json", "{}");
  const VerifyReport without_manifest = checked(storage_, "set", {.recover = true});
  EXPECT_EQ(without_manifest.findings_count, 1u) << in_words(without_manifest);
  EXPECT_EQ(without_manifest.recoverable.size(), 2u);
}

TEST_F(VerifyTest, StrayAndMissingFilesAreNamed) {
  put(storage_, "set/extra/notes.txt", "hello");
  VerifyReport report = checked(storage_);
  ASSERT_EQ(report.findings_count, 1u) << in_words(report);
  EXPECT_EQ(report.findings[0].file, "extra/notes.txt");
  EXPECT_EQ(report.findings[0].remedy, Remedy::remove);
  EXPECT_EQ(report.to_remove, 1u);
  ASSERT_TRUE(remove_tree(storage_, "set/extra").ok());

  const std::string shard = get(storage_, "set/train-000001.tar");
  ASSERT_TRUE(storage_.remove("set/train-000001.tar").ok());
  report = checked(storage_);
  EXPECT_EQ(report.damaged_samples, 19u) << in_words(report);
  put(storage_, "set/train-000001.tar", shard);

  for (const char* file : {"set/index.npz", "set/names.npz", "set/manifest.json"}) {
    const std::string bytes = get(storage_, file);
    ASSERT_TRUE(storage_.remove(file).ok());
    report = checked(storage_);
    EXPECT_GT(report.findings_count, 0u) << file;
    EXPECT_EQ(report.to_remove + report.to_reindex, 0u) << file;
    EXPECT_EQ(report.unchecked_samples, file == std::string_view("set/index.npz") ? 39u : 0u) << file;
    put(storage_, file, bytes);
  }
  put(storage_, "set/pack.log.json", "{");
  EXPECT_EQ(checked(storage_).findings_count, 1u);
  ASSERT_TRUE(storage_.remove("set/pack.log.json").ok());
  EXPECT_EQ(checked(storage_).findings_count, 0u);
}

TEST_F(VerifyTest, FindingsAreLimitedInNumberAndCountedInFull) {
  std::string bytes = get(storage_, "set/train-000000.tar");
  std::fill(bytes.begin(), bytes.end(), 'x');
  put(storage_, "set/train-000000.tar", bytes);
  const VerifyReport report = checked(storage_, "set", {.max_findings = 5});
  EXPECT_EQ(report.findings.size(), 5u);
  EXPECT_GT(report.findings_count, 20u);
  EXPECT_EQ(report.damaged_samples, 20u);
}

TEST_F(VerifyTest, ADatasetThatIsNotThereIsAnErrorNotAFinding) {
  EXPECT_EQ(verify(storage_, "nowhere").status().code(), Code::not_found);
}

TEST_F(VerifyTest, StorageThatFailsIsAnErrorNotAFinding) {
  for (uint64_t n = 1; n < 200; ++n) {
    FaultyStorage faulty(storage_, {.fail_read = n, .from_then_on = true});
    const Result<VerifyReport> report = verify(faulty, "set", {.jobs = 1});
    if (faulty.failures() == 0) break;
    ASSERT_FALSE(report.ok()) << "read " << n << "\n" << in_words(*report);
    EXPECT_EQ(report.status().code(), Code::io) << report.status().text();
  }
}

TEST_F(VerifyTest, AReadThatIsSilentlyWrongIsFound) {
  uint64_t flips = 0;
  for (uint64_t n = 1; n < 200; ++n) {
    FaultyStorage faulty(storage_, {.flip_read = n, .flip_bit = 4321, .on = [](std::string_view path) {
                                      return path.ends_with("train-000000.tar");
                                    }});
    const Result<VerifyReport> report = verify(faulty, "set", {.jobs = 1});
    if (faulty.failures() == 0) break;
    ++flips;
    ASSERT_TRUE(report.ok());
    if (n == 1) {
      EXPECT_GT(report->findings_count, 0u);
    }
  }
  EXPECT_GT(flips, 0u);
}

TEST_F(VerifyTest, TheCallerCanStopIt) {
  const Result<VerifyReport> report =
      verify(storage_, "set", {.progress = [](const ProgressEvent&) { return false; }});
  EXPECT_EQ(report.status().code(), Code::stopped);
}

TEST_F(VerifyTest, RowsThatDoNotFitTheContainerAreNamed) {
  // The bytes are those that were written, and every hash holds: only a fresh look at the container tells.
  const auto rewrite = [&](const std::function<void(std::vector<TestSample>&)>& change) {
    std::vector<TestSample> samples = make_samples(5, 500, 3);
    IndexBuilder honest;
    const std::string bytes = lay_out_shard(honest, "train-000000.tar", samples);
    change(samples);
    IndexBuilder lying;
    lay_out_shard(lying, "train-000000.tar", samples);
    put(storage_, "lie/train-000000.tar", bytes);
    std::vector<uint32_t> checks = {crc32c(as_bytes(bytes))};
    lying.set_block_checks(0, checks);
    put_index(storage_, "lie", lying);
  };
  rewrite([](std::vector<TestSample>&) {});
  EXPECT_EQ(checked(storage_, "lie").findings_count, 0u);

  rewrite([](std::vector<TestSample>& samples) { samples[2].key[0] = 'k'; });
  VerifyReport report = checked(storage_, "lie");
  EXPECT_EQ(report.findings_count, 2u) << in_words(report);  // one too many, one too few
  EXPECT_EQ(report.damaged_samples, 1u);

  rewrite([](std::vector<TestSample>& samples) { samples[1].fields[1].name = "png"; });
  report = checked(storage_, "lie");
  EXPECT_EQ(report.findings_count, 2u) << in_words(report);

  rewrite([](std::vector<TestSample>& samples) { samples[4].label += 1; });
  report = checked(storage_, "lie");
  EXPECT_EQ(report.findings_count, 1u) << in_words(report);
}

TEST_F(VerifyTest, TwoSamplesOfOneKeyAreNamed) {
  std::vector<TestSample> samples = make_samples(3, 100, 4), more = make_samples(2, 100, 5);
  more[1].key = samples[0].key;
  put_dataset(storage_, "twice", {samples, more});
  const VerifyReport report = checked(storage_, "twice");
  ASSERT_GT(report.findings_count, 0u);
  EXPECT_TRUE(std::any_of(report.findings.begin(), report.findings.end(), [&](const Finding& finding) {
    return finding.file == "names.npz" && finding.key == samples[0].key;
  })) << in_words(report);
}

// Shards of several blocks, fields that cross them, and more threads than shards.
TEST(VerifyLargeTest, FieldsAcrossBlocksAndRangesAreChecked) {
  MemoryStorage storage;
  std::vector<TestSample> samples = make_samples(6, 1000, 9);
  std::mt19937_64 random(9);
  samples[2].fields[1].bytes.resize(9 << 20);
  for (char& byte : samples[2].fields[1].bytes) byte = static_cast<char>(random());
  samples[4].fields[1].bytes.assign(70 << 20, 'q');  // reaches over a range that one thread takes
  put_dataset(storage, "set", {samples});
  EXPECT_EQ(checked(storage, "set", {.jobs = 3}).findings_count, 0u);

  auto dataset = Dataset::open(storage, "set");
  ASSERT_TRUE(dataset.ok());
  const FieldLocation at = (*dataset)->locate(4, (*dataset)->manifest().field_id("jpg"));
  for (const uint64_t into : {uint64_t{0}, uint64_t{33} << 20, (uint64_t{70} << 20) - 1}) {
    flip(storage, "set/train-000000.tar", 8 * (at.offset + into));
    const VerifyReport report = checked(storage, "set", {.jobs = 3});
    EXPECT_EQ(report.findings_count, 1u) << in_words(report);
    EXPECT_EQ(report.findings.at(0).offset, at.offset);
  }
}

// Foreign containers: what they carry themselves, and no more.
TEST(VerifyForeignTest, ATarHasNothingButItsStructure) {
  MemoryStorage storage;
  IndexBuilder builder;
  put(storage, "/a.tar", lay_out_shard(builder, "/a.tar", make_samples(4, 2000, 11)));
  VerifyReport report = checked(storage, "/a.tar");
  EXPECT_EQ(report.findings_count, 0u) << in_words(report);
  EXPECT_TRUE(report.structure_only);
  EXPECT_EQ(report.samples, 4u);

  flip(storage, "/a.tar", 8 * 10);  // a name in the first header
  report = checked(storage, "/a.tar", {.recover = true});
  EXPECT_EQ(report.findings_count, 1u);
  EXPECT_EQ(report.recoverable.size(), 1u);
}

TEST(VerifyForeignTest, AKeyMayComeInEveryContainer) {
  TemporaryFolder folder;
  IndexBuilder builder;
  const std::vector<std::string> containers = {folder / "a.tar", folder / "b.tar"};
  for (const std::string& container : containers) {
    put(posix_storage(), container, lay_out_shard(builder, container, make_samples(3, 500, 14)));
  }
  MakeIndexOptions options;
  options.out = folder / "both";
  ASSERT_TRUE(make_index(posix_storage(), containers, options).ok());
  const VerifyReport report = checked(posix_storage(), folder / "both");
  EXPECT_EQ(report.samples, 6u);
  EXPECT_EQ(report.findings_count, 0u) << in_words(report);
}

TEST(VerifyForeignTest, AZipHasItsOwnChecks) {
  MemoryStorage storage;
  const std::vector<TestSample> samples = make_samples(6, 3000, 12);
  for (const char* compress : {"none", "deflate"}) {
    if (compress == std::string_view("deflate") &&
        encode({{"deflate"}}, {}).status().code() == Code::unsupported) {
      GTEST_SKIP() << "built without libdeflate";
    }
    WriteSpec spec;
    spec.compress = compress;
    spec.write.replace = true;
    auto writer = find_format("zip")->create(storage, "/a.zip", spec);
    ASSERT_TRUE(writer.ok()) << writer.status().text();
    for (const TestSample& sample : samples) {
      std::vector<SampleToWrite::Field> fields;
      for (const TestField& field : sample.fields) fields.push_back({field.name, as_bytes(field.bytes)});
      ASSERT_TRUE((*writer)->add({.key = sample.key, .fields = fields}).ok());
    }
    ASSERT_TRUE((*writer)->finish().ok());
    VerifyReport report = checked(storage, "/a.zip");
    EXPECT_EQ(report.findings_count, 0u) << in_words(report);
    EXPECT_FALSE(report.structure_only);

    std::string bytes = get(storage, "/a.zip");
    bytes[bytes.size() / 2] ^= 1;
    put(storage, "/a.zip", bytes);
    report = checked(storage, "/a.zip");
    EXPECT_GT(report.findings_count, 0u) << compress;
    EXPECT_EQ(report.damaged_samples, 1u) << in_words(report);
  }
}

// Headers of another tool are not what packtrain would have written, and are no damage for that.
// As indexes were before the checks of streams were compared: they lead to the DEFLATE data alone.
TEST(VerifyForeignTest, AnIndexThatLeavesTheChecksOfStreamsAwayIsNotWrong) {
  if (encode({{"zlib"}}, {}).status().code() == Code::unsupported) GTEST_SKIP() << "built without libdeflate";
  MemoryStorage storage;
  const Format& squashfs = *find_format("squashfs");
  auto writer = squashfs.create(storage, "/a.squashfs", {.compress = "deflate", .fields = {"txt"}});
  ASSERT_TRUE(writer.ok()) << writer.status().text();
  const std::string text(5000, 'a');
  const SampleToWrite::Field field{"txt", as_bytes(text)};
  ASSERT_TRUE((*writer)->add({.key = "a", .fields = {&field, 1}}).ok());
  ASSERT_TRUE((*writer)->finish().ok());
  for (const bool before : {false, true}) {
    IndexBuilder now;
    ASSERT_TRUE(squashfs.index(storage, "/a.squashfs", {}, now).ok());
    auto indexed = Dataset::from_memory(storage, "", now.finish());
    ASSERT_TRUE(indexed.ok());
    std::vector<std::pair<Block, Slice>> slices;
    ASSERT_TRUE((*indexed)->slices(0, 0, slices).ok());
    ASSERT_EQ(slices.size(), 1u);
    auto [block, slice] = slices[0];
    IndexBuilder builder;
    block.shard = builder.add_shard((*indexed)->manifest().shards[0]);
    block.pipeline = builder.add_pipeline({{before ? "deflate" : "zlib"}});
    if (before) {
      block.offset += 2;
      block.stored -= 6;
    }
    slice.block = builder.add_block(block);
    builder.begin_sample("a");
    builder.add_field("txt", std::span(&slice, 1), "a.txt");
    ASSERT_TRUE(builder.end_sample().ok());
    auto finished = builder.finish();
    ASSERT_TRUE(publish_index(storage, "/a.squashfs.packtrain", finished, {}).ok());
    const VerifyReport report = checked(storage, "/a.squashfs");
    EXPECT_EQ(report.findings_count, 0u) << in_words(report);
    EXPECT_EQ(report.structure_only, before);
  }
}

TEST(VerifyForeignTest, DamageInAForeignTarIsThatOfItsOwnSampleOnly) {
  TemporaryFolder folder;
  Storage& storage = posix_storage();
  IndexBuilder builder;
  std::string bytes = lay_out_shard(builder, "a.tar", make_samples(8, 2000, 15));
  // The owner's name in each header, which packtrain leaves empty, with the header's sum corrected.
  for (uint64_t at = 0; at + 1024 < bytes.size();) {
    const uint64_t size = std::stoull(bytes.substr(at + 124, 11), nullptr, 8);
    uint64_t sum = 0;
    bytes.replace(at + 265, 4, "root");
    bytes.replace(at + 148, 8, "        ");
    for (uint64_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(bytes[at + i]);
    char digits[8];
    std::snprintf(digits, sizeof digits, "%06o", static_cast<unsigned>(sum));
    bytes.replace(at + 148, 7, std::string_view(digits, 7));
    at += 512 + (size + 511) / 512 * 512;
  }
  put(storage, folder / "a.tar", bytes);
  const std::vector<std::string> containers = {folder / "a.tar"};
  MakeIndexOptions options;
  options.checksum = true;
  ASSERT_TRUE(make_index(storage, containers, options).ok());
  const auto indexed_at = std::filesystem::last_write_time(folder / "a.tar");
  ASSERT_EQ(checked(storage, folder / "a.tar").findings_count, 0u);
  auto dataset = Dataset::open(storage, folder / "a.tar.packtrain");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  const FieldLocation at = (*dataset)->locate(3, (*dataset)->manifest().field_id("jpg"));
  const auto flip_in_place = [&](uint64_t offset) {
    flip(storage, folder / "a.tar", 8 * offset);
    std::filesystem::last_write_time(folder / "a.tar", indexed_at);
  };

  flip_in_place(at.offset + 7);
  VerifyReport report = checked(storage, folder / "a.tar");
  EXPECT_EQ(report.damaged_samples, 1u) << in_words(report);
  EXPECT_EQ(report.findings_count, 1u) << in_words(report);
  EXPECT_EQ(report.findings[0].offset, at.offset);
  flip_in_place(at.offset + 7);

  flip_in_place(at.offset - 512 + 265);
  report = checked(storage, folder / "a.tar");
  EXPECT_EQ(report.damaged_samples, 0u) << in_words(report);
  EXPECT_EQ(report.findings_count, 1u) << "a header: " << in_words(report);
}

TEST(VerifyForeignTest, AContainerThatChangedAfterItWasIndexedIsNoticed) {
  TemporaryFolder folder;
  Storage& storage = posix_storage();
  IndexBuilder builder;
  const std::string bytes = lay_out_shard(builder, "a.tar", make_samples(4, 2000, 13));
  for (const bool checksum : {false, true}) {
    put(storage, folder / "a.tar", bytes);
    const std::vector<std::string> containers = {folder / "a.tar"};
    MakeIndexOptions options;
    options.checksum = checksum;
    ASSERT_TRUE(make_index(storage, containers, options).ok());
    VerifyReport report = checked(storage, folder / "a.tar");
    EXPECT_EQ(report.findings_count, 0u) << in_words(report);
    EXPECT_EQ(report.structure_only, !checksum);
    const auto indexed_at = std::filesystem::last_write_time(folder / "a.tar");
    std::string zeroed = bytes;
    zeroed.replace(3072, 2048, 2048, '\0');
    put(storage, folder / "a.tar", zeroed);
    std::filesystem::last_write_time(folder / "a.tar", indexed_at);
    EXPECT_GT(checked(storage, folder / "a.tar").findings_count, 0u)
        << "damage that left size and time as they were";
    put(storage, folder / "a.tar", bytes);  // the same bytes, later
    report = checked(storage, folder / "a.tar");
    EXPECT_EQ(report.findings_count, checksum ? 0u : 1u) << "checks say more than a date";
    EXPECT_EQ(report.to_reindex, checksum ? 0u : 1u) << in_words(report);
    EXPECT_EQ(report.damaged_samples, 0u);
    std::string changed = bytes;
    changed[600] ^= 1;
    put(storage, folder / "a.tar", changed);
    report = checked(storage, folder / "a.tar");
    EXPECT_EQ(report.findings_count, 1u) << in_words(report);
    // Another archive under the same name: its samples are not the index's, and none of them is damaged.
    put(storage, folder / "a.tar", lay_out_shard(builder, "a.tar", make_samples(9, 1000, 16)));
    report = checked(storage, folder / "a.tar");
    EXPECT_EQ(report.findings_count, 1u) << in_words(report);
    EXPECT_EQ(report.to_reindex, 1u);
    EXPECT_EQ(report.damaged_samples, 0u);
    EXPECT_EQ(report.unchecked_samples, 4u);
    ASSERT_TRUE(remove_tree(storage, folder / "a.tar.packtrain").ok());
  }
}

}  // namespace
}  // namespace packtrain
