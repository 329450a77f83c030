// Draws with replacement: a class by its weight, then one of its samples, each as likely as any other.
#pragma once

#include "packtrain/order.h"

namespace packtrain {

// Asks class_of twice for every sample; keeps 4 bytes a sample (8 beyond 2^32 samples).
Result<std::shared_ptr<const Order>> make_weighted_order(OrderSpec spec);

}  // namespace packtrain
