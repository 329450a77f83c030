#include "packtrain/order.h"
#include "order/batching.h"
#include "order/sliced_order.h"

namespace packtrain {

Result<std::shared_ptr<const Order>> Order::make(OrderSpec spec) {
  PACKTRAIN_TRY(check_batching(spec));
  switch (spec.kind) {
    case OrderKind::source:
      return make_source_order(std::move(spec));
    case OrderKind::global:
      return make_global_order(std::move(spec));
    case OrderKind::streams:
      break;
  }
  return Status(Code::unsupported, "this order is not there");
}

}  // namespace packtrain
