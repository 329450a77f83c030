// The metadata of an HDF5 file in the making, in the oldest form, which every release of every reader takes:
// superblock 0, object headers 1, groups as symbol tables, contiguous elements. No times are kept, so that
// the same data give the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/hdf5_records.h"

namespace packtrain {

inline constexpr uint64_t kHdf5WrittenSuperblockBytes = 96;

// What an element of a dataset is; all numbers are little-endian.
enum class Hdf5Element : uint8_t { u8, i16, i32, i64, text, bytes, string, number };
// Whether Hdf5Element::number can be of this type, in NumPy's words.
bool is_hdf5_number(std::string_view type);

struct Hdf5DatasetToWrite {
  std::string name;
  Hdf5Element element = Hdf5Element::u8;
  uint32_t text_bytes = 0;  // of each text
  std::string number = {};  // of Hdf5Element::number, such as "<f4"
  uint64_t rows = 0;
  std::vector<uint64_t> row_shape = {};  // what follows the rows in the dataset's shape
  uint64_t address = 0, bytes = 0;       // of the elements
};

struct Hdf5GroupToWrite {
  std::string name;
  std::vector<Hdf5DatasetToWrite> datasets;
  std::vector<Hdf5GroupToWrite> groups;
};

struct Hdf5Metadata {
  std::vector<std::byte> superblock;  // for the front of the file
  std::vector<std::byte> objects;     // for its end, at the address that was given
};
// `address` divides by 8.
Hdf5Metadata encode_hdf5_metadata(const Hdf5GroupToWrite& root, uint64_t address);

}  // namespace packtrain
