// The two ways to compute a CRC; hash.cc and crc_join.cc choose. Private to the folder.
#pragma once

#include <cstddef>
#include <cstdint>

namespace packtrain::crc {

// By tables, eight bytes a step; for CRC-32C by the processor's own instruction where there is one.
uint32_t crc32c_portable(uint32_t before, const void* data, size_t bytes);
uint32_t crc32_portable(uint32_t before, const void* data, size_t bytes);
// By ISA-L, which picks the widest carry-less multiply of the processor at run time.
uint32_t crc32c_isal(uint32_t before, const void* data, size_t bytes);
uint32_t crc32_isal(uint32_t before, const void* data, size_t bytes);

// What `check` becomes when `bytes` zero bytes, whose own check is left out, are appended; without the
// processor's carry-less multiply.
uint32_t crc32c_shift_portable(uint32_t check, uint64_t bytes);

}  // namespace packtrain::crc
