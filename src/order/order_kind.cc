#include "packtrain/order.h"

namespace packtrain {

std::string_view order_kind_name(OrderKind kind) {
  switch (kind) {
    case OrderKind::source:
      return "source";
    case OrderKind::global:
      return "global";
    case OrderKind::streams:
      return "streams";
  }
  return "";
}

Result<OrderKind> order_kind_of(std::string_view name) {
  for (const OrderKind kind : {OrderKind::source, OrderKind::global, OrderKind::streams})
    if (name == order_kind_name(kind)) return kind;
  return Status(Code::invalid,
                "there is no order '" + std::string(name) + "'; choose source, global or streams");
}

}  // namespace packtrain
