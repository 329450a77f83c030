// What pack-time conversion is made of: raw pixels in and out, whole images, progressive to baseline.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/pnm_header.h"
#include "decode/jpeg_header.h"
#include "decode/jpeg_test_support.h"
#include "packtrain/decode.h"
#include "packtrain/storage.h"
#include "packtrain/transform.h"

namespace packtrain {
namespace {

using namespace std::string_literals;

constexpr uint64_t kConvertMemory = 64 << 20;

Image read_pixels(Bytes encoded, uint32_t max_side = 0) {
  auto reader = PixelReader::make(kConvertMemory);
  Image image;
  const Status status = (*reader)->read(encoded, max_side, image);
  EXPECT_TRUE(status.ok()) << status.text();
  return image;
}

Status pixel_trouble(Bytes encoded, uint64_t memory = kConvertMemory) {
  auto reader = PixelReader::make(memory);
  Image image;
  return (*reader)->read(encoded, 0, image);
}

std::vector<std::byte> baseline_of(Bytes jpeg) {
  std::vector<std::byte> out;
  const Status status = recode_as_baseline(jpeg, kConvertMemory, out);
  EXPECT_TRUE(status.ok()) << status.text();
  return out;
}

bool has_marker(Bytes jpeg, uint8_t marker) {
  for (size_t at = 2; at + 4 <= jpeg.size();) {
    if (static_cast<uint8_t>(jpeg[at]) != 0xFF) return false;
    const auto found = static_cast<uint8_t>(jpeg[at + 1]);
    if (found == marker) return true;
    if (found == 0xDA) return false;
    at += 2 + (static_cast<size_t>(jpeg[at + 2]) << 8 | static_cast<size_t>(jpeg[at + 3]));
  }
  return false;
}

TEST(PnmHeaderTest, TakesWhiteSpaceAndComments) {
  const auto header = read_pnm_header(as_bytes("P6\n# made by hand\n#twice\n 640\t480 # wide\n255\nxyz"));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->width, 640u);
  EXPECT_EQ(header->height, 480u);
  EXPECT_EQ(header->channels, 3u);
  EXPECT_EQ(header->largest, 255u);
  EXPECT_EQ(header->bytes, 45u);
  EXPECT_EQ(read_pnm_header(as_bytes("P5 1 1 65535\n"))->largest, 65535u);
  EXPECT_EQ(media_kind(as_bytes("P5\n3 2\n255\nabcdef")), MediaKind::pnm);
  EXPECT_EQ(image_shape(as_bytes("P5\n3 2\n255\nabcdef")), (ImageShape{3, 2, 1}));
}

TEST(PnmHeaderTest, WhatIsNoHeaderIsRefused) {
  const std::string hostile[] = {"",
                                 "P",
                                 "P6",
                                 "P4\n8 8\n",
                                 "P61 1 255\n",
                                 "P6\n0 1\n255\n",
                                 "P6\n1 0\n255\n",
                                 "P6\n1 1\n0\n",
                                 "P6\n1 1\n65536\n",
                                 "P6\n-1 1\n255\n",
                                 "P6\n1 1\n255",
                                 "P6\n1 1\n255x",
                                 "P6\n1x1\n255\n",
                                 "P6\n2147483648 1\n255\n",
                                 "P6\n18446744073709551617 1\n255\n",
                                 "P6#\n1 1\n255\n",
                                 "P6\n# never ends",
                                 "P6\n#" + std::string(kPnmHeadBytes, 'c') + "\n1 1\n255\n"};
  for (const std::string& text : hostile) {
    EXPECT_FALSE(read_pnm_header(as_bytes(text))) << text;
    EXPECT_NE(media_kind(as_bytes(text)), MediaKind::pnm) << text;
  }
  for (size_t length = 0; length < 11; ++length)
    EXPECT_FALSE(read_pnm_header(as_bytes("P6\n1 1\n255\n"s.substr(0, length)))) << length;
}

TEST(PnmTest, GivesBackItsPixels) {
  for (const uint32_t channels : {1u, 3u}) {
    for (const auto& [width, height] : {std::pair{1u, 1u}, {7u, 5u}, {200u, 131u}}) {
      const Image image = photo(width, height, channels);
      const auto encoded = encode_pnm(image);
      ASSERT_TRUE(encoded.ok());
      const Image again = read_pixels(*encoded);
      EXPECT_EQ(again.shape, image.shape);
      EXPECT_EQ(again.pixels, image.pixels);
    }
  }
}

TEST(PnmTest, LoaderReadsIt) {
  const Image image = photo(50, 40);
  ImageSpec spec;
  spec.crop = CropKind::resize;
  spec.width = 50;
  spec.height = 40;
  spec.layout = PixelLayout::hwc;
  const auto encoded = encode_pnm(image);
  std::vector<std::byte> slot(spec.bytes());
  ASSERT_TRUE((*ImageReader::make(spec))->read(*encoded, 0, slot).ok());
  EXPECT_EQ(std::memcmp(slot.data(), image.pixels.data(), slot.size()), 0);
}

TEST(PnmTest, FewerLevelsAreSpreadOut) {
  const Image image = read_pixels(as_bytes("P5 4 1 3\n\0\1\2\3"s));
  EXPECT_EQ(image.pixels, (std::vector<uint8_t>{0, 85, 170, 255}));
}

TEST(PnmTest, DamagedOrTooDeepIsRefused) {
  EXPECT_EQ(pixel_trouble(as_bytes("P6\n2 2\n255\n12345678901"s)).code(), Code::corrupt);
  EXPECT_EQ(pixel_trouble(as_bytes("P6\n1000000 1000000\n255\nxx"s)).code(), Code::corrupt);
  EXPECT_EQ(pixel_trouble(as_bytes("P6\n2147483647 2147483647\n255\nxx"s)).code(), Code::unsupported);
  EXPECT_EQ(pixel_trouble(as_bytes("P5\n1 1\n65535\nxx"s)).code(), Code::unsupported);
}

TEST(PixelReaderTest, EqualsAWholeDecode) {
  for (const bool progressive : {false, true}) {
    const auto jpeg = encode(photo(123, 77), {.across = 2, .down = 2, .progressive = progressive});
    EXPECT_EQ(read_pixels(jpeg).pixels, decode_jpeg(jpeg)->pixels);
  }
  const auto grey = encode(photo(60, 50, 1), {});
  const Image image = read_pixels(grey);
  EXPECT_EQ(image.shape.channels, 1u);
  EXPECT_EQ(image.pixels, decode_jpeg(grey)->pixels);
}

TEST(PixelReaderTest, ShrinksAsTheTransformDoes) {
  const auto jpeg = encode(photo(301, 199), {});
  const Image image = read_pixels(jpeg, 100);
  EXPECT_EQ(image.shape, (ImageShape{100, 66, 3}));
  ImageSpec spec;
  spec.crop = CropKind::resize;
  spec.width = 100;
  spec.height = 66;
  spec.layout = PixelLayout::hwc;
  std::vector<std::byte> slot(spec.bytes());
  ASSERT_TRUE((*ImageReader::make(spec))->read(jpeg, 0, slot).ok());
  EXPECT_EQ(std::memcmp(slot.data(), image.pixels.data(), slot.size()), 0);
}

TEST(PixelReaderTest, SidesAreInProportionAndNeverGrow) {
  EXPECT_EQ(within_side({400, 300, 3}, 0), (ImageShape{400, 300, 3}));
  EXPECT_EQ(within_side({400, 300, 3}, 400), (ImageShape{400, 300, 3}));
  EXPECT_EQ(within_side({400, 300, 3}, 200), (ImageShape{200, 150, 3}));
  EXPECT_EQ(within_side({300, 401, 1}, 100), (ImageShape{75, 100, 1}));
  EXPECT_EQ(within_side({10000, 3, 3}, 100), (ImageShape{100, 1, 3}));
  EXPECT_EQ(within_side({UINT32_MAX, UINT32_MAX, 3}, UINT32_MAX - 1).width, UINT32_MAX - 1);
}

TEST(PixelReaderTest, MemoryIsBounded) {
  const auto jpeg = encode(photo(200, 200), {});
  EXPECT_EQ(pixel_trouble(jpeg, 200 * 200 * 3 - 1).code(), Code::unsupported);
  EXPECT_TRUE(pixel_trouble(jpeg, 200 * 200 * 3).ok());
  const auto progressive = encode(photo(200, 200), {.progressive = true});
  EXPECT_EQ(pixel_trouble(progressive, 200 * 200 * 3).code(), Code::unsupported);
}

TEST(BaselineTest, EveryPixelAndMarkerStays) {
  const std::string exif = "Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0"s;
  for (const Encoding& encoding :
       {Encoding{}, {.across = 2}, {.across = 2, .down = 2}, {.across = 1, .down = 2}, {.restart = 3}}) {
    Encoding progressive = encoding;
    progressive.progressive = true;
    progressive.comment = "kept";
    progressive.exif = exif;
    const auto jpeg = encode(photo(133, 98), progressive);
    ASSERT_TRUE(read_jpeg_header(jpeg)->progressive);
    const auto baseline = baseline_of(jpeg);
    ASSERT_FALSE(baseline.empty());
    EXPECT_TRUE(has_marker(baseline, 0xC0));
    EXPECT_FALSE(has_marker(baseline, 0xC2));
    EXPECT_TRUE(has_marker(baseline, 0xE0));
    EXPECT_TRUE(has_marker(baseline, 0xFE));
    EXPECT_EQ(as_text(read_jpeg_header(baseline)->exif), exif.substr(6));
    EXPECT_EQ(read_pixels(baseline).pixels, read_pixels(jpeg).pixels);
    EXPECT_EQ(std::string(as_text(baseline)).find("JFIF"), std::string(as_text(baseline)).rfind("JFIF"));
    EXPECT_TRUE(baseline_of(baseline).empty());
    EXPECT_EQ(baseline_of(jpeg), baseline);
  }
}

TEST(BaselineTest, GreyAndInksStay) {
  const auto grey = encode(photo(64, 40, 1), {.progressive = true});
  EXPECT_EQ(read_pixels(baseline_of(grey)).pixels, read_pixels(grey).pixels);
  const auto inks = encode(photo(64, 40, 4), {.progressive = true, .inks = true});
  const auto baseline = baseline_of(inks);
  EXPECT_TRUE(has_marker(baseline, 0xEE));
  EXPECT_EQ(read_pixels(baseline).pixels, read_pixels(inks).pixels);
}

TEST(BaselineTest, OtherBytesStay) {
  EXPECT_TRUE(baseline_of(encode(photo(64, 40), {})).empty());
  EXPECT_TRUE(baseline_of(as_bytes("no image at all"s)).empty());
  EXPECT_TRUE(baseline_of({}).empty());
}

TEST(BaselineTest, FileWhoseLastScansWereLeftAwayStays) {
  // The first coefficient alone: decoders make a smooth picture of it, if the file is progressive.
  const jpeg_scan_info scans[] = {{3, {0, 1, 2, 0}, 0, 0, 0, 0}, {1, {0, 0, 0, 0}, 1, 5, 0, 2}};
  const auto jpeg = encode(photo(64, 40), {.scans = scans, .scan_count = 2});
  ASSERT_TRUE(read_jpeg_header(jpeg)->progressive);
  EXPECT_TRUE(baseline_of(jpeg).empty());
}

TEST(BaselineTest, DamagedIsRefused) {
  auto jpeg = encode(photo(120, 90), {.progressive = true});
  std::vector<std::byte> out;
  for (size_t length = jpeg.size() / 4; length < jpeg.size(); length += 37) {
    const Status status = recode_as_baseline(Bytes(jpeg).first(length), kConvertMemory, out);
    EXPECT_TRUE(out.empty());
    // A file that is cut within its header is not known as progressive.
    if (read_jpeg_header(Bytes(jpeg).first(length))) {
      EXPECT_EQ(status.code(), Code::corrupt) << length;
    }
  }
  EXPECT_EQ(recode_as_baseline(jpeg, 1000, out).code(), Code::unsupported);
}

TEST(JpegHeaderTest, KnowsTheChroma) {
  const auto chroma = [](Encoding encoding, uint32_t channels = 3) {
    return read_jpeg_header(encode(photo(40, 40, channels), encoding))->chroma;
  };
  EXPECT_EQ(chroma({}), Chroma::s444);
  EXPECT_EQ(chroma({.across = 2}), Chroma::s422);
  EXPECT_EQ(chroma({.across = 2, .down = 2}), Chroma::s420);
  EXPECT_EQ(chroma({.across = 1, .down = 2}), Chroma::s444);
  EXPECT_EQ(chroma({}, 1), Chroma::grey);
}

}  // namespace
}  // namespace packtrain
