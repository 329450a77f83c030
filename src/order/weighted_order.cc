#include "order/weighted_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "order/keys.h"
#include "order/sliced_order.h"

namespace packtrain {
namespace {

// The samples of each class, one class behind the other. Immutable.
class ClassLists {
 public:
  static Result<ClassLists> make(const OrderSpec& spec) {
    ClassLists lists;
    const uint64_t classes = spec.weights.size();
    lists.starts_.assign(classes + 1, 0);
    for (uint64_t sample = 0; sample < spec.samples; ++sample) {
      const int64_t of = spec.class_of(sample);
      if (of < 0 || static_cast<uint64_t>(of) >= classes)
        return Status(
            Code::invalid,
            fmt::format("sample {} has class {}, but weights are given for {} classes, 0 to {}; give a "
                        "weight for every class (0: never drawn)",
                        sample, of, classes, classes - 1));
      ++lists.starts_[static_cast<uint64_t>(of) + 1];
    }
    for (uint64_t i = 0; i < classes; ++i) lists.starts_[i + 1] += lists.starts_[i];
    if (spec.samples > uint64_t{UINT32_MAX} + 1) lists.samples_ = std::vector<uint64_t>();
    std::visit([&](auto& samples) { lists.fill(spec, samples); }, lists.samples_);
    return lists;
  }

  uint64_t size(uint64_t of) const { return starts_[of + 1] - starts_[of]; }
  uint64_t sample(uint64_t of, uint64_t number) const {
    return std::visit([&](const auto& samples) -> uint64_t { return samples[starts_[of] + number]; },
                      samples_);
  }

 private:
  template <class T>
  void fill(const OrderSpec& spec, std::vector<T>& samples) const {
    samples.resize(spec.samples);
    std::vector<uint64_t> next(starts_.begin(), starts_.end() - 1);
    for (uint64_t sample = 0; sample < spec.samples; ++sample)
      samples[next[static_cast<uint64_t>(spec.class_of(sample))]++] = static_cast<T>(sample);
  }

  std::vector<uint64_t> starts_;  // of each class in samples_; one more at the end
  std::variant<std::vector<uint32_t>, std::vector<uint64_t>> samples_;
};

class WeightedOrder final : public SlicedOrder {
 public:
  WeightedOrder(OrderSpec spec, ClassLists lists) : SlicedOrder(std::move(spec)), lists_(std::move(lists)) {
    double sum = 0;
    for (uint64_t of = 0; of < this->spec().weights.size(); ++of) {
      const double weight = this->spec().weights[of];
      if (lists_.size(of) == 0 || !(weight > 0)) continue;
      sum += weight;
      classes_.push_back({sum, of});
    }
  }
  bool empty() const { return classes_.empty(); }

  uint64_t replacement(uint64_t epoch, uint64_t position, uint64_t attempt) const final {
    return draw(purpose_key(KeyPurpose::replace, position_key(spec().seed, epoch, position, attempt)));
  }

 private:
  struct DrawnClass {
    double until;  // the weights up to and with it
    uint64_t number;
  };

  void choose(uint64_t epoch, std::span<Pick> picks) const final {
    for (Pick& pick : picks)
      pick.sample = draw(purpose_key(KeyPurpose::draw, position_key(spec().seed, epoch, place(pick))));
  }

  uint64_t draw(uint64_t key) const {
    if (classes_.empty()) return 0;  // there are no samples
    KeyedRandom random(key);
    const double at = random.uniform() * classes_.back().until;
    // The product may be rounded up to the sum of all weights, which is behind the last class.
    const auto found =
        std::upper_bound(classes_.begin(), classes_.end() - 1, at,
                         [](double value, const DrawnClass& candidate) { return value < candidate.until; });
    return lists_.sample(found->number, random.below(lists_.size(found->number)));
  }

  ClassLists lists_;
  std::vector<DrawnClass> classes_;  // those that can be drawn
};

}  // namespace

Result<std::shared_ptr<const Order>> make_weighted_order(OrderSpec spec) {
  if (!spec.class_of) return Status(Code::invalid, "class weights need the class of each sample");
  double sum = 0;
  for (size_t i = 0; i < spec.weights.size(); ++i) {
    const double weight = spec.weights[i];
    if (!std::isfinite(weight) || weight < 0)
      return Status(
          Code::invalid,
          fmt::format("the weight of class {} is {}; it must be a number of at least 0", i, weight));
    sum += weight;
  }
  if (!std::isfinite(sum))
    return Status(Code::invalid, "the weights of the classes are too large to be added");
  PACKTRAIN_ASSIGN(lists, ClassLists::make(spec));
  auto order = std::make_shared<WeightedOrder>(std::move(spec), std::move(lists));
  if (order->empty() && order->spec().samples > 0)
    return Status(
        Code::invalid,
        "no class that has samples has a weight above 0: nothing could be drawn; give one a weight");
  return std::shared_ptr<const Order>(std::move(order));
}

}  // namespace packtrain
