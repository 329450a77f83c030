// HDF5's metadata on disk: the records that describe datasets, from bytes to values. Pure functions.
//
// A file is a superblock and objects; an object is a header, a list of messages. A group's messages name
// other objects, a dataset's say its shape (dataspace), its element (datatype) and where the elements lie
// (layout). Addresses count from the superblock; kHdf5Nowhere is none. Numbers are little-endian; addresses
// and lengths have eight bytes (the format allows others, nobody writes them).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "packtrain/status.h"

namespace packtrain {

inline constexpr uint64_t kHdf5Nowhere = UINT64_MAX;
inline constexpr std::string_view kHdf5Signature{"\x89HDF\r\n\x1a\n", 8};
inline constexpr size_t kHdf5SuperblockBytes = 100;  // the longest kind, version 1

// Takes numbers from the front of bytes. Beyond the end everything is zero, and failed() says so: a record is
// parsed whole and checked once. One thread at a time.
class Hdf5Cursor {
 public:
  explicit Hdf5Cursor(Bytes bytes) : rest_(bytes) {}
  uint64_t number(size_t bytes);  // of up to eight
  uint8_t u8() { return static_cast<uint8_t>(number(1)); }
  uint16_t u16() { return static_cast<uint16_t>(number(2)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t u64() { return number(8); }
  Bytes take(uint64_t bytes);
  void skip(uint64_t bytes) { take(bytes); }
  bool starts_with(std::string_view signature);  // takes it
  size_t left() const { return rest_.size(); }
  bool failed() const { return failed_; }

 private:
  Bytes rest_;
  bool failed_ = false;
};

// The checksum of newer records: Bob Jenkins' lookup3, as the format prescribes.
uint32_t hdf5_checksum(Bytes bytes);

struct Hdf5Superblock {
  uint64_t base = 0;  // where the superblock was when it was written
  uint64_t end = 0;   // of the file, as it was then
  uint64_t root = 0;  // the root group's header
};
// `bytes` begin with the signature.
Result<Hdf5Superblock> parse_hdf5_superblock(Bytes bytes);

struct Hdf5Type {
  enum class Kind : uint8_t {
    integer,   // whole numbers of 1 to 8 bytes, enumerations of them included
    raw,       // other elements of fixed size without pointers: reals, bit fields, opaque bytes
    text,      // strings of fixed size
    sequence,  // of variable length: a reference into a heap
    string,    // of variable length
    other,     // compounds, references, …
  };
  Kind kind = Kind::other;
  bool is_signed = false, big_endian = false;
  bool is_real = false;    // of kind raw: a number as IEEE has it, of 2, 4 or 8 bytes
  bool is_truth = false;   // of kind integer: FALSE or TRUE
  uint32_t size = 0;       // of an element where the dataset keeps it
  uint32_t item_size = 0;  // of an item of a sequence; 0: not of fixed size
  bool variable() const { return kind == Kind::sequence || kind == Kind::string; }
  std::string numpy_word() const;  // such as "<f4"; empty if it is no little-endian number
};
Result<Hdf5Type> parse_hdf5_type(Bytes message);

// The shape; one element has none. Nothing at all is one dimension of zero.
Result<std::vector<uint64_t>> parse_hdf5_space(Bytes message);

struct Hdf5Layout {
  enum class Kind : uint8_t { compact, contiguous, chunked, other };
  enum class ChunkIndex : uint8_t { tree, single, implicit, fixed_array, extensible_array, tree2, other };
  Kind kind = Kind::other;
  uint64_t address = kHdf5Nowhere;  // of the elements, or of the index of the chunks
  uint64_t bytes = 0;               // of contiguous elements
  std::vector<std::byte> inside;    // compact elements
  std::vector<uint64_t> chunk;      // the shape of a chunk, the element's size last
  ChunkIndex chunk_index = ChunkIndex::other;
  uint64_t single_stored = 0;  // of a single filtered chunk; 0: it is not filtered
  uint32_t single_mask = 0;
  bool plain_edges = false;  // chunks that reach beyond the shape are not filtered
};
Result<Hdf5Layout> parse_hdf5_layout(Bytes message);

// What an element holds that was never written; empty: zeros.
Result<std::vector<std::byte>> parse_hdf5_fill(Bytes message);
Result<std::vector<std::byte>> parse_old_hdf5_fill(Bytes message);

struct Hdf5Filter {
  uint16_t id = 0;
  uint32_t first_value = 0;  // of its parameters
};
inline constexpr uint16_t kHdf5Deflate = 1, kHdf5Shuffle = 2, kHdf5Fletcher32 = 3, kHdf5Lzf = 32000,
                          kHdf5Blosc = 32001, kHdf5Zstd = 32015;
Result<std::vector<Hdf5Filter>> parse_hdf5_filters(Bytes message);

struct Hdf5Link {
  std::string name;
  uint64_t address = kHdf5Nowhere;  // nowhere: a soft or external link
};
Result<Hdf5Link> parse_hdf5_link(Bytes message);

}  // namespace packtrain
