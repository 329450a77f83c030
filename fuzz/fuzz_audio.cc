// What ValueReader makes of any bytes as WAV or FLAC: an error, or samples that are filled to the last byte.
// The first byte chooses their form.
#include "fuzz/read_value.h"

using namespace packtrain;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  ValueSpec spec;
  spec.kind = ValueKind::audio;
  spec.type = (data[0] & 1) != 0 ? NumberType::int16 : NumberType::float32;
  spec.mono = (data[0] & 2) != 0;
  return fuzz::read_value(spec, std::as_bytes(std::span(data, size)).subspan(1));
}
