#include <algorithm>
#include <random>

#include "base/json.h"
#include "format/compress_value.h"
#include "pack/plan.h"
#include "pack/test_archives.h"
#include "pack/test_pack_folder.h"
#include "packtrain/decode.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

std::string noise(size_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  std::string text(bytes, '\0');
  for (char& byte : text) byte = static_cast<char>(random());
  return text;
}

std::string words(size_t bytes, uint32_t seed) {
  static constexpr std::string_view kWords[] = {"the ",     "photograph ", "of ",    "a ",     "red ",
                                                "bicycle ", "beside ",     "water ", "under ", "trees\n"};
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < bytes) text += kWords[random() % std::size(kWords)];
  return text;
}

// An array of shape (bytes / 4), of floats that change slowly.
std::string array_file(size_t numbers, uint32_t seed) {
  std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(numbers) + ",), }";
  header.resize(117, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\0", 8);
  file += static_cast<char>(header.size());
  file += '\0';
  file += header;
  for (size_t i = 0; i < numbers; ++i) {
    char number[4];
    store_le(number, static_cast<float>(seed + i / 64));
    file.append(number, 4);
  }
  return file;
}

class CompressionTest : public PackFolderTest {
 protected:
  void SetUp() override {
    PackFolderTest::SetUp();
    if (!has_codec("deflate") || !has_codec("zstd")) GTEST_SKIP() << "built without the libraries";
  }
  // Photographs whose bytes would compress, were they not photographs; text; numbers; noise.
  void make_tree() const {
    for (int i = 0; i < 60; ++i) {
      const std::string stem = "tree/class" + std::to_string(i % 3) + "/" + std::to_string(i);
      put(stem + ".jpg", "\xFF\xD8\xFF\xE0" + std::string(3000, 'j'));
      put(stem + ".txt", words(20000, static_cast<uint32_t>(i)));
      put(stem + ".npy", array_file(10000, static_cast<uint32_t>(i)));
      put(stem + ".bin", noise(1500, static_cast<uint32_t>(i)));
    }
  }
  const FieldCompression& found(const PackReport& report, const std::string& field) const {
    const auto at = std::find_if(report.compression.begin(), report.compression.end(),
                                 [&](const FieldCompression& finding) { return finding.field == field; });
    static const FieldCompression none;
    EXPECT_NE(at, report.compression.end()) << field;
    return at == report.compression.end() ? none : *at;
  }
  PackReport packed(const PackOptions& options) {
    auto report = pack(posix_storage(), options);
    EXPECT_TRUE(report.ok()) << report.status().text();
    return report.ok() ? std::move(*report) : PackReport();
  }
};

TEST(CompressValueTest, OnlyWhatSavesASixteenthIsCompressed) {
  EXPECT_TRUE(saves_enough(15, 16));
  EXPECT_FALSE(saves_enough(16, 16));
  EXPECT_FALSE(saves_enough(31, 32));
  EXPECT_TRUE(saves_enough(30, 32));
  EXPECT_FALSE(saves_enough(0, 0));
  EXPECT_FALSE(saves_enough(1, 1));
  EXPECT_FALSE(saves_enough(20, 17));
}

TEST(CompressValueTest, CompressedContentIsToldByItsFirstBytes) {
  EXPECT_TRUE(is_compressed_content(as_bytes("\xFF\xD8\xFF\xE0 and so on")));
  EXPECT_TRUE(is_compressed_content(as_bytes("GIF89a")));
  EXPECT_TRUE(is_compressed_content(as_bytes("fLaC")));
  EXPECT_FALSE(is_compressed_content(as_bytes("a text")));
  EXPECT_FALSE(is_compressed_content({}));
}

TEST(CompressValueTest, CodecsOfAFormatAreNamed) {
  const Format& zarr = *find_format("zarr");
  EXPECT_TRUE(check_codec(zarr.name, zarr.codecs, "zstd").ok());
  EXPECT_TRUE(check_codec(zarr.name, zarr.codecs, "auto").ok());
  EXPECT_EQ(check_codec(zarr.name, zarr.codecs, "deflate").message(),
            "zarr is written with --compress none, blosc or zstd, not deflate");
  EXPECT_EQ(check_codec("webdataset", {}, "zstd").message(),
            "webdataset is written with --compress none, not zstd; zip, zarr and squashfs compress values");
}

TEST_F(CompressionTest, ZipSaysWhereDeflatePaysAndStaysStored) {
  make_tree();
  PackOptions zip = options("tree", "out", "zip");
  std::vector<std::string> said;
  zip.announce = [&](const std::string& sentence) {
    said.push_back(sentence);
    EXPECT_FALSE(exists("out"));
  };
  const PackReport report = packed(zip);
  EXPECT_EQ(Dataset::open(posix_storage(), path("out")).value()->manifest().form, "rows");
  const FieldCompression& txt = found(report, "txt");
  EXPECT_EQ(txt.codec, "deflate");
  EXPECT_FALSE(txt.compressed);
  EXPECT_GT(txt.ratio, 0.01);
  EXPECT_LT(txt.ratio, 0.5);
  EXPECT_EQ(txt.values, 32u);
  EXPECT_GT(txt.decode_bytes_per_second, 0);
  EXPECT_DOUBLE_EQ(txt.break_even_bytes_per_second, txt.decode_bytes_per_second * (1 - txt.ratio));
  EXPECT_TRUE(txt.reason.starts_with("deflate would make it 0.")) << txt.reason;
  EXPECT_TRUE(txt.reason.ends_with("/s a core; not done, ask with --compress deflate")) << txt.reason;
  EXPECT_EQ(found(report, "jpg").reason, "compressed already, stored as it is");
  EXPECT_EQ(found(report, "bin").reason, "deflate would save less than 1/16, stored as it is");
  EXPECT_EQ(found(report, "cls").reason, "less than 1/1000 of all bytes, stored as it is");
  ASSERT_EQ(said.size(), report.compression.size());
  EXPECT_EQ(said.front(), "bin: deflate would save less than 1/16, stored as it is");
}

TEST_F(CompressionTest, SquashfsCompressesTextByItself) {
  make_tree();
  const PackReport report = packed(options("tree", "out", "squashfs"));
  EXPECT_TRUE(found(report, "txt").compressed) << found(report, "txt").reason;
  EXPECT_TRUE(found(report, "txt").reason.starts_with("zstd makes it 0.")) << found(report, "txt").reason;
  EXPECT_FALSE(found(report, "jpg").compressed);
  EXPECT_FALSE(found(report, "bin").compressed);
  const auto dataset = Dataset::open(posix_storage(), path("out")).value();
  const auto source = Json::parse(dataset->manifest().source_json).value();
  EXPECT_EQ(source["compress"].as_string(), "auto");
  EXPECT_EQ(source["compressed"].dump(), R"({"codec": "zstd", "fields": ["npy", "txt"]})");
  // A photograph stays one plain extent.
  std::vector<std::pair<Block, Slice>> slices;
  ASSERT_TRUE(dataset->slices(0, dataset->manifest().field_id("jpg"), slices).ok());
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_TRUE(dataset->manifest().pipelines[slices[0].first.pipeline].empty());
  PackOptions plain = options("tree", "plain", "webdataset");
  packed(plain);
  EXPECT_EQ(samples("out"), samples("plain"));
  expect_sound("out");
}

TEST_F(CompressionTest, ShortValuesAreNotWorthTheirDecoding) {
  for (int i = 0; i < 20; ++i)
    put("tree/" + std::to_string(i) + ".txt", words(1000, static_cast<uint32_t>(i)));
  const PackReport report = packed(options("tree", "out", "squashfs"));
  EXPECT_FALSE(found(report, "txt").compressed);
  EXPECT_TRUE(found(report, "txt").reason.starts_with("zstd would make it 0."))
      << found(report, "txt").reason;
}

TEST_F(CompressionTest, ZarrCompressesArraysAndLeavesBytesToPlainReads) {
  if (!has_codec("blosc")) GTEST_SKIP() << "built without Blosc";
  make_tree();
  const PackReport report = packed(options("tree", "out", "zarr"));
  EXPECT_TRUE(found(report, "npy").compressed) << found(report, "npy").reason;
  EXPECT_EQ(found(report, "npy").codec, "blosc");
  EXPECT_FALSE(found(report, "txt").compressed);
  EXPECT_TRUE(found(report, "txt").reason.starts_with("no arrays of one type and shape"));
  packed(options("tree", "plain", "webdataset"));
  auto expected = samples("plain"), got = samples("out");
  std::erase_if(expected, [](const auto& field) { return field.first.ends_with(".cls"); });
  EXPECT_EQ(got, expected);
  expect_sound("out");
}

TEST_F(CompressionTest, AskedForItStillLeavesCompressedContent) {
  make_tree();
  for (const char* format : {"zip", "squashfs"}) {
    PackOptions asked = options("tree", format, format);
    asked.compress = "deflate";
    const PackReport report = packed(asked);
    EXPECT_TRUE(found(report, "txt").compressed) << format;
    EXPECT_FALSE(found(report, "jpg").compressed) << format;
    const auto dataset = Dataset::open(posix_storage(), path(format)).value();
    std::vector<std::pair<Block, Slice>> slices;
    for (const auto& [field, compressed] : {std::pair("jpg", false), {"txt", true}, {"bin", false}}) {
      ASSERT_TRUE(dataset->slices(7, dataset->manifest().field_id(field), slices).ok());
      EXPECT_EQ(!dataset->manifest().pipelines[slices[0].first.pipeline].empty(), compressed) << field;
    }
    expect_sound(format);
  }
}

TEST_F(CompressionTest, NothingIsTriedWhereNothingCanBeCompressedOrNothingShould) {
  make_tree();
  EXPECT_TRUE(packed(options("tree", "tar", "webdataset")).compression.empty());
  PackOptions none = options("tree", "none", "zip");
  none.compress = "none";
  EXPECT_TRUE(packed(none).compression.empty());
  PackOptions wrong = options("tree", "wrong", "zip");
  wrong.compress = "zstd";
  EXPECT_EQ(pack(posix_storage(), wrong).status().code(), Code::unsupported);
  EXPECT_FALSE(exists("wrong.part"));
}

// Raw pixels of a smooth image compress well, the JPEG that they are made of not at all.
TEST_F(CompressionTest, ImagesAreTriedAsTheyWillBeWritten) {
  const Image grey{{256, 200, 3}, std::vector<uint8_t>(256 * 200 * 3, 77)};
  const auto jpeg = encode_jpeg(grey, 90, Chroma::s420);
  ASSERT_TRUE(jpeg.ok());
  for (int i = 0; i < 9; ++i) put("tree/a/" + std::to_string(i) + ".jpg", std::string(as_text(*jpeg)));
  PackOptions asked = options("tree", "asked", "squashfs");
  asked.image = "raw";
  asked.compress = "zstd";
  const PackReport report = packed(asked);
  EXPECT_TRUE(found(report, "ppm").compressed) << found(report, "ppm").reason;
  EXPECT_TRUE(found(report, "ppm").reason.starts_with("zstd makes it 0.")) << found(report, "ppm").reason;
  expect_sound("asked");
  PackOptions kept = options("tree", "kept", "squashfs");
  kept.image = "jpeg:50";
  kept.compress = "zstd";
  EXPECT_EQ(found(packed(kept), "jpg").reason, "compressed already, stored as it is");
}

TEST_F(CompressionTest, PhotographsAlonePackAsWithoutCompression) {
  for (int i = 0; i < 9; ++i)
    put("tree/a/" + std::to_string(i) + ".jpg", "\xFF\xD8\xFF\xE0" + std::string(3000, 'j'));
  PackOptions asked = options("tree", "asked", "zip"), none = options("tree", "none", "zip");
  asked.compress = "deflate";
  none.compress = "none";
  packed(asked);
  packed(none);
  EXPECT_EQ(contents("asked")["train-000000.zip"], contents("none")["train-000000.zip"]);
}

TEST_F(CompressionTest, BytesDoNotDependOnThreadsTasksOrRuns) {
  make_tree();
  for (const char* format : {"squashfs", "zarr"}) {
    PackOptions one = options("tree", std::string(format) + "-one", format);
    one.shards = 3;
    one.jobs = 1;
    packed(one);
    PackOptions four = options("tree", std::string(format) + "-four", format);
    four.shards = 3;
    four.jobs = 4;
    packed(four);
    EXPECT_EQ(contents(std::string(format) + "-one"), contents(std::string(format) + "-four"));
    // Tasks that did not plan take the decision from the plan, though the values may read otherwise by then.
    PackOptions task = options("tree", std::string(format) + "-tasks", format);
    task.shards = 3;
    task.tasks = 2;
    task.publish_wait_seconds = 0;
    packed(task);
    task.task = 1;
    const PackReport last = packed(task);
    EXPECT_TRUE(last.published);
    EXPECT_FALSE(last.compression.empty());
    EXPECT_EQ(contents(std::string(format) + "-one"), contents(std::string(format) + "-tasks"));
  }
}

TEST_F(CompressionTest, APlanKeepsWhatWasDecided) {
  make_tree();
  PackOptions planned = options("tree", "out", "squashfs");
  planned.plan_only = true;
  packed(planned);
  const std::string bytes = read_whole(posix_storage(), path("out.part/plan")).value();
  const auto plan = decode_plan(as_bytes(bytes));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->compress, "zstd");
  EXPECT_EQ(plan->compressed, (std::vector<std::string>{"npy", "txt"}));
  EXPECT_EQ(plan->findings.size(), 5u);
  EXPECT_EQ(encode_plan(*plan), bytes);
}

}  // namespace
}  // namespace packtrain
