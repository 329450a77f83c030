#include "order/class_draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "base/keyed_random.h"

namespace packtrain {

// The samples of each class, one class behind the other. Immutable.
class ClassDraw::ClassLists {
 public:
  static Result<ClassLists> make(uint64_t count, uint64_t classes, const ClassOf& class_of) {
    ClassLists lists;
    lists.starts_.assign(classes + 1, 0);
    for (uint64_t sample = 0; sample < count; ++sample) {
      const int64_t of = class_of(sample);
      if (of < 0 || static_cast<uint64_t>(of) >= classes)
        return Status(
            Code::invalid,
            fmt::format("sample {} has class {}, but weights are given for {} classes, 0 to {}; give a "
                        "weight for every class (0: never drawn)",
                        sample, of, classes, classes - 1));
      ++lists.starts_[static_cast<uint64_t>(of) + 1];
    }
    for (uint64_t i = 0; i < classes; ++i) lists.starts_[i + 1] += lists.starts_[i];
    if (count > uint64_t{UINT32_MAX} + 1) lists.samples_ = std::vector<uint64_t>();
    std::visit([&](auto& samples) { lists.fill(count, class_of, samples); }, lists.samples_);
    return lists;
  }

  uint64_t size(uint64_t of) const { return starts_[of + 1] - starts_[of]; }
  uint64_t sample(uint64_t of, uint64_t number) const {
    return std::visit([&](const auto& samples) -> uint64_t { return samples[starts_[of] + number]; },
                      samples_);
  }

 private:
  template <class T>
  void fill(uint64_t count, const ClassOf& class_of, std::vector<T>& samples) const {
    samples.resize(count);
    std::vector<uint64_t> next(starts_.begin(), starts_.end() - 1);
    for (uint64_t sample = 0; sample < count; ++sample)
      samples[next[static_cast<uint64_t>(class_of(sample))]++] = static_cast<T>(sample);
  }

  std::vector<uint64_t> starts_;  // of each class in samples_; one more at the end
  std::variant<std::vector<uint32_t>, std::vector<uint64_t>> samples_;
};

Result<ClassDraw> ClassDraw::make(uint64_t samples, std::span<const double> weights,
                                  const ClassOf& class_of) {
  if (!class_of) return Status(Code::invalid, "class weights need the class of each sample");
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i]) || weights[i] < 0)
      return Status(
          Code::invalid,
          fmt::format("the weight of class {} is {}; it must be a number of at least 0", i, weights[i]));
    sum += weights[i];
  }
  if (!std::isfinite(sum))
    return Status(Code::invalid, "the weights of the classes are too large to be added");
  PACKTRAIN_ASSIGN(lists, ClassLists::make(samples, weights.size(), class_of));
  ClassDraw draw;
  double until = 0;
  for (uint64_t of = 0; of < weights.size(); ++of) {
    if (lists.size(of) == 0 || !(weights[of] > 0)) continue;
    until += weights[of];
    draw.classes_.push_back({until, of});
  }
  if (draw.classes_.empty() && samples > 0)
    return Status(
        Code::invalid,
        "no class that has samples has a weight above 0: nothing could be drawn; give one a weight");
  draw.lists_ = std::make_shared<const ClassLists>(std::move(lists));
  return draw;
}

uint64_t ClassDraw::draw(uint64_t key) const {
  if (classes_.empty()) return 0;
  KeyedRandom random(key);
  const double at = random.uniform() * classes_.back().until;
  // The product may be rounded up to the sum of all weights, which is behind the last class.
  const auto found =
      std::upper_bound(classes_.begin(), classes_.end() - 1, at,
                       [](double value, const DrawnClass& candidate) { return value < candidate.until; });
  return lists_->sample(found->number, random.below(lists_->size(found->number)));
}

}  // namespace packtrain
