// Conversion of images while they are packed: what becomes of them, and that all that holds for a pack holds
// here too.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "base/hash.h"
#include "base/json.h"
#include "decode/jpeg_header.h"
#include "decode/jpeg_test_support.h"
#include "index/npz.h"
#include "io/test_storage.h"
#include "pack/image_conversion.h"
#include "pack/plan.h"
#include "pack/shard_rows.h"
#include "pack/test_pack_folder.h"
#include "packtrain/format.h"
#include "packtrain/pack.h"

namespace packtrain {
namespace {

namespace fs = std::filesystem;

bool says(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

class ConversionTest : public PackFolderTest {
 protected:
  void put_jpeg(const std::string& path, uint32_t width, uint32_t height, const Encoding& encoding = {},
                uint32_t seed = 1) {
    put(path, as_text(encode(photo(width, height, 3, seed), encoding)));
  }
  // Photographs in three classes: every third progressive, some larger than 64 pixels.
  void make_tree(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
      put_jpeg("tree/class" + std::to_string(i % 3) + "/" + std::to_string(i) + ".jpg", 40 + i, 50,
               {.across = 2, .down = 2, .progressive = i % 3 == 0}, i);
  }
  PackOptions options(const std::string& out, const std::string& image = "keep") {
    PackOptions pack = PackFolderTest::options("tree", out, "webdataset");
    pack.shards = 4;
    pack.image = image;
    return pack;
  }
  std::shared_ptr<Dataset> open(const std::string& name) {
    auto dataset = Dataset::open(posix_storage(), path(name));
    EXPECT_TRUE(dataset.ok()) << dataset.status().text();
    return *dataset;
  }
  std::vector<std::byte> read(const Dataset& dataset, const std::string& key, const std::string& field) {
    std::vector<std::byte> bytes;
    const Status status = dataset.read(*dataset.find(key), dataset.manifest().field_id(field), bytes);
    EXPECT_TRUE(status.ok()) << status.text();
    return bytes;
  }
  static Image pixels(Bytes encoded, uint32_t max_side = 0) {
    Image image;
    EXPECT_TRUE((*PixelReader::make(64 << 20))->read(encoded, max_side, image).ok());
    return image;
  }
};

// The oracle of the writer that goes front to back: where nothing is to be done it writes what writing by
// position writes.
TEST_F(ConversionTest, WhatNeedsNoConversionIsPackedAsWithoutIt) {
  for (int i = 0; i < 30; ++i)
    put_jpeg("tree/class" + std::to_string(i % 3) + "/" + std::to_string(i) + ".jpg", 30, 20 + i % 7);
  put("tree/class0/3.json", "{}");
  put("tree/class0/alone.txt", "");
  for (const char* format : {"webdataset", "zip"}) {
    PackOptions plain = options(std::string("plain-") + format);
    plain.format = format;
    if (std::string_view(format) == "webdataset") plain.sidecars = {"wids", "dali", "energon"};
    ASSERT_TRUE(pack(posix_storage(), plain).ok());
    PackOptions baseline = plain;
    baseline.out = path(std::string("baseline-") + format);
    baseline.baseline = true;
    auto report = pack(posix_storage(), baseline);
    ASSERT_TRUE(report.ok()) << report.status().text();
    auto expected = contents(std::string("plain-") + format);
    auto found = contents(std::string("baseline-") + format);
    // The manifest says what was asked for.
    EXPECT_TRUE(says(found["manifest.json"], "\"baseline\": true"));
    expected.erase("manifest.json");
    found.erase("manifest.json");
    EXPECT_EQ(found, expected);
  }
}

TEST_F(ConversionTest, BytesDependOnSourceAndOptionsOnly) {
  make_tree(40);
  for (const char* image : {"raw", "jpeg:70", "keep"}) {
    PackOptions one = options("one", image);
    one.max_side = 64;
    one.jobs = 1;
    one.shards = 3;
    ASSERT_TRUE(pack(posix_storage(), one).ok());
    PackOptions many = one;
    many.out = path("two");
    many.jobs = 4;
    ASSERT_TRUE(pack(posix_storage(), many).ok());
    EXPECT_TRUE(contents("one") == contents("two")) << image;
    EXPECT_EQ(verify(posix_storage(), path("one"))->findings_count, 0u);
    fs::remove_all(path("one"));
    fs::remove_all(path("two"));
  }
}

TEST_F(ConversionTest, ManyThreadsShareOneShard) {
  make_tree(100);
  PackOptions one = options("one", "raw");
  one.jobs = 1;
  one.shards = 1;
  ASSERT_TRUE(pack(posix_storage(), one).ok());
  PackOptions many = one;
  many.out = path("two");
  many.jobs = 8;
  ASSERT_TRUE(pack(posix_storage(), many).ok());
  EXPECT_TRUE(contents("one") == contents("two"));
}

TEST_F(ConversionTest, TasksTogetherMakeTheSameBytes) {
  make_tree(40);
  ASSERT_TRUE(pack(posix_storage(), options("alone", "jpeg:60")).ok());
  std::vector<std::thread> tasks;
  std::vector<Status> statuses(3);
  for (uint32_t task = 0; task < 3; ++task) {
    tasks.emplace_back([&, task] {
      PackOptions pack_options = options("together", "jpeg:60");
      pack_options.task = task;
      pack_options.tasks = 3;
      statuses[task] = pack(posix_storage(), pack_options).status();
    });
  }
  for (std::thread& task : tasks) task.join();
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_TRUE(contents("alone") == contents("together"));
}

TEST_F(ConversionTest, EveryInterruptedWriteCanBeContinued) {
  make_tree(20);
  put("tree/class0/mask.png", "left as it is");
  put_jpeg("tree/class0/mask.jpg", 30, 30);
  ASSERT_TRUE(pack(posix_storage(), options("whole", "raw")).ok());
  const auto expected = contents("whole");
  for (uint64_t n = 1;; ++n) {
    Faults faults;
    faults.fail_commit = n;
    FaultyStorage flaky(posix_storage(), faults);
    fs::remove_all(path("out"));
    fs::remove_all(path("out.part"));
    const Status first = pack(flaky, options("out", "raw")).status();
    if (first.ok()) break;
    ASSERT_FALSE(fs::exists(path("out"))) << n;
    const auto again = pack(posix_storage(), options("out", "raw"));
    ASSERT_TRUE(again.ok()) << n << " " << again.status().text();
    EXPECT_EQ(again->conversion.images, 21u);
    EXPECT_TRUE(contents("out") == expected) << n;
    ASSERT_LT(n, 100u);
  }
}

TEST_F(ConversionTest, StoppedByTheCallerItLeavesNoTemporaryFiles) {
  make_tree(60);
  for (const std::string_view phase : {"write", "try the conversion"}) {
    PackOptions stopping = options("out", "raw");
    stopping.progress = [&](const ProgressEvent& event) { return event.phase != phase; };
    EXPECT_EQ(pack(posix_storage(), stopping).status().code(), Code::stopped);
    if (fs::exists(path("out.part"))) {
      for (const auto& entry : fs::directory_iterator(path("out.part")))
        EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
    }
    fs::remove_all(path("out.part"));
  }
  ASSERT_TRUE(pack(posix_storage(), options("out", "raw")).ok());
}

TEST_F(ConversionTest, RawHoldsThePixels) {
  make_tree(7);
  put("tree/class0/grey.jpg", as_text(encode(photo(33, 21, 1), {})));
  const auto report = pack(posix_storage(), options("out", "raw"));
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->conversion.images, 8u);
  EXPECT_EQ(report->conversion.tried, 8u);
  EXPECT_EQ(report->conversion.largest_difference, 0u);
  const auto dataset = open("out");
  auto source = contents("tree");
  for (const auto& [name, bytes] : source) {
    const auto packed = read(*dataset, name.substr(0, name.size() - 4), "ppm");
    EXPECT_EQ(media_kind(packed), MediaKind::pnm);
    EXPECT_EQ(pixels(packed).pixels, pixels(as_bytes(bytes)).pixels);
  }
  EXPECT_EQ(image_shape(read(*dataset, "class0/grey", "ppm")), (ImageShape{33, 21, 1}));
  EXPECT_EQ(*dataset->path(*dataset->find("class0/3"), dataset->manifest().field_id("ppm")), "class0/3.ppm");
  EXPECT_EQ(dataset->image_size(*dataset->find("class0/3")), (std::pair{43u, 50u}));
}

TEST_F(ConversionTest, JpegKeepsChromaAndExifAndWhatIsSmallAlready) {
  const std::string exif("Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0", 20);
  put_jpeg("tree/a.jpg", 120, 90, {.across = 2, .down = 1, .exif = exif});
  put("tree/small.jpg", as_text(*encode_jpeg(photo(120, 90), 20, Chroma::s420)));
  put("tree/raw.ppm", as_text(*encode_pnm(photo(120, 90))));
  PackOptions to_jpeg = options("out", "jpeg:60");
  const auto report = pack(posix_storage(), to_jpeg);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_GT(report->conversion.largest_difference, 0u);
  EXPECT_LT(report->conversion.bytes_after, report->conversion.bytes_before);
  const auto dataset = open("out");
  const auto a = read(*dataset, "a", "jpg");
  EXPECT_EQ(read_jpeg_header(a)->chroma, Chroma::s422);
  EXPECT_EQ(as_text(read_jpeg_header(a)->exif), exif.substr(6));
  EXPECT_EQ(as_text(read(*dataset, "small", "jpg")), contents("tree")["small.jpg"]);
  EXPECT_EQ(read_jpeg_header(read(*dataset, "raw", "jpg"))->chroma, Chroma::s420);
  EXPECT_EQ(*dataset->path(*dataset->find("raw"), dataset->manifest().field_id("jpg")), "raw.jpg");
}

TEST_F(ConversionTest, OnlyLargerImagesAreShrunk) {
  put_jpeg("tree/large.jpg", 200, 100, {.progressive = true});
  put_jpeg("tree/small.jpg", 64, 64);
  PackOptions shrinking = options("out");
  shrinking.max_side = 64;
  ASSERT_TRUE(pack(posix_storage(), shrinking).ok());
  const auto dataset = open("out");
  auto source = contents("tree");
  EXPECT_EQ(as_text(read(*dataset, "small", "jpg")), source["small.jpg"]);
  const auto large = read(*dataset, "large", "jpg");
  const auto expected = encode_jpeg(pixels(as_bytes(source["large.jpg"]), 64), 90, Chroma::s444);
  EXPECT_EQ(large, *expected);
  EXPECT_EQ(image_shape(large), (ImageShape{64, 32, 3}));
}

TEST_F(ConversionTest, BaselineLeavesEveryPixel) {
  make_tree(9);
  PackOptions baseline = options("out");
  baseline.baseline = true;
  const auto report = pack(posix_storage(), baseline);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->conversion.largest_difference, 0u);
  EXPECT_EQ(report->conversion.mean_difference, 0);
  const auto dataset = open("out");
  for (const auto& [name, bytes] : contents("tree")) {
    const auto packed = read(*dataset, name.substr(0, name.size() - 4), "jpg");
    EXPECT_FALSE(read_jpeg_header(packed)->progressive);
    EXPECT_EQ(as_text(packed) == bytes, !read_jpeg_header(as_bytes(bytes))->progressive);
    EXPECT_EQ(pixels(packed).pixels, pixels(as_bytes(bytes)).pixels);
  }
}

TEST_F(ConversionTest, TheHashOfEachSourceIsKept) {
  make_tree(9);
  PackOptions baseline = options("out");
  baseline.baseline = true;
  ASSERT_TRUE(pack(posix_storage(), baseline).ok());
  const auto dataset = open("out");
  const std::string file = read_whole(posix_storage(), path("out/names.npz")).value();
  const auto columns = read_npz(as_bytes(file));
  const auto hashes = column_values<char>(*columns, "source.hash", 9 * kSourceHashBytes);
  ASSERT_TRUE(hashes.ok()) << hashes.status().text();
  for (const auto& [name, bytes] : contents("tree")) {
    const uint64_t sample = *dataset->find(name.substr(0, name.size() - 4));
    std::string hex;
    for (size_t i = 0; i < kSourceHashBytes; ++i) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x",
                    static_cast<unsigned char>((*hashes)[sample * kSourceHashBytes + i]));
      hex += digits;
    }
    const bool recoded = read_jpeg_header(as_bytes(bytes))->progressive;
    EXPECT_EQ(hex, recoded ? xxh128_hex(as_bytes(bytes)) : std::string(32, '0')) << name;
  }
}

TEST_F(ConversionTest, BadImagesAreNamedAndMayBeLeftOut) {
  make_tree(12);
  put("tree/class1/bad.jpg", "no image at all");
  auto cut = contents("tree")["class0/3.jpg"];
  put("tree/class0/3.jpg", cut.substr(0, cut.size() / 2));
  PackReport failed;
  const Status status = pack(posix_storage(), options("out", "raw"), &failed).status();
  EXPECT_EQ(status.code(), Code::corrupt);
  ASSERT_EQ(failed.bad.size(), 2u);
  EXPECT_TRUE(failed.bad[0].path.ends_with("class0/3.jpg"));
  EXPECT_TRUE(failed.bad[1].path.ends_with("class1/bad.jpg"));
  EXPECT_TRUE(says(failed.bad[1].what, "no image")) << failed.bad[1].what;
  EXPECT_FALSE(fs::exists(path("out")));
  PackOptions skipping = options("out", "raw");
  skipping.skip_bad = 2;
  const auto report = pack(posix_storage(), skipping);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->samples, 11u);
  EXPECT_EQ(report->conversion.tried, 11u);
  EXPECT_EQ(verify(posix_storage(), path("out"))->findings_count, 0u);
}

TEST_F(ConversionTest, FieldsAreDecidedByName) {
  const auto fields = [&](const std::string& image) {
    PackOptions dry = options("out", image);
    dry.dry_run = true;
    const auto report = pack(posix_storage(), dry);
    EXPECT_TRUE(report.ok()) << report.status().text();
    return report.ok() ? report->fields : std::vector<std::string>();
  };
  put("tree/a.png", "x");
  put("tree/a.seg.png", "x");
  put("tree/b.jpeg", "x");
  put("tree/b.png", "x");
  put("tree/c.webp", "x");
  const auto has = [](const std::vector<std::string>& all, const std::string& field) {
    return std::find(all.begin(), all.end(), field) != all.end();
  };
  const auto raw = fields("raw");
  EXPECT_TRUE(has(raw, "ppm") && has(raw, "seg.png") && has(raw, "png"));
  const auto jpeg = fields("jpeg:90");
  EXPECT_TRUE(has(jpeg, "jpg") && has(jpeg, "jpeg") && has(jpeg, "png") && has(jpeg, "seg.png"));
  EXPECT_FALSE(has(jpeg, "ppm"));

  PackOptions shrinking = options("out");
  shrinking.max_side = 10;
  const Status refused = pack(posix_storage(), shrinking).status();
  EXPECT_EQ(refused.code(), Code::invalid);
  EXPECT_TRUE(says(refused.text(), "--image jpeg:QUALITY or --image raw")) << refused.text();
  EXPECT_FALSE(fs::exists(path("out.part")));

  put("tree/c.ppm", "x");
  const Status clash = pack(posix_storage(), options("out", "raw")).status();
  EXPECT_EQ(clash.code(), Code::invalid);
  EXPECT_TRUE(says(clash.text(), "c has the fields webp and ppm")) << clash.text();
}

TEST_F(ConversionTest, WrongOptionsAreRefused) {
  make_tree(1);
  for (const char* image : {"jpeg", "jpeg:", "jpeg:0", "jpeg:101", "jpeg:9x", "png", "", "RAW"})
    EXPECT_EQ(pack(posix_storage(), options("out", image)).status().code(), Code::invalid) << image;
  PackOptions both = options("out", "raw");
  both.baseline = true;
  EXPECT_EQ(pack(posix_storage(), both).status().code(), Code::invalid);
}

TEST_F(ConversionTest, TheCostIsSaidBeforeAnythingIsWritten) {
  make_tree(12);
  PackOptions saying = options("out", "jpeg:30");
  std::vector<std::string> said;
  saying.announce = [&](const std::string& cost) {
    for (const auto& entry : fs::directory_iterator(folder_))
      if (entry.path() == path("out.part")) {
        for (const auto& file : fs::directory_iterator(entry.path()))
          EXPECT_EQ(file.path().filename().string().find("plan"), 0u) << file.path();
      }
    said.push_back(cost);
  };
  const auto report = pack(posix_storage(), saying);
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(says(said[0], "images: 12 to convert; of 12 tried")) << said[0];
  EXPECT_TRUE(says(said[0], "grey levels on average")) << said[0];
  EXPECT_EQ(said[0], cost_in_words(report->conversion));
  PackOptions dry = options("dry", "jpeg:30");
  dry.dry_run = true;
  const auto planned = pack(posix_storage(), dry);
  EXPECT_EQ(planned->conversion.bytes_after, report->conversion.bytes_after);
  EXPECT_NEAR(static_cast<double>(planned->bytes), static_cast<double>(report->bytes), 0.1 * report->bytes);
}

// The head of a PNG, which is all that is looked at.
std::string png_head(char depth, char colour, std::string_view chunk = "IDAT") {
  std::string png("\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\1\0\0\0\1", 24);
  png += {depth, colour, 0, 0, 0, 'c', 'r', 'c', '!'};
  return png + std::string(4, '\0') + std::string(chunk) + "crc!";
}

TEST(BeyondPixelsTest, DepthAndAlphaAreFoundInHeaders) {
  const auto words = [](const std::string& image) {
    const BeyondPixels beyond = beyond_pixels(as_bytes(image));
    return std::string(beyond.depth ? "depth " : "") + (beyond.alpha ? "alpha" : "");
  };
  EXPECT_EQ(words(png_head(8, 2)), "");
  EXPECT_EQ(words(png_head(16, 0)), "depth ");
  EXPECT_EQ(words(png_head(16, 6)), "depth alpha");
  EXPECT_EQ(words(png_head(8, 4)), "alpha");
  EXPECT_EQ(words(png_head(8, 3)), "");
  EXPECT_EQ(words(png_head(8, 3, "tRNS")), "alpha");
  std::string webp = "RIFF....WEBPVP8X" + std::string(14, '\0');
  EXPECT_EQ(words(webp), "");
  webp[20] = 0x10;
  EXPECT_EQ(words(webp), "alpha");
  const std::string whole = png_head(16, 6, "tRNS");
  for (size_t end = 0; end < whole.size(); ++end) (void)words(whole.substr(0, end));
}

TEST(BeyondPixelsTest, WhatIsLostIsInTheWords) {
  ConversionCost cost;
  cost.images = cost.tried = 3;
  EXPECT_TRUE(cost_in_words(cost).ends_with("and no pixel differs"));
  cost.deeper = 2;
  cost.transparent = 1;
  EXPECT_TRUE(says(cost_in_words(cost), "2 have 16 bits a value, of which 8 are kept"));
  EXPECT_TRUE(says(cost_in_words(cost), "1 have an alpha channel"));
  EXPECT_FALSE(cost_in_words(cost).ends_with("no pixel differs"));
}

TEST_F(ConversionTest, ShardsAreCutByWhatImagesBecome) {
  make_tree(60);
  PackOptions sized = options("out", "raw");
  sized.shards = 0;
  sized.shard_bytes = 100'000;
  const auto report = pack(posix_storage(), sized);
  ASSERT_TRUE(report.ok());
  EXPECT_GT(report->shards, 4u);  // raw takes several times what the JPEGs take
  EXPECT_LT(report->largest_shard_bytes, 200'000u);
}

TEST_F(ConversionTest, ThePlanRemembersTheConversion) {
  make_tree(10);
  PackOptions plan_only = options("out", "jpeg:77");
  plan_only.max_side = 30;
  plan_only.plan_only = true;
  ASSERT_TRUE(pack(posix_storage(), plan_only).ok());
  const std::string bytes = read_whole(posix_storage(), path("out.part/plan")).value();
  auto plan = decode_plan(as_bytes(bytes));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->conversion.quality, 77);
  EXPECT_EQ(plan->conversion.max_side, 30u);
  EXPECT_EQ(plan->cost.images, 10u);
  EXPECT_TRUE(plan->catalog.cells[0].converted || plan->catalog.cells[1].converted);
  EXPECT_EQ(encode_plan(*plan), bytes);
  // Another conversion is another pack.
  EXPECT_EQ(pack(posix_storage(), options("out", "jpeg:78")).status().code(), Code::invalid);
}

TEST_F(ConversionTest, EveryFormatTakesIt) {
  make_tree(12);
  for (const Format* format : formats()) {
    if ((!format->layout && !format->create) || format->arrays_only) continue;
    PackOptions to_raw = options("out", "raw");
    to_raw.format = format->name;
    to_raw.shards = 0;
    const auto report = pack(posix_storage(), to_raw);
    ASSERT_TRUE(report.ok()) << format->name << ": " << report.status().text();
    const auto checked = verify(posix_storage(), path("out"));
    ASSERT_TRUE(checked.ok()) << format->name;
    EXPECT_EQ(checked->findings_count, 0u) << format->name;
    const auto dataset = open("out");
    const auto packed = read(*dataset, "class1/4", "ppm");
    EXPECT_EQ(pixels(packed).pixels, pixels(as_bytes(contents("tree")["class1/4.jpg"])).pixels)
        << format->name;
    fs::remove_all(path("out"));
  }
}

}  // namespace
}  // namespace packtrain
