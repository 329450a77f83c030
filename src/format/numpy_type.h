// NumPy's words for types of numbers and texts: "<f4", "|S12", "[('a', '<i4')]".
#pragma once

#include <string_view>

#include "format/array_table.h"
#include "packtrain/status.h"

namespace packtrain {

struct NumpyType {
  ArrayType type;   // of records item_bytes is 0: how many they take is not told by the word alone
  Status unusable;  // why rows of it cannot be used: Python objects, big-endian numbers
};
NumpyType parse_numpy_type(std::string_view word);

}  // namespace packtrain
