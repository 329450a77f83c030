// An array as files hold it: any order of axes, either order of bytes.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "packtrain/values.h"

namespace packtrain {

// NumPy's word for a type of number: "<f4", "|b1", or "f4" without an order of bytes.
struct StoredNumber {
  NumberType type = NumberType::uint8;
  bool swapped = false;  // big-endian
};
// Code::unsupported names what NumPy can hold and a batch cannot: text, dates, objects, records.
Result<StoredNumber> parse_number(std::string_view word);

// A view of the array's bytes. A plain value.
struct StoredArray {
  ArrayShape shape;
  std::array<uint64_t, kMostAxes> strides{};  // in numbers; those of C order if `contiguous`
  bool contiguous = true;
  bool swapped = false;
  Bytes data;  // shape.bytes() of them, or more

  void use_c_order();
  void use_fortran_order();
  // As numpy.reshape(stored).transpose(order): axis i of the shape is axis order[i] of what is stored.
  bool use_axis_order(std::span<const uint64_t> order);
};

// Adds an axis; false if there are too many, or the array would take more than 2^62 bytes.
bool add_axis(ArrayShape& shape, uint64_t size);

// Writes the numbers in C order, little-endian. `into` is shape.bytes() long.
void copy_array(const StoredArray& array, MutableBytes into);

}  // namespace packtrain
