// HDF5's fractal heap, in which large groups of the newer kind keep their links: one line of bytes, cut into
// blocks of growing size. Objects are found by an identity that says where on that line they lie.
//
//   head      "FRHP", sizes and addresses, checksum; see parse() for the order
//   direct    "FHDB", u8 0, u64 head's address, its own place on the line, checksum if the head says so,
//   bytes;
//             what stands in front of the bytes counts on the line too
//   indirect  "FHIB", u8 0, u64 head's address, its own place on the line, addresses of children, checksum
//
// Blocks stand in rows of equal number; those of rows 0 and 1 have the smallest size, those of each further
// row twice as much as the row before. Up to some size they are direct, beyond it indirect.
#pragma once

#include <cstdint>
#include <vector>

#include "format/hdf5_file.h"
#include "packtrain/status.h"

namespace packtrain {

// One thread at a time.
class Hdf5FractalHeap {
 public:
  static Result<Hdf5FractalHeap> open(Hdf5File& file, uint64_t address);

  // The bytes of an object. Filtered heaps and objects that lie outside of it are Code::unsupported: links
  // never do.
  Result<std::vector<std::byte>> object(Bytes identity);

 private:
  explicit Hdf5FractalHeap(Hdf5File& file) : file_(&file) {}
  Status parse(uint64_t address);
  uint64_t row_block_bytes(uint64_t row) const;
  // The address of the direct block that holds `place`, and where on the line it begins.
  struct Direct {
    uint64_t address = 0, begin = 0, bytes = 0;
  };
  Result<Direct> find(uint64_t place) const;

  Hdf5File* file_;
  uint64_t place_bytes_ = 0, length_bytes_ = 0;  // of an identity
  uint64_t width_ = 0, first_bytes_ = 0, largest_direct_ = 0;
  uint64_t root_ = kHdf5Nowhere, root_rows_ = 0;  // no rows: the root is a direct block
};

}  // namespace packtrain
