#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "order/batching.h"
#include "order/class_draw.h"
#include "order/interleave.h"
#include "order/keys.h"
#include "order/last_two.h"
#include "order/sliced_order.h"
#include "packtrain/order.h"

namespace packtrain {
namespace {

constexpr double kLeastShare = 1e-12;  // less is a slip, not a share

class MixOrder final : public SlicedOrder {
 public:
  struct Part {
    uint64_t samples = 0;
    std::optional<ClassDraw> draw;  // instead of shuffles
  };
  MixOrder(OrderSpec spec, std::vector<Part> parts, Interleave interleave)
      : SlicedOrder(std::move(spec)),
        parts_(std::move(parts)),
        interleave_(std::move(interleave)),
        shuffles_(new LastTwo<Permutation>[parts_.size()]) {}

  uint64_t replacement(uint64_t epoch, uint64_t position, uint64_t attempt) const final {
    const Part& part = parts_[interleave_.at(place_in_run(epoch, position % spec().samples)).part];
    if (part.draw) {
      const uint64_t key = position_key(spec().seed, epoch, position, attempt);
      return part.draw->draw(purpose_key(KeyPurpose::replace, key));
    }
    return any_sample(part.samples, spec().seed, epoch, position, attempt);
  }

 private:
  uint64_t place_in_run(uint64_t epoch, uint64_t position) const { return epoch * spec().samples + position; }

  void choose(uint64_t epoch, std::span<Pick> picks) const final {
    for (Pick& pick : picks) {
      const Interleave::Place found = interleave_.at(place_in_run(epoch, place(pick)));
      const Part& part = parts_[found.part];
      const uint64_t part_epoch = found.number / part.samples, part_position = found.number % part.samples;
      pick.part = found.part;
      if (part.draw) {
        const uint64_t key = position_key(spec().seed, epoch, place(pick));
        pick.sample = part.draw->draw(purpose_key(KeyPurpose::draw, key));
      } else if (spec().kind == OrderKind::source) {
        pick.sample = part_position;
      } else {
        pick.sample = shuffle_of(found.part, part_epoch)->at(part_position);
      }
    }
  }

  // Two parts of the same size are not shuffled alike.
  std::shared_ptr<const Permutation> shuffle_of(uint32_t part, uint64_t epoch) const {
    const auto key = [&] {
      const uint64_t seed = join_keys(purpose_key(KeyPurpose::part, spec().seed), part);
      return epoch_key(KeyPurpose::shuffle, seed, epoch);
    };
    return shuffles_[part].get(
        epoch, [&] { return Permutation(parts_[part].samples, key()); },
        [&](Permutation& spare) { spare.shuffle(key()); });
  }

  std::vector<Part> parts_;
  Interleave interleave_;
  std::unique_ptr<LastTwo<Permutation>[]> shuffles_;  // of each part, by its epoch
};

}  // namespace

Result<std::shared_ptr<const Order>> make_mix(MixSpec mix) {
  if (mix.parts.empty()) return Status(Code::invalid, "a mixture needs at least one dataset");
  if (mix.kind == OrderKind::streams)
    return Status(Code::invalid,
                  "a mixture takes its samples from everywhere: it needs the order 'global' or "
                  "'source', not 'streams'");
  std::vector<double> fractions;
  std::vector<MixOrder::Part> parts;
  double sum = 0;
  uint64_t samples = 0;
  for (size_t i = 0; i < mix.parts.size(); ++i) {
    const MixPart& part = mix.parts[i];
    if (!std::isfinite(part.fraction) || part.fraction <= 0)
      return Status(
          Code::invalid,
          fmt::format("the fraction of dataset {} of the mixture is {}; it must be a number above 0", i,
                      part.fraction));
    if (part.samples == 0)
      return Status(Code::invalid, fmt::format("dataset {} of the mixture has no samples; leave it out", i));
    parts.push_back({part.samples, std::nullopt});
    if (!part.weights.empty()) {
      if (mix.kind != OrderKind::global)
        return Status(Code::invalid,
                      "class weights draw samples from everywhere: they need the order 'global'");
      auto draw = ClassDraw::make(part.samples, part.weights, part.class_of);
      if (!draw.ok()) return draw.status().at(fmt::format("dataset {} of the mixture", i));
      parts.back().draw = std::move(*draw);
    }
    fractions.push_back(part.fraction);
    sum += part.fraction;
    samples += part.samples;
  }
  if (!std::isfinite(sum))
    return Status(Code::invalid, "the fractions of the mixture are too large to be added");
  // Of 1, so that 70 and 30 give the stream of 0.7 and 0.3.
  for (size_t i = 0; i < fractions.size(); ++i) {
    fractions[i] /= sum;
    if (fractions[i] < kLeastShare)
      return Status(Code::invalid,
                    fmt::format("dataset {} has a share of {:.1e} in the mixture and would never come; leave "
                                "it out, or give it a larger fraction",
                                i, fractions[i]));
  }

  OrderSpec spec;
  spec.kind = mix.kind;
  spec.samples = mix.epoch_length > 0 ? mix.epoch_length : samples;
  spec.seed = mix.seed;
  spec.global_batch = mix.global_batch;
  spec.world = mix.world;
  spec.last = mix.last;
  PACKTRAIN_TRY(check_batching(spec));
  return std::shared_ptr<const Order>(
      std::make_shared<MixOrder>(std::move(spec), std::move(parts), Interleave(fractions)));
}

}  // namespace packtrain
