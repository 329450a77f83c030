#include "packtrain/transform.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "base/test_counts.h"
#include "decode/allocations_test_support.h"
#include "decode/crop.h"
#include "decode/exif.h"
#include "decode/jpeg_test_support.h"
#include "decode/kernel_sets.h"
#include "decode/row_resizer.h"

namespace packtrain {
namespace {

std::unique_ptr<ImageReader> reader_of(const ImageSpec& spec, uint64_t memory = 64 << 20) {
  auto reader = ImageReader::make(spec, memory);
  EXPECT_TRUE(reader.ok()) << reader.status().text();
  return std::move(*reader);
}

// The plan of `key` carried out on a wholly decoded image by the scalar kernels.
std::vector<std::byte> expected_of(const Image& whole, const ImageSpec& spec, uint64_t key) {
  class Sink final : public RowSink {
   public:
    explicit Sink(size_t row_bytes) : row_bytes_(row_bytes) {}
    void take_row(const uint8_t* rgb) override {
      const auto* begin = reinterpret_cast<const std::byte*>(rgb);
      pixels.insert(pixels.end(), begin, begin + row_bytes_);
    }
    std::vector<std::byte> pixels;

   private:
    size_t row_bytes_;
  };
  const CropPlan plan = plan_crop(spec, whole.shape.width, whole.shape.height, key);
  const auto request = [](const AxisCrop& crop) {
    return ResizeAxis::Request{.length = double(crop.length),
                               .clamp_begin = crop.from,
                               .clamp_end = crop.from + crop.length,
                               .resized = crop.resized,
                               .window = crop.window,
                               .outputs = crop.output};
  };
  ResizeAxis x, y;
  auto across = request(plan.x);
  across.reversed = plan.mirrored;
  x.set(across);
  y.set(request(plan.y));
  const auto loss = [](const AxisCrop& axis) { return double(axis.length) - axis.resized; };
  const bool down_first = loss(plan.y) > 2 * std::max(loss(plan.x), 0.0);
  Sink sink(size_t{3} * spec.width);
  RowResizer resizer(kScalarResample);
  resizer.start(x, y, 0, down_first ? ResizeOrder::down_first : ResizeOrder::across_first, sink);
  for (uint32_t row = y.begin(); row < y.end(); ++row) {
    std::vector<uint8_t> rgb;
    const size_t channels = whole.shape.channels;
    for (size_t i = 0; i < whole.shape.width; ++i)
      for (size_t c = 0; c < 3; ++c)
        rgb.push_back(
            whole.pixels[(row * size_t{whole.shape.width} + i) * channels + (channels == 3 ? c : 0)]);
    rgb.resize(rgb.size() + kRowSlack);
    const uint8_t* pointer = rgb.data();
    resizer.take_rows(&pointer, 1);
  }
  return sink.pixels;
}

ImageSpec bytes_spec(uint32_t width, uint32_t height) {
  ImageSpec spec;
  spec.width = width;
  spec.height = height;
  spec.layout = PixelLayout::hwc;
  spec.flip = 0.5;
  return spec;
}

TEST(ImageReaderTest, RegionsAreTheSamePixelsAsWholeImages) {
  const Encoding encodings[] = {{1, 1},       {2, 1},
                                {2, 2},       {1, 2},
                                {4, 1},       {4, 2},
                                {2, 2, true}, {2, 2, false, false, 3},
                                {1, 1, true}, {2, 1, false, false, 1}};
  for (const auto& encoding : encodings)
    for (const auto& [width, height] : {std::pair{301u, 203u}, {64u, 128u}, {7u, 300u}, {1u, 1u}}) {
      const auto encoded = encode(photo(width, height), encoding);
      const auto whole = decode_jpeg(encoded);
      ASSERT_TRUE(whole.ok()) << whole.status().text();
      for (const double scale : {0.0005, 0.02, 0.5}) {
        ImageSpec spec = bytes_spec(31, 23);
        spec.scale_low = scale;
        spec.scale_high = std::min(1.0, scale * 2);
        const auto reader = reader_of(spec);
        std::vector<std::byte> slot(spec.bytes());
        for (uint64_t key = 0; key < count_of<uint64_t>(4, 25, 25); ++key) {
          const Status status = reader->read(encoded, key, slot);
          ASSERT_TRUE(status.ok()) << status.text();
          ASSERT_EQ(slot, expected_of(*whole, spec, key)) << encoding.across << "x" << encoding.down << " of "
                                                          << width << " x " << height << ", key " << key;
        }
      }
    }
}

TEST(ImageReaderTest, GreyAndInksBecomeRgb) {
  const auto grey = encode(photo(90, 70, 1), {});
  const ImageSpec spec = bytes_spec(40, 30);
  const auto reader = reader_of(spec);
  std::vector<std::byte> slot(spec.bytes());
  for (uint64_t key = 0; key < 20; ++key) {
    ASSERT_TRUE(reader->read(grey, key, slot).ok());
    EXPECT_EQ(slot, expected_of(*decode_jpeg(grey), spec, key));
  }
  // Stored inverted: much of everything is white, and nothing black.
  Image inks{{16, 16, 4}, std::vector<uint8_t>(16 * 16 * 4, 255)};
  ASSERT_TRUE(reader->read(encode(inks, {.inks = true}), 0, slot).ok());
  for (const std::byte value : slot) ASSERT_NEAR(int(value), 255, 3);
  std::fill(inks.pixels.begin(), inks.pixels.end(), uint8_t{0});
  ASSERT_TRUE(reader->read(encode(inks, {.inks = true}), 0, slot).ok());
  for (const std::byte value : slot) ASSERT_NEAR(int(value), 0, 3);
}

TEST(ImageReaderTest, EveryTruncationIsCorruptWhateverTheCrop) {
  for (const bool progressive : {false, true}) {
    const auto encoded = encode(photo(64, 48), {.across = 2, .down = 2, .progressive = progressive});
    const ImageSpec spec = bytes_spec(8, 8);
    const auto reader = reader_of(spec);
    std::vector<std::byte> slot(spec.bytes());
    for (size_t cut = 0; cut < encoded.size(); ++cut) {
      const Status status = reader->read(Bytes(encoded).first(cut), cut, slot);
      ASSERT_EQ(status.code(), Code::corrupt) << cut << " of " << encoded.size() << ": " << status.text();
    }
    ASSERT_TRUE(reader->read(encoded, 0, slot).ok());  // and the reader goes on
  }
}

TEST(ImageReaderTest, DamagedBytesNeverCrash) {
  ImageSpec spec = bytes_spec(16, 16);
  spec.exif_orientation = true;
  const auto reader = reader_of(spec, 1 << 20);
  std::vector<std::byte> slot(spec.bytes());
  std::mt19937 random(5);
  for (const bool progressive : {false, true}) {
    const auto encoded = encode(photo(64, 48), {.across = 2, .down = 1, .progressive = progressive});
    for (int round = 0; round < 800; ++round) {
      auto damaged = encoded;
      for (int flips = 0; flips < 3; ++flips) damaged[random() % damaged.size()] = std::byte(random());
      const auto shape = image_shape(damaged);
      if (shape && uint64_t{shape->width} * shape->height > 1 << 22) continue;  // legal, but slow
      (void)reader->read(damaged, static_cast<uint64_t>(round), slot);
    }
  }
}

TEST(ImageReaderTest, OdditiesAreCountedAndPassedOver) {
  const auto encoded = encode(photo(64, 48), {});
  auto odd = encoded;
  const std::string_view stray = "stray";
  const auto* bytes = reinterpret_cast<const std::byte*>(stray.data());
  odd.insert(odd.begin() + 20, bytes, bytes + stray.size());  // behind the first segment
  const ImageSpec spec = bytes_spec(32, 32);
  const auto reader = reader_of(spec);
  std::vector<std::byte> slot(spec.bytes()), expected(spec.bytes());
  ASSERT_TRUE(reader->read(encoded, 9, expected).ok());
  EXPECT_EQ(reader->warnings(), 0u);
  const Status status = reader->read(odd, 9, slot);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(slot, expected);
  EXPECT_EQ(reader->warnings(), 1u);
}

TEST(ImageReaderTest, ALongImageStreamsAndALargeProgressiveOneIsRefused) {
  constexpr uint64_t kMemory = 1 << 20;
  ImageSpec spec = bytes_spec(64, 64);
  spec.crop = CropKind::resize;
  const auto reader = reader_of(spec, kMemory);
  std::vector<std::byte> slot(spec.bytes());
  for (const auto& [width, height] : {std::pair{65500u, 24u}, {24u, 65500u}, {1500u, 1500u}}) {
    const Image image = photo(width, height);
    const auto baseline = encode(image, {.across = 2, .down = 2});
    const Status status = reader->read(baseline, 0, slot);
    ASSERT_TRUE(status.ok()) << status.text();
    if (width == 1500) {
      const Status refused =
          reader->read(encode(image, {.across = 2, .down = 2, .progressive = true}), 0, slot);
      EXPECT_EQ(refused.code(), Code::unsupported);
      EXPECT_NE(refused.text().find("baseline JPEG"), std::string::npos) << refused.text();
      EXPECT_GT(reader->memory_wanted(), kMemory);
      const auto larger = reader_of(spec, reader->memory_wanted());  // which is neither more nor less
      EXPECT_TRUE(larger->read(encode(image, {.across = 2, .down = 2, .progressive = true}), 0, slot).ok());
      EXPECT_EQ(larger->memory_wanted(), 0u);
      EXPECT_TRUE(reader->read(baseline, 0, slot).ok());
      EXPECT_EQ(reader->memory_wanted(), 0u);
    }
  }
}

TEST(ImageReaderTest, OtherBytesAreNamed) {
  const ImageSpec spec = bytes_spec(8, 8);
  const auto reader = reader_of(spec);
  std::vector<std::byte> slot(spec.bytes());
  const auto read = [&](std::string_view text) {
    return reader->read(std::as_bytes(std::span(text)), 0, slot);
  };
  EXPECT_EQ(read("").code(), Code::corrupt);
  EXPECT_EQ(read("hello").code(), Code::corrupt);
  EXPECT_EQ(read("GIF89a\1\0\1\0").code(), Code::unsupported);
  EXPECT_NE(read("\x89PNG\r\n\x1A\n").code(), Code::ok);
  EXPECT_NE(read("RIFF\1\2\3\4WEBPVP8 ").code(), Code::ok);
}

TEST(ImageReaderTest, ImagesOfOtherKindsAreUnsupportedByName) {
  using namespace std::string_literals;
  const ImageSpec spec = bytes_spec(8, 8);
  const auto reader = reader_of(spec);
  std::vector<std::byte> slot(spec.bytes());
  const std::pair<std::string, std::string> kinds[] = {
      {"GIF87a\1\0"s, "GIF"},
      {"BM"s + std::string(12, '\0') + "\x28\0\0\0"s, "BMP"},
      {"II*\0\x08\0\0\0"s, "TIFF"},
      {"MM\0*\0\0\0\x08"s, "TIFF"},
      {"II+\0\x08\0\0\0"s, "BigTIFF"},
      {"MM\0+\0\x08\0\0"s, "BigTIFF"},
      {"\0\0\0\x1C"
       "ftypavif\0\0\0\0"s,
       "AVIF"},
      {"\0\0\0\x18"
       "ftypheic\0\0\0\0"s,
       "HEIC"},
      {"\0\0\0\x18"
       "ftypmif1\0\0\0\0"s,
       "HEIF"},
      {"\xFF\x0A\xFA\x1F"s, "JPEG XL"},
      {"\0\0\0\x0CJXL \r\n\x87\n\0"s, "JPEG XL"},
      {"\0\0\0\x0CjP  \r\n\x87\n\0"s, "JPEG 2000"},
      {"\xFF\x4F\xFF\x51\0\x2F"s, "JPEG 2000"},
  };
  for (const auto& [bytes, name] : kinds) {
    const Status status = reader->read(std::as_bytes(std::span(bytes)), 0, slot);
    EXPECT_EQ(status.code(), Code::unsupported) << name;
    EXPECT_TRUE(status.message().starts_with(name + " images are not decoded")) << status.message();
  }
}

TEST(ImageReaderTest, TheSecondRoundAllocatesNothing) {
  std::vector<std::vector<std::byte>> images;
  for (uint32_t i = 0; i < 8; ++i)
    images.push_back(encode(photo(200 + 37 * i, 150 + 20 * i, 3, i), {.across = i % 2 ? 2 : 1, .down = 1}));
  ImageSpec spec;
  spec.width = spec.height = 96;
  spec.flip = 0.5;
  spec.type = PixelType::float32;
  spec.normalise = true;
  const auto reader = reader_of(spec);
  std::vector<std::byte> slot(spec.bytes());
  uint64_t counted = 0;
  for (int round = 0; round < 2; ++round) {
    counted = allocation_count();
    for (uint64_t key = 0; key < 200; ++key) {
      const bool ok = reader->read(images[key % images.size()], key, slot).ok();
      ASSERT_TRUE(ok);
    }
  }
  EXPECT_EQ(allocation_count() - counted, 0u);
  EXPECT_GT(counted, 0u);
}

// The largest crop of a run may come in any of its epochs.
TEST(ImageReaderTest, ACropLargerThanAnyBeforeAllocatesNothing) {
  const auto image = encode(photo(1500, 1200), {.across = 2, .down = 2});
  ImageSpec spec;
  spec.width = spec.height = 96;
  spec.type = PixelType::float32;
  spec.normalise = true;
  std::vector<std::byte> slot(spec.bytes());
  spec.scale_low = 0.4;
  spec.scale_high = 0.5;
  const auto reader = reader_of(spec);
  for (uint64_t key = 0; key < 3; ++key) ASSERT_TRUE(reader->read(image, key, slot).ok());
  const auto larger = encode(photo(2000, 1600), {.across = 2, .down = 2});
  ASSERT_TRUE(reader->read(larger, 0, slot).ok());  // libjpeg's memory grows with the image
  ASSERT_TRUE(reader->read(larger, 1, slot).ok());
  const uint64_t counted = allocation_count();
  for (uint64_t key = 2; key < 40; ++key) {
    const bool ok = reader->read(larger, key, slot).ok();
    ASSERT_TRUE(ok);
  }
  EXPECT_EQ(allocation_count() - counted, 0u);
}

TEST(ImageReaderTest, ShrunkDecodingStaysClose) {
  const auto encoded = encode(photo(1200, 900), {.across = 2, .down = 2});
  ImageSpec exact = bytes_spec(100, 75), fast = exact;
  exact.crop = fast.crop = CropKind::resize;
  fast.dct_scaling = true;
  std::vector<std::byte> a(exact.bytes()), b(exact.bytes());
  ASSERT_TRUE(reader_of(exact)->read(encoded, 0, a).ok());
  ASSERT_TRUE(reader_of(fast)->read(encoded, 0, b).ok());
  EXPECT_NE(a, b);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(int(a[i]) - int(b[i]));
  EXPECT_LT(sum / double(a.size()), 4);
}

TEST(ImageSpecTest, RefusesWhatCannotBeMeant) {
  EXPECT_TRUE(ImageSpec{}.check().ok());
  const auto refused = [](auto change) {
    ImageSpec spec;
    change(spec);
    return spec.check().code() == Code::invalid;
  };
  EXPECT_TRUE(refused([](ImageSpec& spec) { spec.width = 0; }));
  EXPECT_TRUE(refused([](ImageSpec& spec) { spec.height = 1 << 20; }));
  EXPECT_TRUE(refused([](ImageSpec& spec) { spec.scale_low = 0; }));
  EXPECT_TRUE(refused([](ImageSpec& spec) { spec.scale_low = std::nan(""); }));
  EXPECT_TRUE(refused([](ImageSpec& spec) { spec.ratio_low = 2; }));
  EXPECT_TRUE(refused([](ImageSpec& spec) { spec.flip = 1.5; }));
  EXPECT_TRUE(refused([](ImageSpec& spec) { spec.normalise = true; }));  // of bytes
  EXPECT_TRUE(refused([](ImageSpec& spec) { spec.crop = CropKind::centre, spec.resize = 200; }));
  EXPECT_TRUE(refused([](ImageSpec& spec) {
    spec.type = PixelType::float32;
    spec.normalise = true;
    spec.deviation[2] = 0;
  }));
}

TEST(CropTest, CentreIsTorchvisions) {
  ImageSpec spec;
  spec.crop = CropKind::centre;
  // Python's int(256 * 500 / 375) and round((341 - 224) / 2.0), half to even.
  const CropPlan plan = plan_crop(spec, 500, 375, 0);
  EXPECT_EQ(plan.x.resized, 341u);
  EXPECT_EQ(plan.x.window, 58u);
  EXPECT_EQ(plan.y.resized, 256u);
  EXPECT_EQ(plan.y.window, 16u);
  const CropBox box = draw_crop(spec, 500, 375, 0);
  EXPECT_DOUBLE_EQ(box.left, 58 * 500.0 / 341);
  EXPECT_DOUBLE_EQ(box.height, 224 * 375.0 / 256);
  EXPECT_FALSE(box.mirrored);
}

TEST(CropTest, BoxesStayInsideAnyImage) {
  ImageSpec spec;
  spec.flip = 0.25;
  uint64_t mirrored = 0, count = 0;
  for (const auto& [width, height] : {std::pair{1u, 1u}, {1u, 1000u}, {1000u, 1u}, {3u, 2u}, {500u, 375u}})
    for (uint64_t key = 0; key < 2000; ++key, ++count) {
      const CropBox box = draw_crop(spec, width, height, key);
      ASSERT_GE(box.left, 0);
      ASSERT_GE(box.width, 1);
      ASSERT_LE(box.left + box.width, width);
      ASSERT_GE(box.top, 0);
      ASSERT_GE(box.height, 1);
      ASSERT_LE(box.top + box.height, height);
      mirrored += box.mirrored;
    }
  EXPECT_NEAR(double(mirrored) / double(count), 0.25, 0.03);
}

TEST(ExifTest, OrientationIsFoundInEitherByteOrderAndNonsenseIsUpright) {
  const auto read = [](std::string_view text) { return exif_orientation(std::as_bytes(std::span(text))); };
  const std::string_view little("II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0", 22);
  const std::string_view big("MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\x08\0\0", 22);
  EXPECT_EQ(read(little), 6);
  EXPECT_EQ(read(big), 8);
  for (size_t cut = 0; cut < little.size(); ++cut) EXPECT_EQ(read(little.substr(0, cut)), 1);
  std::string nonsense(little);
  nonsense[18] = 9;
  EXPECT_EQ(read(nonsense), 1);
}

}  // namespace
}  // namespace packtrain
