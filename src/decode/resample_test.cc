#include "decode/resample.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "decode/pixel_writer.h"
#include "decode/row_resizer.h"

namespace packtrain {
namespace {

std::vector<uint8_t> noise(size_t bytes, std::mt19937& random) {
  std::vector<uint8_t> values(bytes + kRowSlack);
  for (uint8_t& value : values)
    value = static_cast<uint8_t>(random() % 4 == 0 ? (random() % 2) * 255 : random());
  return values;
}

ResizeAxis::Request random_request(std::mt19937& random) {
  const uint32_t limits[] = {1, 2, 3, 5, 17, 224, 300, 1000, 5000};
  const auto any = [&] { return 1 + random() % limits[random() % std::size(limits)]; };
  ResizeAxis::Request request;
  request.clamp_begin = random() % 50;
  const uint32_t length = static_cast<uint32_t>(any());
  request.clamp_end = request.clamp_begin + length;
  request.length = length;
  request.resized = static_cast<uint32_t>(any());
  request.outputs = static_cast<uint32_t>(1 + random() % request.resized);
  request.window = static_cast<uint32_t>(random() % (request.resized - request.outputs + 1));
  request.reversed = random() % 2 == 0;
  return request;
}

TEST(ResizeAxisTest, WeightsOfEveryOutputMakeOneAndStayInside) {
  std::mt19937 random(1);
  ResizeAxis axis;
  for (int round = 0; round < 2000; ++round) {
    const auto request = random_request(random);
    axis.set(request);
    ASSERT_EQ(axis.outputs(), request.outputs);
    for (uint32_t i = 0; i < axis.outputs(); ++i) {
      const auto [first, count] = axis.span(i);
      ASSERT_GE(first, request.clamp_begin);
      ASSERT_LE(first + count, request.clamp_end);
      ASSERT_GE(first, axis.begin());
      ASSERT_LE(first + count, axis.end());
      ASSERT_LE(count, axis.widest());
      int64_t sum = 0;
      for (uint32_t tap = 0; tap < count; ++tap) sum += axis.weights(i)[tap];
      ASSERT_NEAR(double(sum), 1 << kWeightBits, count);
    }
  }
}

TEST(ResizeAxisTest, SameSizeIsTheSamePixels) {
  ResizeAxis axis;
  axis.set({.length = 9, .clamp_begin = 4, .clamp_end = 13, .resized = 9, .outputs = 9, .reversed = true});
  for (uint32_t i = 0; i < 9; ++i) {
    EXPECT_EQ(axis.span(i).first, 12 - i);
    EXPECT_EQ(axis.span(i).count, 1u);
    EXPECT_EQ(axis.weights(i)[0], 1 << kWeightBits);
  }
}

TEST(ResampleTest, EveryInstructionSetGivesTheSameBytes) {
  std::mt19937 random(2);
  ResizeAxis axis;
  for (const ResampleKernels* kernels : resample_kernels()) {
    for (int round = 0; round < 120; ++round) {
      axis.set(random_request(random));
      const uint32_t row_begin = axis.begin() - static_cast<uint32_t>(random() % (axis.begin() + 1));
      // Exactly as long as promised, so that a sanitizer sees a read too far.
      const auto row = noise(size_t{3} * (axis.end() - row_begin), random);
      std::vector<uint8_t> expected(size_t{3} * axis.outputs() + kRowSlack), actual(expected);
      AcrossTable table;
      kScalarResample.across(axis, row_begin, table, row.data(), expected.data());
      kernels->prepare(axis, row_begin, table);
      kernels->across(axis, row_begin, table, row.data(), actual.data());
      expected.resize(size_t{3} * axis.outputs());
      actual.resize(expected.size());
      ASSERT_EQ(actual, expected) << kernels->name << " across, round " << round;

      const size_t bytes = 1 + random() % 700;
      const uint32_t output = static_cast<uint32_t>(random() % axis.outputs());
      const uint32_t taps = axis.span(output).count;
      std::vector<std::vector<uint8_t>> rows;
      std::vector<const uint8_t*> pointers;
      for (uint32_t tap = 0; tap < taps; ++tap)
        pointers.push_back(rows.emplace_back(noise(bytes, random)).data());
      expected.assign(bytes + kRowSlack, 0);
      actual.assign(bytes + kRowSlack, 0);
      kScalarResample.down(pointers.data(), axis.weights(output), taps, bytes, expected.data());
      kernels->down(pointers.data(), axis.weights(output), taps, bytes, actual.data());
      expected.resize(bytes);
      actual.resize(bytes);
      ASSERT_EQ(actual, expected) << kernels->name << " down, round " << round;
    }
  }
}

class Collector final : public RowSink {
 public:
  explicit Collector(size_t row_bytes) : row_bytes_(row_bytes) {}
  void take_row(const uint8_t* rgb) override { rows.emplace_back(rgb, rgb + row_bytes_); }
  std::vector<std::vector<uint8_t>> rows;

 private:
  size_t row_bytes_;
};

TEST(RowResizerTest, BothOrdersAgreeToOneLevelAndRowsMayComeInAnyPortions) {
  std::mt19937 random(3);
  RowResizer resizer, other(kScalarResample);
  ResizeAxis x, y;
  for (int round = 0; round < 100; ++round) {
    auto wide = random_request(random), tall = random_request(random);
    wide.clamp_end = std::min(wide.clamp_end, wide.clamp_begin + 300);
    tall.clamp_end = std::min(tall.clamp_end, tall.clamp_begin + 300);
    wide.length = wide.clamp_end - wide.clamp_begin;
    tall.length = tall.clamp_end - tall.clamp_begin;
    tall.reversed = false;
    x.set(wide);
    y.set(tall);
    const size_t row_bytes = size_t{3} * (x.end() - x.begin());
    std::vector<std::vector<uint8_t>> rows;
    std::vector<const uint8_t*> pointers;
    for (uint32_t i = y.begin(); i < y.end(); ++i)
      pointers.push_back(rows.emplace_back(noise(row_bytes, random)).data());
    Collector across_first(size_t{3} * x.outputs()), again = across_first, down_first = across_first;
    resizer.start(x, y, x.begin(), ResizeOrder::across_first, across_first);
    resizer.take_rows(pointers.data(), static_cast<uint32_t>(pointers.size()));
    ASSERT_TRUE(resizer.done());
    other.start(x, y, x.begin(), ResizeOrder::across_first, again);
    for (size_t at = 0; at < pointers.size();) {
      const size_t some = std::min(1 + random() % 7, pointers.size() - at);
      other.take_rows(&pointers[at], static_cast<uint32_t>(some));
      at += some;
    }
    ASSERT_EQ(across_first.rows, again.rows);
    ASSERT_EQ(across_first.rows.size(), y.outputs());
    resizer.start(x, y, x.begin(), ResizeOrder::down_first, down_first);
    resizer.take_rows(pointers.data(), static_cast<uint32_t>(pointers.size()));
    ASSERT_TRUE(resizer.done());
    for (size_t row = 0; row < down_first.rows.size(); ++row)
      for (size_t i = 0; i < down_first.rows[row].size(); ++i)
        ASSERT_NEAR(down_first.rows[row][i], across_first.rows[row][i], 1);
  }
}

TEST(PixelTest, HalvesAreRoundedToTheNearest) {
  EXPECT_EQ(to_float16(0.0F), 0x0000);
  EXPECT_EQ(to_float16(-1.0F), 0xBC00);
  EXPECT_EQ(to_float16(1.0F / 3), 0x3555);
  EXPECT_EQ(to_float16(65504.0F), 0x7BFF);
  EXPECT_EQ(to_float16(65520.0F), 0x7C00);         // the first that rounds to infinity
  EXPECT_EQ(to_float16(1.0F + 0x1p-11F), 0x3C00);  // a tie goes to even
  EXPECT_EQ(to_float16(1.0F + 0x3p-11F), 0x3C02);
  EXPECT_EQ(to_float16(0x1p-24F), 0x0001);  // the smallest there is
  EXPECT_EQ(to_float16(0x1p-25F), 0x0000);
  EXPECT_EQ(to_bfloat16(1.0F), 0x3F80);
  EXPECT_EQ(to_bfloat16(-2.117904F), 0xC008);
  EXPECT_EQ(to_bfloat16(1.0F + 0x1p-8F), 0x3F80);
  EXPECT_EQ(to_bfloat16(1.0F + 0x3p-8F), 0x3F82);
}

TEST(PixelTest, EveryInstructionSetGivesTheSameBits) {
  std::mt19937 random(4);
  for (const PixelKernels* kernels : pixel_kernels()) {
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
          PixelWriter reference(spec, kScalarPixels), writer(spec, *kernels);
          for (uint32_t y = 0; y < 2; ++y) {
            reference.write_row(row.data(), y, expected.data());
            writer.write_row(row.data(), y, actual.data());
          }
          ASSERT_EQ(actual, expected) << kernels->name << ", width " << width;
        }
    }
  }
}

TEST(PixelTest, NumbersAreThoseOfTheFormula) {
  ImageSpec spec;
  spec.width = 256;
  spec.height = 1;
  spec.type = PixelType::float32;
  spec.normalise = true;
  spec.mean = {0.485F, 0.456F, 0.406F};
  spec.deviation = {0.229F, 0.224F, 0.225F};
  std::vector<uint8_t> row(3 * 256 + kRowSlack);
  for (size_t i = 0; i < 3 * 256; ++i) row[i] = static_cast<uint8_t>(i / 3);
  std::vector<float> numbers(3 * 256);
  PixelWriter(spec).write_row(row.data(), 0, reinterpret_cast<std::byte*>(numbers.data()));
  for (size_t channel = 0; channel < 3; ++channel)
    for (size_t i = 0; i < 256; ++i) {
      const float expected = (static_cast<float>(i) / 255 - spec.mean[channel]) / spec.deviation[channel];
      EXPECT_NEAR(numbers[channel * 256 + i], expected, 1e-6);
    }
}

}  // namespace
}  // namespace packtrain
