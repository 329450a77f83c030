// Any bytes as each kind of list, captions among them: an error or a catalog that hangs together.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "io/test_storage.h"
#include "pack/catalog.h"

using namespace packtrain;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr std::string_view kNames[] = {"/l/a.csv",  "/l/a.tsv",   "/l/a.token",
                                         "/l/a.json", "/l/a.jsonl", "/l/a.pkl"};
  const std::string path(kNames[data[0] % std::size(kNames)]);
  MemoryStorage storage;
  put(storage, path, {reinterpret_cast<const char*>(data) + 1, size - 1});
  put(storage, "/l/1.jpg", "x");
  ScanOptions options;
  options.sources = {{"", path}};
  auto catalog = scan(storage, options);
  if (!catalog.ok()) return 0;
  for (size_t i = 0; i < catalog->samples.size(); ++i)
    if (SampleCells(*catalog, i).size() == 0) std::abort();
  for (const Cell& cell : catalog->cells) {
    if (cell.field >= catalog->fields.size()) std::abort();
    if (cell.origin == Origin::text && cell.where + cell.size > catalog->texts.size()) std::abort();
    if (recorded_path(*catalog, cell).find("..") == 0) std::abort();
  }
  if (make_keys(*catalog) > catalog->samples.size()) std::abort();
  return 0;
}
