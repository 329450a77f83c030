// Values of variable length: where they lie in the file's global heap.
//
//   reference    u32 items, u64 address of a collection, u32 index of an object in it; no items: no object
//   collection   "GCOL", u8 1, 3 bytes of nothing, u64 size, then objects
//   object       u16 index, u16 references, 4 bytes of nothing, u64 bytes, bytes, zeros up to 8
//                index 0 is free space, whose size counts its head
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/columns.h"
#include "format/hdf5_file.h"
#include "format/pace.h"
#include "packtrain/status.h"

namespace packtrain {

inline constexpr size_t kHdf5ReferenceBytes = 16, kHdf5HeapHeadBytes = 16;

struct Hdf5Value {
  enum class State : uint8_t {
    wanted,
    found,
    outside,
    no_collection,
    overlap,
    damaged,
    absent,
    short_object
  };
  uint64_t place = 0;  // the collection's address; once found, the offset of the bytes in the file
  uint64_t bytes = 0;
  uint32_t index = 0;
  State state = State::found;
};

// From 16 bytes of a dataset. Nothing is wanted of a value without bytes.
Hdf5Value parse_hdf5_reference(Bytes reference, uint32_t item_size);

// Finds all values: each collection is walked once, by its heads where the objects are large, and as a whole
// where they are small; near ones share a read, and many reads are in flight. What cannot be found is told by
// the value's state. Linear in the number of values, and of objects around them.
Status find_hdf5_values(Hdf5File& file, std::span<Hdf5Value> values, Pace& pace);

// Why a value was not found.
std::string_view hdf5_value_trouble(Hdf5Value::State state);

// The bytes of the values that were found, each in turn; near ones share a read. For short texts.
Result<TextRow> read_hdf5_texts(Hdf5File& file, std::span<const Hdf5Value> values);

}  // namespace packtrain
