// Input for tests of resizing.
#pragma once

#include <cstdint>
#include <iterator>
#include <random>
#include <vector>

#include "decode/resample.h"

namespace packtrain {

// Bytes, and slack behind them; a quarter are extremes.
inline std::vector<uint8_t> noise(size_t bytes, std::mt19937& random) {
  std::vector<uint8_t> values(bytes + kRowSlack);
  for (uint8_t& value : values)
    value = static_cast<uint8_t>(random() % 4 == 0 ? (random() % 2) * 255 : random());
  return values;
}

// Any sizes from one pixel up, windows, both directions.
inline ResizeAxis::Request random_request(std::mt19937& random) {
  const uint32_t limits[] = {1, 2, 3, 5, 17, 224, 300, 1000, 5000};
  // One draw a statement: compilers choose the order inside of one.
  const auto any = [&] {
    const uint32_t limit = limits[random() % std::size(limits)];
    return 1 + random() % limit;
  };
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

}  // namespace packtrain
