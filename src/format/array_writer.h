// Samples to arrays, for containers made of named arrays: NPZ and Zarr. What it writes is what array_table.h
// reads: fields as bytes with offsets, or stacked where they are .npy files of one type and shape.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/column_spool.h"
#include "format/npy_header.h"
#include "packtrain/format.h"

namespace packtrain {

// An array to write. `type` is NumPy's word for it; of texts ("|S12") too.
struct ArrayToWrite {
  std::string_view name, type;
  std::span<const uint64_t> shape;
  bool samples = false;  // rows are stacked samples, which may be compressed one by one
  // Hands its bytes to `each`, in pieces that need not be rows.
  std::function<Status(const std::function<Status(Bytes)>& each)> pour;
};

// Where arrays go. One thread at a time.
struct ArraySink {
  virtual ~ArraySink() = default;
  virtual std::string_view key_column() const = 0;
  // A flat array of bytes whose length is known at its end. At most one, and before any other.
  virtual Status begin_bytes(std::string_view name) = 0;
  virtual Status append_bytes(Bytes data) = 0;
  virtual Status end_bytes() = 0;
  virtual Status add(const ArrayToWrite& array) = 0;
  // Whether texts of any length are taken as such; otherwise they come as arrays of bytes.
  virtual bool takes_texts() const { return false; }
  virtual Status add_texts(std::string_view, uint64_t /*count*/,
                           const std::function<std::string_view(uint64_t)>& /*text*/) {
    return Status(Code::unsupported, "texts are not taken");
  }
  virtual Status finish() = 0;  // visible afterwards
};

// Whether it is NumPy's word for plain little-endian numbers, of which arrays can be stacked.
bool is_plain_number(std::string_view type);
// The header of a .npy file of `bytes` bytes whose numbers can be a row of a larger array: plain ones, in C
// order, and nothing behind them. `head`: its first bytes, the header among them.
std::optional<NpyHeader> stackable_header(Bytes head, uint64_t bytes);

// A writer of containers over a sink. Columns grow side by side, so all but the first large one wait in a
// ColumnSpool. Memory: 64 MiB, keys, and 8 bytes for each field and label. Fields whose names would be taken
// for something else are Code::invalid.
Result<std::unique_ptr<ContainerWriter>> make_array_writer(Storage& storage, std::string_view path,
                                                           const WriteSpec& spec,
                                                           std::unique_ptr<ArraySink> sink);

}  // namespace packtrain
