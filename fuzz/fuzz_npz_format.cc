#include "fuzz/fuzz_container.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const char* format : {"npz", "npy"})
    packtrain::fuzz_container(format, {reinterpret_cast<const char*>(data), size});
  return 0;
}
