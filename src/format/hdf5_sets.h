// What the datasets of an HDF5 file mean: which of them are columns of samples.
//
// Columns stand side by side in a group: each group of the top is a split, or the root holds them all, of one
// set or, where each name carries a split (x_train, y_train), of several. A
// field is one of three kinds, and `NAME_present`, bytes of 0 and 1, says which samples have it (all, if it
// is not there).
//   values   NAME (n) of variable length
//   slices   NAME (all bytes, one behind the other) with NAME_offsets (n + 1)
//   rows     NAME (n, …) of fixed size: a row is a sample
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/array_table.h"
#include "format/hdf5_file.h"
#include "packtrain/status.h"

namespace packtrain {

struct Hdf5Column {
  enum class Kind : uint8_t { values, slices, rows };
  std::string name;
  Kind kind = Kind::rows;
  Hdf5Object data;
  std::optional<Hdf5Object> offsets, present;
};

struct Hdf5Set {
  std::string split;  // empty: the root
  uint64_t samples = 0;
  std::vector<Hdf5Column> fields;  // by name
  std::optional<Hdf5Object> labels, keys;
  std::string label_name;             // of the dataset that holds the labels
  bool named = false;                 // packtrain named the columns: after their fields
  std::vector<std::string> left_out;  // datasets that are no columns
};

// All sets, in the order in which their groups were made. None is unsupported, with what the file holds.
Result<std::vector<Hdf5Set>> find_hdf5_sets(Hdf5File& file);

// Whether values of variable length are what the file keeps.
bool has_variable_length(const std::vector<Hdf5Set>& sets);

}  // namespace packtrain
