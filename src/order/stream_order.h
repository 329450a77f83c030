// The order `streams`: large sequential reads, and yet batches that come from everywhere.
#pragma once

#include "packtrain/order.h"

namespace packtrain {

Result<std::shared_ptr<const Order>> make_stream_order(OrderSpec spec);

}  // namespace packtrain
