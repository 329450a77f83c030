// For tests: how far counts may lie from what chance gives.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace packtrain {

inline double chi_squared(std::span<const uint32_t> counts, double expected) {
  double sum = 0;
  for (const uint32_t count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

// What chi-squared exceeds with a probability of 1e-4 (Wilson and Hilferty's approximation).
inline double chi_squared_limit(double degrees) {
  const double part = 2 / (9 * degrees);
  return degrees * std::pow(1 - part + 3.719 * std::sqrt(part), 3);
}

inline double correlation(std::span<const double> a, std::span<const double> b) {
  double sum_a = 0, sum_b = 0, squares_a = 0, squares_b = 0, products = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum_a += a[i], sum_b += b[i];
    squares_a += a[i] * a[i], squares_b += b[i] * b[i], products += a[i] * b[i];
  }
  const auto n = static_cast<double>(a.size());
  return (products - sum_a * sum_b / n) /
         std::sqrt((squares_a - sum_a * sum_a / n) * (squares_b - sum_b * sum_b / n));
}

// How many of `kinds` equally frequent kinds `draws` draws hold on average.
inline double distinct_in_draws(double kinds, double draws) {
  return kinds * (1 - std::pow(1 - 1 / kinds, draws));
}

}  // namespace packtrain
