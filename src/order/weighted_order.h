// An order that draws with replacement, by class weights.
#pragma once

#include "packtrain/order.h"

namespace packtrain {

Result<std::shared_ptr<const Order>> make_weighted_order(OrderSpec spec);

}  // namespace packtrain
