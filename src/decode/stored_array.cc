#include "decode/stored_array.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/words.h"

namespace packtrain {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 62;

struct NumberWord {
  std::string_view word;
  NumberType type;
};
constexpr NumberWord kWords[] = {
    {"b1", NumberType::boolean},   {"i1", NumberType::int8},        {"i2", NumberType::int16},
    {"i4", NumberType::int32},     {"i8", NumberType::int64},       {"u1", NumberType::uint8},
    {"u2", NumberType::uint16},    {"u4", NumberType::uint32},      {"u8", NumberType::uint64},
    {"f2", NumberType::float16},   {"f4", NumberType::float32},     {"f8", NumberType::float64},
    {"c8", NumberType::complex64}, {"c16", NumberType::complex128},
};

// How many bytes are turned around as one: a complex number is two.
size_t swap_bytes(NumberType type) {
  const bool pair = type == NumberType::complex64 || type == NumberType::complex128;
  return number_bytes(type) / (pair ? 2 : 1);
}

void swap_all(MutableBytes bytes, size_t unit) {
  for (size_t at = 0; at + unit <= bytes.size(); at += unit)
    std::reverse(bytes.begin() + static_cast<ptrdiff_t>(at),
                 bytes.begin() + static_cast<ptrdiff_t>(at + unit));
}

// One number after the other in C order, each fetched from where its strides say.
template <size_t kBytes>
void gather(const StoredArray& array, std::byte* to) {
  std::array<uint64_t, kMostAxes> at{};
  const size_t axes = array.shape.axes;
  const std::byte* const from = array.data.data();
  uint64_t offset = 0;
  for (uint64_t left = array.shape.count(); left > 0; --left, to += kBytes) {
    std::memcpy(to, from + offset * kBytes, kBytes);
    for (size_t axis = axes; axis-- > 0;) {
      offset += array.strides[axis];
      if (++at[axis] < array.shape.sizes[axis]) break;
      offset -= array.strides[axis] * array.shape.sizes[axis];
      at[axis] = 0;
    }
  }
}

}  // namespace

Result<StoredNumber> parse_number(std::string_view word) {
  StoredNumber number;
  std::string_view type = word;
  if (!type.empty() && std::string_view("<>|=").find(type[0]) != std::string_view::npos) {
    number.swapped = type[0] == '>';
    type.remove_prefix(1);
  }
  for (const NumberWord& known : kWords) {
    if (known.word != type) continue;
    number.type = known.type;
    number.swapped = number.swapped && number_bytes(known.type) > 1;
    return number;
  }
  if (type.starts_with('O')) {
    return Status(Code::unsupported,
                  "it is an array of Python objects, which could run code; save arrays of numbers instead");
  }
  return Status(Code::unsupported,
                "it is an array of type '" + printable(word) +
                    "', which is none of numbers that a batch can hold; save it as integers or floats");
}

void StoredArray::use_c_order() {
  uint64_t stride = 1;
  for (size_t axis = shape.axes; axis-- > 0; stride *= shape.sizes[axis]) strides[axis] = stride;
  contiguous = true;
}

void StoredArray::use_fortran_order() {
  uint64_t stride = 1;
  size_t longer = 0;
  for (size_t axis = 0; axis < shape.axes; stride *= shape.sizes[axis], ++axis) {
    strides[axis] = stride;
    longer += shape.sizes[axis] > 1 ? 1 : 0;
  }
  contiguous = longer <= 1;
}

bool StoredArray::use_axis_order(std::span<const uint64_t> order) {
  if (order.size() != shape.axes) return false;
  use_c_order();
  const std::array<uint64_t, kMostAxes> stored_sizes = shape.sizes, stored_strides = strides;
  uint32_t seen = 0;
  for (size_t axis = 0; axis < order.size(); ++axis) {
    if (order[axis] >= order.size() || (seen >> order[axis] & 1) != 0) return false;
    seen |= 1U << order[axis];
    shape.sizes[axis] = stored_sizes[order[axis]];
    strides[axis] = stored_strides[order[axis]];
  }
  contiguous = std::is_sorted(order.begin(), order.end());
  return true;
}

bool add_axis(ArrayShape& shape, uint64_t size) {
  if (shape.axes == kMostAxes) return false;
  shape.sizes[shape.axes++] = size;
  // The other axes' product counts even where one of them is 0: nobody means such an array.
  uint64_t bytes = number_bytes(shape.type);
  for (size_t axis = 0; axis < shape.axes; ++axis)
    if (__builtin_mul_overflow(bytes, std::max<uint64_t>(shape.sizes[axis], 1), &bytes)) return false;
  return bytes <= kMostBytes;
}

void copy_array(const StoredArray& array, MutableBytes into) {
  assert(into.size() == array.shape.bytes() && array.data.size() >= into.size());
  if (into.empty()) return;
  if (array.contiguous) {
    std::memcpy(into.data(), array.data.data(), into.size());
  } else {
    switch (number_bytes(array.shape.type)) {
      case 1:
        gather<1>(array, into.data());
        break;
      case 2:
        gather<2>(array, into.data());
        break;
      case 4:
        gather<4>(array, into.data());
        break;
      case 8:
        gather<8>(array, into.data());
        break;
      default:
        gather<16>(array, into.data());
    }
  }
  if (array.swapped) swap_all(into, swap_bytes(array.shape.type));
}

}  // namespace packtrain
