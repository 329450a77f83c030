// What the metadata of a Zarr array say, of both versions:
//
//   v3  NAME/zarr.json: shape, data_type, chunk_grid, chunk_key_encoding, codecs, fill_value
//   v2  NAME/.zarray: shape, dtype, chunks, compressor, filters, order, dimension_separator, fill_value
//
// A shard (codec sharding_indexed) is a chunk made of inner chunks, with an index of u64 offset, u64 length
// for each of them, both 2^64 - 1 where it is missing, and a CRC-32C of the index behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "format/array_table.h"

namespace packtrain {

// How the bytes of a chunk are stored: `front` bytes in front of what the pipeline made.
struct ZarrCodec {
  Pipeline pipeline;
  uint64_t front = 0;
  bool texts = false;  // vlen-utf8: u32 count, then u32 length and bytes for each, little-endian
};

struct ZarrSharding {
  uint64_t inner_rows = 1;
  bool index_at_start = false, index_has_check = false;
};

struct ZarrArray {
  ArrayType type;
  std::string word;  // NumPy's for it, of plain numbers; else empty
  std::vector<uint64_t> shape;
  uint64_t chunk_rows = 1;  // a chunk holds so many rows, whole
  ZarrCodec codec;          // of inner chunks where there are shards
  std::optional<ZarrSharding> shards;
  std::string fill;     // what missing chunks hold: the bytes of an item, or a text; empty: zeros, no text
  Status fill_trouble;  // why that is not known
  Status unusable;      // why no column can be made of it; what stands above may then be incomplete

  std::string chunk_key(uint64_t chunk) const;  // relative to the array

  std::string key_front = "c/", key_separator = "/";
};

// Metadata that are none are Code::corrupt; what packtrain cannot use is in ZarrArray::unusable.
Result<ZarrArray> parse_zarr_v3(const Json& metadata);
Result<ZarrArray> parse_zarr_v2(const Json& metadata);

}  // namespace packtrain
