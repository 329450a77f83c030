// Any bytes as a loader's state: an error, or a state that comes back when it is saved and read again.
#include <cstdint>
#include <cstdlib>

#include "packtrain/order.h"

using namespace packtrain;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto state = OrderState::decode({reinterpret_cast<const char*>(data), size});
  if (!state.ok()) return 0;
  const std::string saved = state->encode();
  const auto again = OrderState::decode(saved);
  if (!again.ok() || again->encode() != saved || !state->check(*again).ok()) std::abort();
  return 0;
}
