// Orders in which a rank takes one slice of each global batch; they differ in the sample at a position only.
#pragma once

#include <span>
#include <vector>

#include "packtrain/order.h"

namespace packtrain {

// Immutable; thread-safe.
class SlicedOrder : public Order {
 public:
  explicit SlicedOrder(OrderSpec spec) : spec_(std::move(spec)) {}

  const OrderSpec& spec() const final { return spec_; }
  uint64_t steps(uint64_t consumed, uint32_t rank) const final;
  void batch(uint64_t epoch, uint64_t consumed, uint64_t step, uint32_t rank,
             std::vector<Pick>& out) const final;

 protected:
  // Sets what each pick names; its position and padding are set already.
  virtual void choose(uint64_t epoch, std::span<Pick> picks) const = 0;
  // Where in the epoch a pick's sample stands: padding starts again from the front.
  uint64_t place(const Pick& pick) const {
    return pick.padding ? pick.position % spec_.samples : pick.position;
  }

 private:
  OrderSpec spec_;
};

std::shared_ptr<const Order> make_source_order(OrderSpec spec);
std::shared_ptr<const Order> make_global_order(OrderSpec spec);
// The sample that stands in for a bad one where each is as likely as any other.
uint64_t any_sample(uint64_t samples, uint64_t seed, uint64_t epoch, uint64_t position, uint64_t attempt);

}  // namespace packtrain
