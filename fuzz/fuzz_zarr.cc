// Zarr against any bytes: as a zip, whose CRC-32s guard the metadata, and as a folder of one array, where
// nothing does. The first two bytes say how many of the rest are the metadata; behind them is chunk 0.
#include <string>

#include "fuzz/fuzz_container.h"

namespace {

using namespace packtrain;

void fuzz_folder(std::string_view metadata, std::string_view chunk, bool version_2) {
  MemoryStorage storage;
  put(storage, "x/zarr.json", R"({"zarr_format": 3, "node_type": "group"})");
  if (version_2) {
    put(storage, "x/.zgroup", R"({"zarr_format": 2})");
    (void)storage.remove("x/zarr.json");
  }
  // Of one axis as keys and labels, of two as a field: the same metadata, and chunks where either looks.
  for (const char* name : {"x/keys", "x/y", "x/z"}) {
    put(storage, std::string(name) + (version_2 ? "/.zarray" : "/zarr.json"), metadata);
    const bool two = std::string_view(name) == "x/z";
    for (const char* key : {two ? "/c/0/0" : "/c/0", two ? "/0.0" : "/0"})
      put(storage, std::string(name) + key, chunk);
  }
  IndexBuilder builder;
  if (!find_format("zarr")->index(storage, "x", {}, builder).ok()) return;
  auto dataset = Dataset::from_memory(storage, "", builder.finish());
  if (dataset.ok()) read_everything(**dataset);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  fuzz_container("zarr", bytes);
  if (size < 2) return 0;
  const std::string_view rest = bytes.substr(2);
  const size_t length = std::min<size_t>(size_t{data[0]} << 8 | data[1], rest.size());
  for (const bool version_2 : {false, true})
    fuzz_folder(rest.substr(0, length), rest.substr(length), version_2);
  return 0;
}
