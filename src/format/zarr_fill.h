// The fill value of a Zarr array, from JSON to bytes.
#pragma once

#include <string>

#include "base/json.h"
#include "format/array_table.h"
#include "packtrain/status.h"

namespace packtrain {

// What the numbers of an array are, as far as a fill value needs to know.
enum class ZarrNumber : uint8_t { truth, signed_integer, unsigned_integer, real, complex, time, text, bytes };

// The bytes of one item, little-endian; empty if all are zero, or none is said. Of an array of texts the text
// itself. Version 2 and 3 agree on numbers; bytes are base64 in both, or a list of numbers.
Result<std::string> zarr_fill(const Json& fill, ZarrNumber number, const ArrayType& type);

}  // namespace packtrain
