// The header of .npy, NumPy's file of one array. Layout:
//
//   "\x93NUMPY", major, minor, u16 (version 1) or u32 (versions 2 and 3) header length, header, numbers
//
// The header is a Python dict as text: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 64), }.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "packtrain/status.h"

namespace packtrain {

inline constexpr size_t kNpyMostAxes = 32;       // NumPy 1's limit
inline constexpr size_t kNpyPrologueBytes = 12;  // from them npy_header_bytes tells where the numbers begin
inline constexpr uint32_t kNpyLargestHeader = 64 << 10;  // NumPy's own are below 200 bytes

struct NpyHeader {
  std::string type;  // "<f4"; of records the text of their fields, which begins with '['
  bool records = false, fortran = false;
  std::array<uint64_t, kNpyMostAxes> sizes{};
  size_t axes = 0;
  size_t bytes = 0;  // where the numbers begin

  std::span<const uint64_t> shape() const { return std::span(sizes).first(axes); }
};

// Whether these are the first bytes of a .npy file.
bool starts_npy(Bytes file);
// Where the numbers begin, from the first kNpyPrologueBytes of the file, or all if it has fewer.
Result<size_t> npy_header_bytes(Bytes file);
// `file` holds the header; what follows is not looked at.
Result<NpyHeader> parse_npy_header(Bytes file);

// A header of version 1 as NumPy writes it, padded so that the numbers begin at a multiple of 64, and so that
// the length does not depend on the first size.
std::string make_npy_header(std::string_view type, std::span<const uint64_t> shape);

}  // namespace packtrain
