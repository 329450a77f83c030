// Where the chunks of a dataset lie: six kinds of index, one answer.
#pragma once

#include <cstdint>
#include <vector>

#include "format/hdf5_file.h"
#include "packtrain/codec.h"
#include "packtrain/status.h"

namespace packtrain {

struct Hdf5Chunk {
  uint64_t address = kHdf5Nowhere;  // nowhere: never written, all fill value
  uint64_t stored = 0;
  uint32_t skipped_filters = 0;  // bit i: filter i was not applied
};

struct Hdf5Chunks {
  uint64_t rows = 0;  // in each, the last one too
  uint64_t row_bytes = 0;
  std::vector<Hdf5Chunk> chunks;  // in the order of rows
};

// Only where chunks divide the first dimension alone; the others are refused. All chunks lie within the file.
Result<Hdf5Chunks> list_hdf5_chunks(Hdf5File& file, const Hdf5Object& dataset);

// How the bytes of a chunk became what is stored. Filters that packtrain does not know are Code::unsupported.
Result<Pipeline> hdf5_pipeline(const Hdf5Object& dataset, uint32_t skipped_filters);
Status check_hdf5_fill(const Hdf5Object& dataset);  // that a fill value is one element, or none
// That the dataset's elements, `bytes` in all, take no more than the file could hold: compressed, or for some
// part never written.
Status check_hdf5_claim(const Hdf5File& file, uint64_t bytes);

// All elements of a dataset of whatever layout, filtered or not, written or not: for columns of small values.
// Within what check_hdf5_claim allows.
Result<std::vector<std::byte>> read_hdf5_elements(Hdf5File& file, const Hdf5Object& dataset);

// The number of bytes of one row, that is of all dimensions but the first; UINT64_MAX if there is no such
// number.
uint64_t hdf5_row_bytes(const Hdf5Object& dataset);
// The number of rows; one where there is no dimension.
uint64_t hdf5_rows(const Hdf5Object& dataset);

}  // namespace packtrain
