// The columns of an index and of its names: any bytes in their place, under a manifest that takes them for
// its own, in both forms.
#include <string>

#include "fuzz/read_everything.h"
#include "index/npz.h"
#include "io/test_storage.h"
#include "packtrain/storage.h"

namespace {

using namespace packtrain;

// Three samples of two fields; in the general form one field is a block that all of them share.
IndexBuilder::Finished small_index(bool general) {
  IndexBuilder builder;
  uint32_t shard = builder.add_shard({.path = "/shard", .format = "webdataset", .bytes = 64});
  uint64_t block = builder.add_block({.shard = shard, .offset = 0, .stored = 32, .raw = 32});
  for (uint64_t i = 0; i < 3; ++i) {
    builder.begin_sample("key" + std::to_string(i));
    builder.add_field("cls", shard, 8 * i, 4, CheckKind::none, 0, "path");
    Slice slice{.block = block, .start = 8 * i, .length = 8};
    if (general) {
      builder.add_field("txt", std::span(&slice, 1), "path");
    } else {
      builder.add_field("txt", shard, 8 * i + 4, 4, CheckKind::none, 0, "path");
    }
    builder.set_label(static_cast<int64_t>(i));
    (void)builder.end_sample();
  }
  return builder.finish();
}

void open_and_read(Storage& storage, IndexBuilder::Finished finished) {
  auto hash = npz_directory_hash(as_bytes(finished.index_npz));
  if (!hash.ok()) return;
  finished.manifest.index_directory_hash = *hash;
  auto dataset = Dataset::from_memory(storage, "/", std::move(finished));
  if (!dataset.ok()) return;
  read_everything(**dataset);
  (void)(*dataset)->find("key1");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  MemoryStorage storage;
  put(storage, "/shard", std::string(64, 'x'));
  for (bool general : {false, true}) {
    IndexBuilder::Finished finished = small_index(general);
    finished.index_npz = bytes;
    open_and_read(storage, std::move(finished));
    finished = small_index(general);
    finished.names_npz = bytes;
    finished.manifest.names_directory_hash.clear();
    open_and_read(storage, std::move(finished));
  }
  return 0;
}
