// Manifests: as they come, and with a right hash put behind them, so that what lies beyond it is reached.
#include <cstdlib>
#include <string>

#include "base/hash.h"
#include "packtrain/index.h"
#include "packtrain/storage.h"

namespace {

using packtrain::Manifest;

void decode_and_encode(std::string_view text) {
  auto manifest = Manifest::decode(text);
  if (!manifest.ok()) return;
  // What was accepted survives being written and read again.
  if (!Manifest::decode(manifest->encode()).ok()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  decode_and_encode(text);
  std::string hash = packtrain::xxh128_hex(packtrain::as_bytes(text));
  decode_and_encode(text + ",\n \"hash\": \"" + hash + "\"\n}\n");
  return 0;
}
