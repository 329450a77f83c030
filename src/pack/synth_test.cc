#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "base/hash.h"
#include "base/little_endian.h"
#include "pack/synth_sample.h"
#include "packtrain/decode.h"
#include "packtrain/pack.h"
#include "packtrain/storage.h"

namespace packtrain {
namespace {

namespace fs = std::filesystem;

class SynthTest : public ::testing::Test {
 protected:
  SynthTest() {
    std::string pattern = (fs::temp_directory_path() / "synth-test-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~SynthTest() override { fs::remove_all(root_); }

  SynthOptions options(SynthKind kind, const std::string& name, uint64_t samples) {
    SynthOptions made;
    made.kind = kind;
    made.out = (root_ / name).string();
    made.samples = samples;
    made.classes = 5;
    made.jobs = 2;
    return made;
  }

  // Relative path to bytes, of every file.
  std::map<std::string, std::string> files(const std::string& folder) {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      auto bytes = read_whole(storage_, entry.path().string());
      EXPECT_TRUE(bytes.ok()) << bytes.status().text();
      found[fs::relative(entry.path(), folder).string()] = std::move(bytes).value();
    }
    return found;
  }

  Storage& storage_ = posix_storage();
  fs::path root_;
};

TEST_F(SynthTest, BytesDependOnSeedAndIndexAlone) {
  for (const SynthKind kind : {SynthKind::photos, SynthKind::audio, SynthKind::text, SynthKind::fields}) {
    const std::string name = "kind" + std::to_string(static_cast<int>(kind));
    SynthOptions one = options(kind, name + "-one", 17);
    one.jobs = 1;
    SynthOptions three = options(kind, name + "-three", 17);
    three.jobs = 3;
    SynthOptions longer = options(kind, name + "-longer", 30);
    SynthOptions other = options(kind, name + "-other", 17);
    other.seed = 1;
    for (const SynthOptions& each : {one, three, longer, other}) {
      const auto report = synth(storage_, each);
      ASSERT_TRUE(report.ok()) << report.status().text();
      EXPECT_EQ(report->files, each.samples);
    }
    const auto expected = files(one.out);
    EXPECT_EQ(expected.size(), 17u);
    EXPECT_EQ(files(three.out), expected);
    const auto more = files(longer.out);
    for (const auto& [path, bytes] : expected) EXPECT_EQ(more.at(path), bytes) << path;
    const auto different = files(other.out);
    for (const auto& [path, bytes] : expected) EXPECT_NE(different.at(path), bytes) << path;
  }
}

// What a seed gives is a promise to benches and tests: pixels come from integers alone, so every machine
// agrees.
TEST_F(SynthTest, BytesAreTheSameOnEveryMachine) {
  const SynthKeys keys{.seed = 42, .index = 7, .label = 2, .classes = 5};
  EXPECT_EQ(xxh128_hex(synth_recording(keys)), "5f921765adbc3c9b4ec17f908e244a68");
  EXPECT_EQ(xxh128_hex(synth_document(keys)), "f3b0ace9a0c7feadc9cda65879c897b2");
  EXPECT_EQ(xxh128_hex(synth_field(keys)), "f8dcf1a4cb213d05fd296a26447ca7e0");
}

TEST_F(SynthTest, PhotosHaveTheStatisticsOfImageNet) {
  double bytes = 0, pixels = 0;
  std::map<std::string, int> samplings;
  constexpr int kPhotos = 200;
  for (uint64_t i = 0; i < kPhotos; ++i) {
    const auto encoded =
        synth_photo({.seed = 3, .index = i, .label = static_cast<uint32_t>(i % 10), .classes = 10});
    ASSERT_TRUE(encoded.ok()) << encoded.status().text();
    const auto shape = image_shape(*encoded);
    ASSERT_TRUE(shape);
    const auto image = decode_jpeg(*encoded);
    ASSERT_TRUE(image.ok()) << image.status().text();
    EXPECT_EQ(image->shape, *shape);
    bytes += static_cast<double>(encoded->size());
    pixels += double{1} * shape->width * shape->height;
    // The sampling factors of the first component stand 11 bytes behind the frame's marker.
    const std::string_view text = as_text(*encoded);
    const size_t frame = text.find("\xFF\xC0");
    ASSERT_NE(frame, std::string_view::npos);
    ++samplings[shape->channels == 1 ? "grey" : std::to_string(int{text[frame + 11]})];
  }
  EXPECT_GT(bytes / kPhotos, 80e3);
  EXPECT_LT(bytes / kPhotos, 140e3);
  EXPECT_GT(pixels / kPhotos, 0.15e6);
  EXPECT_LT(pixels / kPhotos, 0.25e6);
  EXPECT_GT(samplings["34"], kPhotos / 2) << "4:2:0, factors 2 x 2";
  EXPECT_GT(samplings["17"], kPhotos / 6) << "4:4:4, factors 1 x 1";
  EXPECT_GT(samplings["33"], 0) << "4:2:2, factors 2 x 1";
}

TEST_F(SynthTest, ClassesCanBeToldApartByColour) {
  // The mean of red minus blue over the middle of a photo separates a red class from a blue one.
  const auto warmth = [](uint32_t label) {
    double sum = 0;
    for (uint64_t i = 0; i < 20; ++i) {
      const auto image = decode_jpeg(*synth_photo({.seed = 1, .index = i, .label = label, .classes = 3}), 64);
      if (image->shape.channels != 3) continue;
      for (size_t p = 0; p + 2 < image->pixels.size(); p += 3) sum += image->pixels[p] - image->pixels[p + 2];
    }
    return sum;
  };
  EXPECT_GT(warmth(0), warmth(2));
}

TEST_F(SynthTest, RecordingsAreWholeWavFiles) {
  double bytes = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    const auto wav =
        synth_recording({.seed = 0, .index = i, .label = static_cast<uint32_t>(i % 10), .classes = 10});
    EXPECT_EQ(media_kind(wav), MediaKind::wav);
    EXPECT_EQ(load_le<uint32_t>(wav.data() + 4), wav.size() - 8);
    EXPECT_EQ(load_le<uint32_t>(wav.data() + 24), 8000u);
    EXPECT_EQ(load_le<uint16_t>(wav.data() + 34), 16u);
    EXPECT_EQ(load_le<uint32_t>(wav.data() + 40), wav.size() - 44);
    bytes += static_cast<double>(wav.size());
  }
  EXPECT_NEAR(bytes / 100, 7000, 500);
}

TEST_F(SynthTest, FieldsAreWholeNpyFiles) {
  const auto npy = synth_field({.seed = 0, .index = 3, .label = 1, .classes = 4});
  EXPECT_EQ(media_kind(npy), MediaKind::npy);
  const size_t header = load_le<uint16_t>(npy.data() + 8);
  EXPECT_EQ((10 + header) % 64, 0u);
  EXPECT_EQ(npy.size(), 10 + header + 3 * 64 * 64 * sizeof(float));
  const std::string_view text = as_text(npy);
  EXPECT_NE(text.find("'shape': (3, 64, 64)"), std::string_view::npos);
  EXPECT_EQ(text[10 + header - 1], '\n');
  for (size_t at = 10 + header; at < npy.size(); at += sizeof(float)) {
    EXPECT_LT(std::abs(load_le<float>(npy.data() + at)), 4.0f);
  }
}

TEST_F(SynthTest, DocumentsAreTextWithWordsOfTheirClass) {
  const auto text = synth_document({.seed = 0, .index = 3, .label = 1, .classes = 4});
  EXPECT_EQ(media_kind(text), MediaKind::text);
  EXPECT_NE(as_text(text).find(synth_class_name(SynthKind::text, 1)), std::string_view::npos);
}

TEST_F(SynthTest, SplitsHoldATenth) {
  SynthOptions split = options(SynthKind::text, "split", 100);
  split.splits = true;
  const auto report = synth(storage_, split);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(files(split.out + "/train").size(), 90u);
  EXPECT_EQ(files(split.out + "/val").size(), 10u);
  uint64_t folders = 1;
  for (const auto& entry : fs::recursive_directory_iterator(split.out)) folders += entry.is_directory();
  EXPECT_EQ(report->folders, folders);
}

TEST_F(SynthTest, ClassNamesAreUnique) {
  for (const SynthKind kind : {SynthKind::photos, SynthKind::audio}) {
    std::set<std::string> names;
    for (uint32_t label = 0; label < 1000; ++label) names.insert(synth_class_name(kind, label));
    EXPECT_EQ(names.size(), 1000u);
  }
}

TEST_F(SynthTest, ExistingTargetIsRefused) {
  const SynthOptions target = options(SynthKind::text, "taken", 3);
  fs::create_directories(target.out);
  const auto report = synth(storage_, target);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), Code::invalid);
  EXPECT_TRUE(fs::is_empty(target.out));
}

TEST_F(SynthTest, PartOfAKilledRunIsReplacedAndNothingElseIs) {
  const SynthOptions target = options(SynthKind::text, "again", 3);
  const std::string part = target.out + ".part";
  fs::create_directories(part + "/precious");
  EXPECT_EQ(synth(storage_, target).status().code(), Code::invalid);
  EXPECT_TRUE(fs::exists(part + "/precious"));
  ASSERT_TRUE(write_whole(storage_, part + "/.packtrain-synth", {}).ok());
  const auto report = synth(storage_, target);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(files(target.out).size(), 3u);
  EXPECT_FALSE(fs::exists(target.out + "/precious"));
  EXPECT_FALSE(fs::exists(part));
}

TEST_F(SynthTest, StoppedRunLeavesNothing) {
  SynthOptions stopped = options(SynthKind::audio, "stopped", 500);
  stopped.progress = [](const ProgressEvent& event) {
    EXPECT_EQ(event.phase, "synth");
    EXPECT_EQ(event.unit, "files");
    return false;
  };
  const auto report = synth(storage_, stopped);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), Code::stopped);
  EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(SynthTest, DryRunSaysWhatItWouldTakeAndWritesNothing) {
  SynthOptions dry = options(SynthKind::photos, "dry", 50);
  dry.dry_run = true;
  const auto report = synth(storage_, dry);
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_EQ(report->files, 50u);
  EXPECT_EQ(report->folders, 6u);
  EXPECT_GT(report->bytes, 4'000'000u);
  EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(SynthTest, LackOfRoomIsSaidBeforeTheFirstByte) {
  SynthOptions huge = options(SynthKind::photos, "huge", uint64_t{1} << 40);
  const auto report = synth(storage_, huge);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), Code::no_room);
  EXPECT_TRUE(fs::is_empty(root_));
}

}  // namespace
}  // namespace packtrain
