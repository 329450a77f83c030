// The named objects of a Zarr hierarchy, in a folder or in a zip (ZipStore).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/array_table.h"
#include "packtrain/format.h"

namespace packtrain {

struct ZarrObject {
  uint32_t file = 0;  // into ZarrStore::files
  uint64_t offset = 0, bytes = 0;
  uint64_t raw = 0;                        // == bytes, unless the zip compresses it
  Pipeline pipeline;                       // of the zip
  CheckKind check_kind = CheckKind::none;  // of all its bytes, decoded
  uint32_t check = 0;
};

// One thread at a time.
struct ZarrStore {
  virtual ~ZarrStore() = default;
  // Nothing if there is no such object. Keys are paths: "x/c/0".
  virtual Result<std::optional<ZarrObject>> find(const std::string& key) = 0;
  // The names of the folders in a folder ("" is the root), sorted.
  virtual Result<std::vector<std::string>> folders(const std::string& folder) = 0;
  virtual uint64_t most_chunks() const = 0;  // that an array in it may claim to have

  std::vector<ArrayFile> files;  // grows with find()
};

Result<std::unique_ptr<ZarrStore>> open_zarr_store(Storage& storage, std::string_view path,
                                                   const IndexOptions& options);
// The bytes of an object, decoded and checked; nothing if there is none.
Result<std::optional<std::string>> read_zarr_object(Storage& storage, ZarrStore& store,
                                                    const std::string& key);

// Whether a file or folder is a Zarr hierarchy, by what lies in it. Read errors count as no.
bool looks_like_zarr(Storage& storage, std::string_view path);

}  // namespace packtrain
