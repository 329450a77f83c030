#include <bit>
#include <numeric>
#include <utility>

#include "base/keyed_random.h"
#include "packtrain/order.h"

namespace packtrain {
namespace {

// A network over few bits has too few different round functions to be unbiased; up to here the shuffle is
// stored, which costs 16 KiB at most.
constexpr uint64_t kStoredCount = 4096;

}  // namespace

void Permutation::shuffle(uint64_t key) {
  KeyedRandom random(key);
  if (count_ <= kStoredCount) {
    small_.resize(count_);
    std::iota(small_.begin(), small_.end(), 0u);
    for (uint64_t i = count_; i > 1; --i) std::swap(small_[i - 1], small_[random.below(i)]);
    return;
  }
  // The width of the largest value, not of the count: 2^k values need k bits, 2^k + 1 need one more.
  const int bits = std::bit_width(count_ - 1);
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
  for (uint64_t& round_key : keys_) round_key = random.next();
}

uint64_t Permutation::at(uint64_t position) const {
  assert(position < count_);
  if (!small_.empty()) return small_[position];
  // Walks along the cycle of the larger permutation until it is back among the values that count: fewer than
  // two steps on average, and a bijection because the inverse walk is one too.
  uint64_t value = position;
  do {
    value = scramble(value);
  } while (value >= count_);
  return value;
}

// A Feistel network whose halves take turns instead of changing places, so that they may differ in width.
uint64_t Permutation::scramble(uint64_t value) const {
  uint64_t high = value >> low_bits_;
  uint64_t low = value & ((uint64_t{1} << low_bits_) - 1);
  for (int round = 0; round < kRounds; round += 2) {
    high ^= mix64(low ^ keys_[round]) >> (64 - high_bits_);
    low ^= mix64(high ^ keys_[round + 1]) >> (64 - low_bits_);
  }
  return high << low_bits_ | low;
}

uint64_t position_key(uint64_t seed, uint64_t epoch, uint64_t position, uint64_t attempt) {
  return join_keys(join_keys(join_keys(seed, epoch), position), attempt);
}

}  // namespace packtrain
