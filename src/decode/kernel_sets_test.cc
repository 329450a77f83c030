// Every kernel set that this machine can run, against the scalar one.
#include "decode/kernel_sets.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "decode/resample_test_support.h"
#include "packtrain/transform.h"

namespace packtrain {
namespace {

TEST(KernelSetsTest, AllResizeToTheSameBytes) {
  std::mt19937 random(2);
  ResizeAxis axis;
  for (const KernelSet& set : kernel_sets()) {
    for (int round = 0; round < 120; ++round) {
      axis.set(random_request(random));
      const uint32_t row_begin = axis.begin() - static_cast<uint32_t>(random() % (axis.begin() + 1));
      // Exactly as long as promised, so that a sanitizer sees a read too far.
      const auto count = static_cast<uint32_t>(1 + random() % 9);
      std::vector<std::vector<uint8_t>> sources, references, results;
      std::vector<const uint8_t*> from;
      std::vector<uint8_t*> to_reference, to_result;
      for (uint32_t i = 0; i < count; ++i) {
        sources.push_back(noise(size_t{3} * (axis.end() - row_begin), random));
        references.emplace_back(size_t{3} * axis.outputs() + kRowSlack);
        results.push_back(references.back());
        from.push_back(sources.back().data());
        to_reference.push_back(references.back().data());
        to_result.push_back(results.back().data());
      }
      AcrossTable table;
      kScalarResample.across(axis, row_begin, table, from.data(), to_reference.data(), count);
      set.resample.prepare(axis, row_begin, table);
      set.resample.across(axis, row_begin, table, from.data(), to_result.data(), count);
      for (uint32_t i = 0; i < count; ++i) {
        references[i].resize(size_t{3} * axis.outputs());
        results[i].resize(references[i].size());
        ASSERT_EQ(results[i], references[i]) << set.name << " across, round " << round << ", row " << i;
      }

      const size_t bytes = 1 + random() % 700;
      const uint32_t output = static_cast<uint32_t>(random() % axis.outputs());
      const uint32_t taps = axis.span(output).count;
      std::vector<uint8_t> expected, actual;
      std::vector<std::vector<uint8_t>> rows;
      std::vector<const uint8_t*> pointers;
      for (uint32_t tap = 0; tap < taps; ++tap)
        pointers.push_back(rows.emplace_back(noise(bytes, random)).data());
      expected.assign(bytes + kRowSlack, 0);
      actual.assign(bytes + kRowSlack, 0);
      kScalarResample.down(pointers.data(), axis.weights(output), taps, bytes, expected.data());
      set.resample.down(pointers.data(), axis.weights(output), taps, bytes, actual.data());
      expected.resize(bytes);
      actual.resize(bytes);
      ASSERT_EQ(actual, expected) << set.name << " down, round " << round;
    }
  }
}

TEST(KernelSetsTest, AllWriteTheSameNumbers) {
  std::mt19937 random(4);
  for (const KernelSet& set : kernel_sets()) {
    for (uint32_t width = 1; width < 120; ++width) {
      const auto row = noise(size_t{3} * width, random);
      for (const PixelLayout layout : {PixelLayout::chw, PixelLayout::hwc})
        for (const PixelType type :
             {PixelType::uint8, PixelType::float16, PixelType::bfloat16, PixelType::float32}) {
          ImageSpec spec;
          spec.width = width;
          spec.height = 2;
          spec.type = type;
          spec.layout = layout;
          spec.normalise = type != PixelType::uint8;
          spec.mean = {0.485F, 0.456F, 0.406F};
          spec.deviation = {0.229F, 0.224F, 0.225F};
          std::vector<std::byte> expected(spec.bytes()), actual(spec.bytes());
          PixelWriter reference(spec, kScalarPixels), writer(spec, set.pixels);
          for (uint32_t y = 0; y < 2; ++y) {
            reference.write_row(row.data(), y, expected.data());
            writer.write_row(row.data(), y, actual.data());
          }
          ASSERT_EQ(actual, expected) << set.name << ", width " << width;
        }
    }
  }
}

// A photograph in baseline JPEG, whose decoder gives the same pixels to all.
std::vector<std::byte> made_photo() {
  Image image{{431, 287, 3}, std::vector<uint8_t>(431 * 287 * 3)};
  std::mt19937 random(5);
  uint32_t at = 0;
  for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(at++ / 9 + random() % 64);
  auto encoded = encode_jpeg(image, 90, Chroma::s420);
  EXPECT_TRUE(encoded.ok()) << encoded.status().text();
  return std::move(*encoded);
}

TEST(KernelSetsTest, WholeReadsAreTheSameBits) {
  const auto encoded = made_photo();
  for (const CropKind crop : {CropKind::random_resized, CropKind::centre, CropKind::resize})
    for (const PixelLayout layout : {PixelLayout::chw, PixelLayout::hwc})
      for (const PixelType type :
           {PixelType::uint8, PixelType::float16, PixelType::bfloat16, PixelType::float32}) {
        ImageSpec spec;
        spec.crop = crop;
        spec.width = 97;
        spec.height = 61;
        spec.resize = 128;
        spec.flip = 0.5;
        spec.type = type;
        spec.layout = layout;
        spec.normalise = type != PixelType::uint8;
        spec.mean = {0.485F, 0.456F, 0.406F};
        spec.deviation = {0.229F, 0.224F, 0.225F};
        std::vector<std::byte> expected(spec.bytes()), actual(spec.bytes());
        const auto reference = ImageReader::make(spec, 64 << 20, "scalar");
        ASSERT_TRUE(reference.ok()) << reference.status().text();
        for (const std::string& name : kernel_names()) {
          const auto reader = ImageReader::make(spec, 64 << 20, name);
          ASSERT_TRUE(reader.ok()) << reader.status().text();
          for (uint64_t key = 0; key < 4; ++key) {
            ASSERT_TRUE((*reference)->read(encoded, key, expected).ok());
            ASSERT_TRUE((*reader)->read(encoded, key, actual).ok());
            ASSERT_EQ(actual, expected) << name << ", key " << key;
          }
        }
      }
}

TEST(KernelSetsTest, TheBestIsTakenUnlessAnotherIsNamed) {
  ::unsetenv("PACKTRAIN_KERNELS");
  const auto name_of = [](std::string_view asked) {
    const auto found = find_kernels(asked);
    return found.ok() ? std::string((*found)->name) : found.status().text();
  };
  EXPECT_EQ(name_of(""), kernel_names().front());
  EXPECT_EQ(name_of("scalar"), "scalar");
  EXPECT_EQ(kernel_names().back(), "scalar");
  ::setenv("PACKTRAIN_KERNELS", "scalar", 1);
  EXPECT_EQ(name_of(""), "scalar");
  EXPECT_EQ(name_of(kernel_names().front()), kernel_names().front());
  ::setenv("PACKTRAIN_KERNELS", "mmx", 1);
  const auto refused = ImageReader::make(ImageSpec{});
  ::unsetenv("PACKTRAIN_KERNELS");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::invalid);
  EXPECT_NE(refused.status().text().find("PACKTRAIN_KERNELS=mmx"), std::string::npos);
  EXPECT_NE(refused.status().text().find("scalar"), std::string::npos) << refused.status().text();
}

// Otherwise every test above would compare the scalar kernels with themselves.
TEST(KernelSetsTest, ThisMachineHasMoreThanTheReference) {
#if defined(__aarch64__)
  EXPECT_EQ(kernel_names().front(), "neon");
#else
  if (kernel_names().size() == 1) GTEST_SKIP() << "no vector kernels for this processor";
  EXPECT_EQ(kernel_names().front(), has_avx512() ? "avx512" : "avx2");
  EXPECT_EQ(kernel_names().end()[-2], "avx2");
#endif
}

}  // namespace
}  // namespace packtrain
