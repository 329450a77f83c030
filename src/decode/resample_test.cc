#include "decode/resample.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "decode/kernel_sets.h"
#include "decode/resample_test_support.h"
#include "decode/row_resizer.h"

namespace packtrain {
namespace {

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
      for (uint32_t tap = count; tap % kTapMultiple != 0; ++tap) ASSERT_EQ(axis.weights(i)[tap], 0);
    }
  }
}

// Fixed, so that a machine, a compiler or an order of operations that rounds otherwise is seen.
TEST(ResizeAxisTest, WeightsAreTheSameOnEveryMachine) {
  std::mt19937 random(7);
  ResizeAxis axis;
  uint64_t sum = 0;
  for (int round = 0; round < 500; ++round) {
    axis.set(random_request(random));
    for (uint32_t i = 0; i < axis.outputs(); ++i)
      for (uint32_t tap = 0; tap < axis.span(i).count; ++tap)
        sum = sum * 0x9E3779B97F4A7C15 + static_cast<uint32_t>(axis.weights(i)[tap]);
  }
  EXPECT_EQ(sum, 2817485116765687146u);
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
  RowResizer resizer(kernel_sets().front().resample), other(kScalarResample);
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

TEST(PixelTest, ProductAndSumAreRoundedEach) {
  PixelFactors factors;
  factors.scale.fill(1 / (255 * 0.229F));
  factors.offset.fill(-0.485F / 0.229F);
  int fused_differs = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const auto from = static_cast<uint8_t>(byte);
    float number = 0;
    kScalarPixels.to_float32(&from, 1, factors, reinterpret_cast<std::byte*>(&number));
    volatile float product = static_cast<float>(byte) * factors.scale[0];  // no compiler looks through it
    ASSERT_EQ(number, product + factors.offset[0]) << byte;
    fused_differs += number != std::fma(static_cast<float>(byte), factors.scale[0], factors.offset[0]);
  }
  EXPECT_GT(fused_differs, 0);
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
  PixelWriter(spec, kScalarPixels).write_row(row.data(), 0, reinterpret_cast<std::byte*>(numbers.data()));
  for (size_t channel = 0; channel < 3; ++channel)
    for (size_t i = 0; i < 256; ++i) {
      const float expected = (static_cast<float>(i) / 255 - spec.mean[channel]) / spec.deviation[channel];
      EXPECT_NEAR(numbers[channel * 256 + i], expected, 1e-6);
    }
}

}  // namespace
}  // namespace packtrain
