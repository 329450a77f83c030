#include "decode/resample.h"

#include <algorithm>
#include <cmath>

#include "base/make_room.h"
#include "decode/kernel_sets.h"

namespace packtrain {

namespace {

constexpr int32_t kHalf = 1 << (kWeightBits - 1);

// Weights are not negative and their sum is 1 but for rounding: no result is below 0.
uint8_t round_to_byte(int32_t sum) {
  return static_cast<uint8_t>(std::min((sum + kHalf) >> kWeightBits, 255));
}

double triangle(double distance) { return std::max(0.0, 1.0 - std::abs(distance)); }

void prepare_nothing(const ResizeAxis&, uint32_t, AcrossTable&) {}

void row_across(const ResizeAxis& axis, uint32_t row_begin, const uint8_t* from, uint8_t* to) {
  for (uint32_t x = 0; x < axis.outputs(); ++x) {
    const auto [first, count] = axis.span(x);
    const int32_t* weights = axis.weights(x);
    const uint8_t* pixel = from + size_t{3} * (first - row_begin);
    int32_t red = 0, green = 0, blue = 0;
    for (uint32_t tap = 0; tap < count; ++tap, pixel += 3) {
      red += pixel[0] * weights[tap];
      green += pixel[1] * weights[tap];
      blue += pixel[2] * weights[tap];
    }
    *to++ = round_to_byte(red);
    *to++ = round_to_byte(green);
    *to++ = round_to_byte(blue);
  }
}

void across_scalar(const ResizeAxis& axis, uint32_t row_begin, const AcrossTable&, const uint8_t* const* from,
                   uint8_t* const* to, uint32_t rows) {
  for (uint32_t row = 0; row < rows; ++row) row_across(axis, row_begin, from[row], to[row]);
}

void down_scalar(const uint8_t* const* rows, const int32_t* weights, uint32_t count, size_t bytes,
                 uint8_t* to) {
  for (size_t i = 0; i < bytes; ++i) {
    int32_t sum = 0;
    for (uint32_t tap = 0; tap < count; ++tap) sum += rows[tap][i] * weights[tap];
    to[i] = round_to_byte(sum);
  }
}

}  // namespace

void ResizeAxis::set(const Request& request) {
  // The order of every floating-point operation below is Pillow's: another would round other weights, and so
  // would fused ones, which the build forbids.
  const double scale = request.length / request.resized;
  const double support = std::max(scale, 1.0);
  const double narrowing = 1.0 / support;
  const auto limit = static_cast<int64_t>(request.clamp_end - request.clamp_begin);
  const auto widest_possible =
      static_cast<size_t>(std::min<int64_t>(int64_t(std::ceil(support)) * 2 + 1, limit));
  stride_ = (widest_possible + kTapMultiple - 1) / kTapMultiple * kTapMultiple;
  make_room(spans_, request.outputs);
  spans_.resize(request.outputs);
  make_room(weights_, request.outputs * stride_);
  weights_.resize(request.outputs * stride_);
  grow(shares_, widest_possible);
  begin_ = request.clamp_end;
  end_ = request.clamp_begin;
  widest_ = 1;
  for (uint32_t i = 0; i < request.outputs; ++i) {
    const double centre = request.start + (request.window + i + 0.5) * scale;
    // Rounded as Pillow rounds, here and below: what is cut off is not what lround() would cut off.
    // NOLINTBEGIN(bugprone-incorrect-roundings)
    const auto low = std::clamp<int64_t>(int64_t(centre - support + 0.5), 0, limit - 1);
    const auto high = std::clamp<int64_t>(int64_t(centre + support + 0.5), low + 1, limit);
    // NOLINTEND(bugprone-incorrect-roundings)
    const auto count = std::min(static_cast<size_t>(high - low), widest_possible);
    double sum = 0;
    for (size_t tap = 0; tap < count; ++tap) {
      shares_[tap] =
          triangle((static_cast<double>(tap) + static_cast<double>(low) - centre + 0.5) * narrowing);
      sum += shares_[tap];
    }
    const uint32_t output = request.reversed ? request.outputs - 1 - i : i;
    int32_t* weights = &weights_[output * stride_];
    for (size_t tap = 0; tap < count; ++tap) {
      const double share = sum != 0 ? shares_[tap] / sum : shares_[tap];
      weights[tap] =
          static_cast<int32_t>(0.5 + share * (1 << kWeightBits));  // NOLINT(bugprone-incorrect-roundings)
    }
    // Taps that weigh nothing at either end need not be read.
    size_t from = 0, to = count;
    while (to > 1 && weights[to - 1] == 0) --to;
    while (from + 1 < to && weights[from] == 0) ++from;
    if (from > 0) std::copy(weights + from, weights + to, weights);
    std::fill(weights + (to - from), weights + stride_, 0);
    Span& span = spans_[output];
    span = {request.clamp_begin + static_cast<uint32_t>(low + int64_t(from)),
            static_cast<uint32_t>(to - from)};
    begin_ = std::min(begin_, span.first);
    end_ = std::max(end_, span.first + span.count);
    widest_ = std::max(widest_, span.count);
  }
}

const ResampleKernels kScalarResample{prepare_nothing, across_scalar, down_scalar};

}  // namespace packtrain
