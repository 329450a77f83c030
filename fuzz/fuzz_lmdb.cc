#include "fuzz/fuzz_container.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  packtrain::fuzz_container("lmdb", {reinterpret_cast<const char*>(data), size});
  return 0;
}
