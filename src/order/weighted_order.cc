#include "order/weighted_order.h"

#include "order/class_draw.h"
#include "order/keys.h"
#include "order/sliced_order.h"

namespace packtrain {
namespace {

class WeightedOrder final : public SlicedOrder {
 public:
  WeightedOrder(OrderSpec spec, ClassDraw draw) : SlicedOrder(std::move(spec)), draw_(std::move(draw)) {}

  uint64_t replacement(uint64_t epoch, uint64_t position, uint64_t attempt) const final {
    return draw_.draw(purpose_key(KeyPurpose::replace, position_key(spec().seed, epoch, position, attempt)));
  }

 private:
  void choose(uint64_t epoch, std::span<Pick> picks) const final {
    for (Pick& pick : picks)
      pick.sample = draw_.draw(purpose_key(KeyPurpose::draw, position_key(spec().seed, epoch, place(pick))));
  }

  ClassDraw draw_;
};

}  // namespace

Result<std::shared_ptr<const Order>> make_weighted_order(OrderSpec spec) {
  PACKTRAIN_ASSIGN(draw, ClassDraw::make(spec.samples, spec.weights, spec.class_of));
  return std::shared_ptr<const Order>(std::make_shared<WeightedOrder>(std::move(spec), std::move(draw)));
}

}  // namespace packtrain
