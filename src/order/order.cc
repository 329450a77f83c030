#include "packtrain/order.h"
#include "order/batching.h"
#include "order/sliced_order.h"
#include "order/stream_order.h"
#include "order/weighted_order.h"

namespace packtrain {

Result<std::shared_ptr<const Order>> Order::make(OrderSpec spec) {
  PACKTRAIN_TRY(check_batching(spec));
  if (!spec.weights.empty()) {
    if (spec.kind != OrderKind::global)
      return Status(Code::invalid,
                    "class weights draw samples from everywhere: they need the order 'global', not '" +
                        std::string(order_kind_name(spec.kind)) + "'");
    return make_weighted_order(std::move(spec));
  }
  switch (spec.kind) {
    case OrderKind::source:
      return make_source_order(std::move(spec));
    case OrderKind::global:
      return make_global_order(std::move(spec));
    case OrderKind::streams:
      return make_stream_order(std::move(spec));
  }
  return Status(Code::invalid, "there is no such order");
}

}  // namespace packtrain
