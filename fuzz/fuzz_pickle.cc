// Any bytes as a pickle: an error or plain values, all of which can be reached.
#include <cstdint>
#include <string_view>

#include "decode/pickle.h"

using namespace packtrain;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto pickle = Pickle::parse({reinterpret_cast<const char*>(data), size});
  if (!pickle.ok()) return 0;
  uint64_t seen = 0;
  for (const PickleValue& item : pickle->items(pickle->root())) {
    for (const PickleValue& inner : pickle->items(item)) seen += static_cast<uint64_t>(inner.kind);
    if (item.kind == PickleKind::text || item.kind == PickleKind::bytes)
      for (const char c : Pickle::text(item)) seen += static_cast<uint8_t>(c);
  }
  return seen == UINT64_MAX ? 1 : 0;
}
