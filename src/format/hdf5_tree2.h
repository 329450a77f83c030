// Trees of the newer kind (version 2), by which HDF5 finds the chunks of datasets that grow in several
// directions and the links of large groups. All records of a tree have one size and lie in its nodes.
//
//   head      "BTHD", u8 0, u8 type, u32 bytes of a node, u16 bytes of a record, u16 depth, u8 and u8
//             percentages, u64 root, u16 records in it, u64 records in all, checksum
//   leaf      "BTLF", u8 0, u8 type, records, checksum
//   internal  "BTIN", u8 0, u8 type, records, and one more child than records, each: u64 address, its number
//             of records, and above the lowest such level the number of records below it; checksum
#pragma once

#include <cstdint>
#include <functional>

#include "format/hdf5_file.h"
#include "packtrain/status.h"

namespace packtrain {

// What the records are about.
inline constexpr uint8_t kHdf5TreeOfLinks = 5, kHdf5TreeOfChunks = 10, kHdf5TreeOfFilteredChunks = 11;

// Calls `each` for every record, in no order. A tree of another type, or one that has more records than
// `most` or overlaps itself, is Code::corrupt. Checksums are compared.
Status walk_hdf5_tree2(Hdf5File& file, uint64_t address, uint8_t type, uint64_t most,
                       const std::function<Status(Bytes record)>& each);

}  // namespace packtrain
