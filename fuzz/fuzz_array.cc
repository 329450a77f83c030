// What ValueReader makes of any bytes as .npy, raw numbers or a pickle: an error, or an array that is filled
// to its last byte. The first byte chooses.
#include "fuzz/read_value.h"

using namespace packtrain;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr ValueKind kKinds[] = {ValueKind::npy, ValueKind::raw, ValueKind::array, ValueKind::pickle};
  ValueSpec spec;
  spec.kind = kKinds[data[0] % 4];
  spec.type = static_cast<NumberType>(data[0] / 4 % (static_cast<unsigned>(NumberType::complex128) + 1));
  return fuzz::read_value(spec, std::as_bytes(std::span(data, size)).subspan(1));
}
