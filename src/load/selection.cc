#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "packtrain/load.h"

namespace packtrain {
namespace {

constexpr uint64_t kWordsOfGroup =
    8;  // whose set bits are counted together: an eighth more than the bits take

// The place of the set bit with this number, which is there.
uint64_t place_of_bit(uint64_t word, uint64_t number) {
  for (; number > 0; --number) word &= word - 1;
  return static_cast<uint64_t>(std::countr_zero(word));
}

}  // namespace

std::shared_ptr<const Selection> Selection::make(std::span<const uint64_t> indices) {
  std::shared_ptr<Selection> selection(new Selection);
  selection->hash_ = xxh128_hex(std::as_bytes(indices));
  selection->size_ = indices.size();
  if (indices.empty()) return selection;
  selection->first_ = indices.front();
  selection->largest_ = *std::max_element(indices.begin(), indices.end());
  selection->step_ = indices.size() > 1 ? indices[1] - indices[0] : 0;  // modulo 2^64, if it is negative
  bool steps = true, ascends = true;
  for (size_t i = 1; i < indices.size() && (steps || ascends); ++i) {
    steps = steps && indices[i] - indices[i - 1] == selection->step_;
    ascends = ascends && indices[i] > indices[i - 1];
  }
  if (steps) return selection;
  const bool is_narrow = selection->largest_ <= UINT32_MAX;
  const uint64_t range = selection->largest_ - selection->first_;
  if (ascends && range / 64 * 9 < indices.size() * (is_narrow ? 4 : 8)) {
    selection->set_bits(indices);
  } else if (is_narrow) {
    selection->form_ = Form::narrow;
    selection->narrow_.reserve(indices.size());
    for (const uint64_t index : indices) selection->narrow_.push_back(static_cast<uint32_t>(index));
  } else {
    selection->form_ = Form::wide;
    selection->wide_.assign(indices.begin(), indices.end());
  }
  return selection;
}

void Selection::set_bits(std::span<const uint64_t> indices) {
  form_ = Form::bits;
  bits_.assign((largest_ - first_) / 64 + 1, 0);
  for (const uint64_t index : indices) bits_[(index - first_) / 64] |= uint64_t{1} << ((index - first_) % 64);
  uint64_t count = 0;
  for (size_t word = 0; word < bits_.size(); ++word) {
    if (word % kWordsOfGroup == 0) before_.push_back(count);
    count += static_cast<uint64_t>(std::popcount(bits_[word]));
  }
}

uint64_t Selection::bit_at(uint64_t number) const {
  const auto group = std::upper_bound(before_.begin(), before_.end(), number) - 1;
  number -= *group;
  auto word = static_cast<size_t>(group - before_.begin()) * kWordsOfGroup;
  for (;; ++word) {
    const auto count = static_cast<uint64_t>(std::popcount(bits_[word]));
    if (number < count) return word * 64 + place_of_bit(bits_[word], number);
    number -= count;
  }
}

uint64_t Selection::at(uint64_t number) const {
  switch (form_) {
    case Form::steps:
      return first_ + number * step_;
    case Form::bits:
      return first_ + bit_at(number);
    case Form::narrow:
      return narrow_[number];
    case Form::wide:
      break;
  }
  return wide_[number];
}

uint64_t Selection::bytes() const {
  return (bits_.capacity() + before_.capacity() + wide_.capacity()) * sizeof(uint64_t) +
         narrow_.capacity() * sizeof(uint32_t);
}

}  // namespace packtrain
