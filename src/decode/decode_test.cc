#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "packtrain/decode.h"
#include "packtrain/storage.h"

namespace packtrain {
namespace {

using namespace std::string_literals;

// 8 x 8 pixels in the four inverted colours that Adobe programs write (C 255, M 0, Y 0, K 128): a dark red.
constexpr std::string_view kCmykJpegHex =
    "ffd8ffee000e41646f626500640000000002ffdb004300080606070605080707070909080a0c140d0c0b0b0c1912130f14"
    "1d1a1f1e1d1a1c1c20242e2720222c231c1c2837292c30313434341f27393d38323c2e333432ffdb0043010909090c0b0c"
    "180d0d1832211c213232323232323232323232323232323232323232323232323232323232323232323232323232323232"
    "323232323232323232ffc00014080008000804011100021101031101041100ffc4001f0000010501010101010100000000"
    "000000000102030405060708090a0bffc400b5100002010303020403050504040000017d01020300041105122131410613"
    "516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738393a4344454647"
    "48494a535455565758595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5a6"
    "a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8"
    "f9faffc4001f0100030101010101010101010000000000000102030405060708090a0bffc400b511000201020404030407"
    "05040400010277000102031104052131061241510761711322328108144291a1b1c109233352f0156272d10a162434e125"
    "f11718191a262728292a35363738393a434445464748494a535455565758595a636465666768696a737475767778797a82"
    "838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6"
    "d7d8d9dae2e3e4e5e6e7e8e9eaf2f3f4f5f6f7f8f9faffda000e040100021103110400003f00ecebe98fc342bfffd9";

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

Image gradient(uint32_t width, uint32_t height, uint32_t channels) {
  Image image{{width, height, channels}, {}};
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x)
      for (uint32_t c = 0; c < channels; ++c)
        image.pixels.push_back(static_cast<uint8_t>((c == 0 ? x * 255 / width : y * 255 / height)));
  return image;
}

double mean_difference(const Image& a, const Image& b) {
  double sum = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) sum += std::abs(int{a.pixels[i]} - int{b.pixels[i]});
  return sum / static_cast<double>(a.pixels.size());
}

TEST(MediaKindTest, IsToldByContent) {
  const std::pair<std::string, MediaKind> cases[] = {
      {"\xFF\xD8\xFF\xE0", MediaKind::jpeg},
      {"\x89PNG\r\n\x1A\n", MediaKind::png},
      {"GIF89a", MediaKind::gif},
      {"RIFF\1\2\3\4WEBPVP8 ", MediaKind::webp},
      {"RIFF\1\2\3\4WAVEfmt ", MediaKind::wav},
      {"RF64\1\2\3\4WAVEds64", MediaKind::wav},
      {"fLaC", MediaKind::flac},
      {"\x93NUMPY\1", MediaKind::npy},
      {"BM"s + std::string(12, '\0') + "\x28\0\0\0"s, MediaKind::bmp},
      {"BMW is a make of cars", MediaKind::text},
      {" {\"a\": 1}", MediaKind::json},
      {"[1, 2]", MediaKind::json},
      {"[see below] a note", MediaKind::text},
      {"7", MediaKind::text},
      {"\xEF\xBB\xBFgr\xC3\xBC\xC3\x9F", MediaKind::text},
      {"cut in a character \xE2\x82", MediaKind::text},
      {"latin-1 \xFC here", MediaKind::unknown},
      {"a\0b"s, MediaKind::unknown},
      {"", MediaKind::unknown},
  };
  for (const auto& [bytes, kind] : cases)
    EXPECT_EQ(media_kind_name(media_kind(as_bytes(bytes))), media_kind_name(kind)) << bytes;
}

TEST(ImageShapeTest, ReadsEveryHeader) {
  const std::string png = "\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\1\x2C\0\0\0\xC8\x08\6\0\0\0"s;
  EXPECT_EQ(image_shape(as_bytes(png)), (ImageShape{300, 200, 4}));
  EXPECT_EQ(image_shape(as_bytes("GIF89a\x2C\1\xC8\0\0\0\0"s)), (ImageShape{300, 200, 3}));
  const std::string bmp = "BM"s + std::string(12, '\0') + "\x28\0\0\0\x2C\1\0\0\x38\xFF\xFF\xFF\1\0\x18\0"s;
  EXPECT_EQ(image_shape(as_bytes(bmp)), (ImageShape{300, 200, 3}));
  const std::string lossy = "RIFF\0\0\0\0WEBPVP8 \0\0\0\0\x10\0\0\x9D\1\x2A\x2C\1\xC8\0"s;
  EXPECT_EQ(image_shape(as_bytes(lossy)), (ImageShape{300, 200, 3}));
  const std::string extended = "RIFF\0\0\0\0WEBPVP8X\x0A\0\0\0\x10\0\0\0\x2B\1\0\xC7\0\0"s;
  EXPECT_EQ(image_shape(as_bytes(extended)), (ImageShape{300, 200, 4}));
  const uint32_t bits = 299 | 199 << 14 | 1u << 28;
  std::string lossless = "RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2F"s;
  for (int i = 0; i < 4; ++i) lossless.push_back(static_cast<char>(bits >> (8 * i)));
  EXPECT_EQ(image_shape(as_bytes(lossless)), (ImageShape{300, 200, 4}));
  for (const std::string& whole : {png, bmp, lossy, extended, lossless})
    for (size_t cut = 0; cut < 25; ++cut)
      EXPECT_FALSE(image_shape(as_bytes(std::string_view(whole).substr(0, cut)))) << cut;
}

TEST(ImageShapeTest, WalksJpegSegmentsToTheFrame) {
  const auto encoded = encode_jpeg(gradient(61, 33, 3), 80, Chroma::s420);
  ASSERT_TRUE(encoded.ok()) << encoded.status().text();
  EXPECT_EQ(image_shape(*encoded), (ImageShape{61, 33, 3}));
  // A large segment in front (a camera's thumbnail, with a marker of its own inside), and fill bytes.
  std::string exif(40000, '\xC0');
  exif.replace(0, 6, "Exif\0\0"s);
  const size_t length = exif.size() + 2;
  std::string with_exif = "\xFF\xD8\xFF\xFF\xFF\xE1"s;
  with_exif.push_back(static_cast<char>(length >> 8));
  with_exif.push_back(static_cast<char>(length));
  with_exif += exif + std::string(as_text(*encoded).substr(2));
  EXPECT_EQ(image_shape(as_bytes(with_exif)), (ImageShape{61, 33, 3}));
  EXPECT_FALSE(image_shape(as_bytes(std::string_view(with_exif).substr(0, 30000))));
}

TEST(JpegTest, KeepsPixelsAndShapeInEverySampling) {
  for (const Chroma chroma : {Chroma::s420, Chroma::s422, Chroma::s444}) {
    const Image image = gradient(97, 64, 3);
    const auto encoded = encode_jpeg(image, 95, chroma);
    ASSERT_TRUE(encoded.ok()) << encoded.status().text();
    const auto decoded = decode_jpeg(*encoded);
    ASSERT_TRUE(decoded.ok()) << decoded.status().text();
    EXPECT_EQ(decoded->shape, image.shape);
    EXPECT_LT(mean_difference(*decoded, image), 3);
  }
}

TEST(JpegTest, GreyStaysGrey) {
  const Image image = gradient(40, 30, 1);
  const auto encoded = encode_jpeg(image, 95, Chroma::s420);
  ASSERT_TRUE(encoded.ok());
  EXPECT_EQ(image_shape(*encoded), (ImageShape{40, 30, 1}));
  const auto decoded = decode_jpeg(*encoded);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->shape.channels, 1u);
  EXPECT_LT(mean_difference(*decoded, image), 2);
  const auto from_colour = encode_jpeg(gradient(40, 30, 3), 90, Chroma::grey);
  ASSERT_TRUE(from_colour.ok());
  EXPECT_EQ(image_shape(*from_colour)->channels, 1u);
}

TEST(JpegTest, FourInksBecomeRgb) {
  const std::string encoded = from_hex(kCmykJpegHex);
  EXPECT_EQ(image_shape(as_bytes(encoded)), (ImageShape{8, 8, 4}));
  const auto decoded = decode_jpeg(as_bytes(encoded));
  ASSERT_TRUE(decoded.ok()) << decoded.status().text();
  EXPECT_EQ(decoded->shape, (ImageShape{8, 8, 3}));
  EXPECT_EQ(decoded->pixels.size(), 8u * 8 * 3);
  for (size_t i = 0; i < decoded->pixels.size(); i += 3) {
    EXPECT_NEAR(decoded->pixels[i], 128, 4);
    EXPECT_NEAR(decoded->pixels[i + 1], 0, 4);
    EXPECT_NEAR(decoded->pixels[i + 2], 0, 4);
  }
}

TEST(JpegTest, ScaleIsTheSmallestThatIsNotBelow) {
  const auto encoded = encode_jpeg(gradient(500, 375, 3), 85, Chroma::s420);
  ASSERT_TRUE(encoded.ok());
  const auto thumbnail = decode_jpeg(*encoded, 160);
  ASSERT_TRUE(thumbnail.ok());
  EXPECT_EQ(thumbnail->shape, (ImageShape{188, 141, 3}));  // 3/8; 1/4 would be 125
  EXPECT_EQ(decode_jpeg(*encoded, 250)->shape, (ImageShape{250, 188, 3}));
  EXPECT_EQ(decode_jpeg(*encoded, 4000)->shape, (ImageShape{500, 375, 3}));  // never enlarged
}

TEST(JpegTest, EveryTruncationIsCorrupt) {
  const auto encoded = encode_jpeg(gradient(64, 48, 3), 85, Chroma::s420);
  ASSERT_TRUE(encoded.ok());
  // Without the last two bytes, the end marker, no pixel is missing.
  for (size_t cut = 0; cut + 8 < encoded->size(); ++cut) {
    const auto decoded = decode_jpeg(Bytes(*encoded).first(cut));
    ASSERT_FALSE(decoded.ok()) << cut << " of " << encoded->size();
    EXPECT_EQ(decoded.status().code(), Code::corrupt) << decoded.status().text();
  }
}

TEST(JpegTest, StrayBytesBeforeAMarkerDoNoHarm) {
  const auto encoded = encode_jpeg(gradient(64, 48, 3), 85, Chroma::s420);
  ASSERT_TRUE(encoded.ok());
  std::string text(as_text(*encoded));
  text.insert(20, "stray");  // behind the first segment
  EXPECT_EQ(image_shape(as_bytes(text)), (ImageShape{64, 48, 3}));
  const auto decoded = decode_jpeg(as_bytes(text));
  ASSERT_TRUE(decoded.ok()) << decoded.status().text();
  EXPECT_EQ(decoded->pixels, decode_jpeg(*encoded)->pixels);
}

TEST(JpegTest, DamagedBytesNeverCrash) {
  const auto encoded = encode_jpeg(gradient(64, 48, 3), 85, Chroma::s420);
  ASSERT_TRUE(encoded.ok());
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    auto damaged = *encoded;
    for (int flips = 0; flips < 3; ++flips) damaged[random() % damaged.size()] = std::byte(random());
    const auto shape = image_shape(damaged);
    if (shape && uint64_t{shape->width} * shape->height > 1 << 22) continue;  // legal, but slow
    const auto decoded = decode_jpeg(damaged, 32);
    if (decoded.ok()) {
      EXPECT_EQ(decoded->pixels.size(),
                size_t{decoded->shape.width} * decoded->shape.height * decoded->shape.channels);
    }
  }
}

TEST(JpegTest, HugeClaimsAreRefusedBeforeMemoryIsTaken) {
  const std::string claims = "\xFF\xD8\xFF\xC0\0\x11\x08\xFF\xDC\xFF\xDC\3\1\x11\0\2\x11\0\3\x11\0"s;
  ASSERT_EQ(image_shape(as_bytes(claims)), (ImageShape{65500, 65500, 3}));
  EXPECT_EQ(decode_jpeg(as_bytes(claims)).status().code(), Code::unsupported);
}

TEST(JpegTest, WrongUseIsInvalid) {
  Image image = gradient(4, 4, 3);
  EXPECT_EQ(encode_jpeg(image, 0, Chroma::s420).status().code(), Code::invalid);
  image.pixels.pop_back();
  EXPECT_EQ(encode_jpeg(image, 90, Chroma::s420).status().code(), Code::invalid);
  EXPECT_EQ(encode_jpeg(Image{}, 90, Chroma::s420).status().code(), Code::invalid);
}

}  // namespace
}  // namespace packtrain
