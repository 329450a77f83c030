// A zip in the making whose entries are stored as they are, each beginning at a multiple of 64 bytes and of a
// size that may be known only at its end. What NPZ and Zarr's ZipStore are written with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/appender.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// One entry at a time, one thread at a time. Memory: 4 MiB and the directory. Bytes depend on the entries
// alone. Without finish() nothing is left.
class ZipStore {
 public:
  static Result<std::unique_ptr<ZipStore>> create(Storage& storage, std::string_view path,
                                                  uint64_t expected_bytes, const WriteOptions& options);

  // The first `head_bytes` of the entry are given to end(), when what they say is known.
  Status begin(std::string_view name, size_t head_bytes = 0);
  Status append(Bytes data);
  Status end(std::string_view head = {});
  Status add(std::string_view name, Bytes data);        // a whole entry
  uint64_t entry_bytes() const { return data_bytes_; }  // appended to the open entry so far
  Status finish();                                      // directory, and visible afterwards

 private:
  ZipStore(std::unique_ptr<Writer> writer, uint64_t size) : out_(std::move(writer), size) {}

  Appender out_;
  std::vector<std::byte> directory_;
  uint64_t entries_ = 0;
  // The open entry:
  std::string name_;
  uint64_t local_offset_ = 0, data_bytes_ = 0;
  uint32_t crc32_ = 0;  // of the data behind the head
  uint16_t room_ = 0;
  size_t head_bytes_ = 0;
};

}  // namespace packtrain
