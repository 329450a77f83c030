// Loading photographs from real files: the same bits whatever brings them, and nothing allocated on the way.
#include <gtest/gtest.h>

#include "base/keyed_random.h"
#include "load/allocations_test_support.h"
#include "pack/test_dataset.h"
#include "packtrain/load.h"

namespace packtrain {
namespace {

// JPEGs of many sizes.
std::string photo_of(uint64_t number) {
  KeyedRandom random(number);
  Image image{
      {static_cast<uint32_t>(40 + random.below(400)), static_cast<uint32_t>(40 + random.below(300)), 3}, {}};
  image.pixels.resize(size_t{image.shape.width} * image.shape.height * 3);
  uint64_t at = 0;
  for (uint8_t& pixel : image.pixels)
    pixel = static_cast<uint8_t>(at++ / 7 + (random.below(4) == 0 ? random.below(40) : 0));
  auto encoded = encode_jpeg(image, 85, number % 3 == 0 ? Chroma::s444 : Chroma::s420);
  EXPECT_TRUE(encoded.ok());
  return std::string(as_text(*encoded));
}

class PhotoLoadTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kPhotos = 96;

  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    std::vector<std::vector<TestSample>> shards(3);
    for (uint64_t i = 0; i < kPhotos; ++i)
      shards[i % 3].push_back(
          {.key = "photo" + std::to_string(i), .fields = {{"jpg", photo_of(i), ""}}, .label = 0});
    // Two of them with bytes that do not belong there, which decoders pass over.
    for (const size_t odd : {3u, 9u}) shards[1][odd].fields[0].bytes.insert(20, "stray");
    put_dataset(posix_storage(), *folder_ / "photos", shards, {"a"});
    std::vector<std::vector<TestSample>> large(2);
    for (uint64_t i = 0; i < 2; ++i) large[i] = make_samples(40, 400'000, i);
    put_dataset(posix_storage(), *folder_ / "large", large, {"a", "b", "c"});
  }
  static void TearDownTestSuite() { folder_ = nullptr; }

  static LoadSpec spec(Storage& storage, std::string_view name) {
    LoadSpec spec;
    auto dataset = Dataset::open(storage, *folder_ / name);
    EXPECT_TRUE(dataset.ok()) << dataset.status().text();
    spec.parts.resize(1);
    spec.parts[0].dataset = *dataset;
    spec.parts[0].samples = (*dataset)->samples();
    spec.order.global_batch = 16;
    spec.order.seed = 7;
    spec.memory = 512 << 20;
    return spec;
  }
  static LoadSpec crops(Storage& storage = posix_storage()) {
    LoadSpec wanted = spec(storage, "photos");
    ImageSpec image;
    image.width = image.height = 48;
    image.flip = 0.5;
    image.normalise = true;
    image.mean = {0.4f, 0.5f, 0.6f};
    image.type = PixelType::float32;
    wanted.image = image;
    wanted.parts[0].image_fields = {wanted.parts[0].dataset->manifest().field_id("jpg")};
    return wanted;
  }
  static std::unique_ptr<Loader> make(LoadSpec wanted) {
    auto loader = Loader::make(std::move(wanted));
    EXPECT_TRUE(loader.ok()) << loader.status().text();
    return loader.ok() ? std::move(*loader) : nullptr;
  }
  // Every bit of an epoch, hashed batch by batch.
  static std::vector<uint64_t> epoch_of(Loader& loader, uint64_t epoch) {
    std::vector<uint64_t> hashes;
    EXPECT_TRUE(loader.start(epoch).ok());
    for (;;) {
      auto batch = loader.next();
      EXPECT_TRUE(batch.ok()) << batch.status().text();
      if (!batch.ok() || !*batch) return hashes;
      hashes.push_back(xxh64((*batch)->images(), xxh64(std::as_bytes((*batch)->indices()))));
    }
  }
  // Whether epochs come without any allocation but `of_order`, those of the next one, sooner or later:
  // buffers grow to what the largest samples that come together need.
  static void expect_rest(LoadSpec wanted, uint64_t of_order) {
    auto loader = make(std::move(wanted));
    ASSERT_NE(loader, nullptr);
    int quiet = 0;
    uint64_t counted = 0;
    for (uint64_t epoch = 0; epoch < 60 && quiet < 3; ++epoch) {
      ASSERT_TRUE(loader->start(epoch).ok());
      const uint64_t before = allocations_of_all_threads();
      for (;;) {
        auto batch = loader->next();
        ASSERT_TRUE(batch.ok());
        if (!*batch) break;
      }
      counted = allocations_of_all_threads() - before;
      quiet = counted <= of_order ? quiet + 1 : 0;
    }
    EXPECT_EQ(quiet, 3) << counted << " in the last epoch";
  }

  static std::unique_ptr<TemporaryFolder> folder_;
};
std::unique_ptr<TemporaryFolder> PhotoLoadTest::folder_;

TEST_F(PhotoLoadTest, ThreadsPrefetchAndBackendDoNotChangeABit) {
  const auto expected = epoch_of(*make(crops()), 3);
  ASSERT_EQ(expected.size(), kPhotos / 16);
  for (const ReadBackend backend : {ReadBackend::pool, ReadBackend::io_uring}) {
    const auto storage = make_posix_storage({.backend = backend});
    for (const uint32_t threads : {1u, 16u}) {
      for (const uint32_t prefetch : {1u, 3u, 10u}) {
        LoadSpec other = crops(*storage);
        other.threads = threads;
        other.prefetch = prefetch;
        auto loader = make(other);
        EXPECT_EQ(epoch_of(*loader, 3), expected) << threads << " threads, " << prefetch << " batches ahead";
        EXPECT_NE(epoch_of(*loader, 4), expected);  // another epoch has other crops
      }
    }
  }
}

TEST_F(PhotoLoadTest, HarmlessOdditiesAreReported) {
  auto loader = make(crops());
  epoch_of(*loader, 0);
  const LoadReport report = loader->report();
  EXPECT_EQ(report.errors, 0u);
  EXPECT_GE(report.warnings, 2u);  // and perhaps those of the next epoch, which is decoded ahead
  EXPECT_LE(report.warnings, 4u);
  EXPECT_NE(report.text().find("2 oddities in images were passed over"), std::string::npos) << report.text();
}

TEST_F(PhotoLoadTest, ImagesComeToAllocateNothing) {
  LoadSpec wanted = crops();
  wanted.threads = 2;
  expect_rest(wanted, 0);
}

// More bytes are planned than may be read ahead, in all sizes: each read has to wait for the room of another.
TEST_F(PhotoLoadTest, ReadingAheadComesToAllocateNothing) {
  for (const ReadBackend backend : {ReadBackend::pool, ReadBackend::io_uring}) {
    const auto storage = make_posix_storage({.backend = backend});
    LoadSpec wanted = spec(*storage, "large");
    const Manifest& manifest = wanted.parts[0].dataset->manifest();
    wanted.parts[0].fields = {manifest.field_id("cls"), manifest.field_id("jpg")};
    wanted.order.global_batch = 8;
    wanted.prefetch = 10;
    wanted.threads = 2;
    expect_rest(wanted, 0);
  }
}

// Windows and their pieces are drawn anew, so that some is allocated; but nothing for a sample or a read.
TEST_F(PhotoLoadTest, StreamsAllocateForTheirWindowsOnly) {
  LoadSpec wanted = spec(posix_storage(), "large");
  const Manifest& manifest = wanted.parts[0].dataset->manifest();
  wanted.parts[0].fields = {manifest.field_id("jpg")};
  wanted.order.kind = OrderKind::streams;
  wanted.order.chains = 1;
  wanted.order.piece_bytes = 1 << 20;
  wanted.order.window_bytes = 8 << 20;
  wanted.order.global_batch = 8;
  wanted.threads = 2;
  expect_rest(wanted, 40);  // of 80 samples and 16 pieces
}

}  // namespace
}  // namespace packtrain
