// Arrays that together are a table of samples, for containers made of named arrays: NPZ and Zarr. Both get
// their samples by these rules:
//
//   NAME           (n, …), row i is the field NAME of sample i: its numbers in C order, little-endian
//   NAME, NAME_offsets     (items) and (n + 1): sample i is NAME[offsets[i]:offsets[i + 1]]
//   NAME_header    bytes that stand in front of every row of NAME: the header of .npy, where packtrain
//   stacked
//                  arrays, so that each field comes back as the .npy file that it was
//   NAME_present   (n), not zero where the sample has the field; without it all have
//   labels, …      (n) or (n, 1) of whole numbers: see column_role
//   __key__, …     (n) of texts: see column_role
//   NAME_SPLIT or SPLIT_NAME, SPLIT being train, val, test, …: a table for each split
//
// Beside arrays of splits, those of no split are left out: they say something about the whole. Arrays without
// axes are remarks on the whole, and left out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "packtrain/codec.h"
#include "packtrain/format.h"
#include "packtrain/index.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

inline constexpr std::string_view kOffsetsSuffix = "_offsets", kHeaderSuffix = "_header",
                                  kPresentSuffix = "_present";
inline constexpr std::string_view kLabelColumn = "labels";

struct ArrayType {
  enum class Kind : uint8_t { truth, unsigned_integer, signed_integer, other, bytes, text, long_text };
  Kind kind = Kind::other;
  uint64_t item_bytes = 0;  // of a long_text 0: it is in ArrayColumn::texts

  bool is_integer() const { return kind <= Kind::signed_integer; }
};

// A stretch of an array's bytes as it is stored.
struct ArrayPart {
  uint32_t file = 0;  // into ArrayTable::files
  uint64_t offset = 0, stored = 0, raw = 0;
  uint64_t start = 0;                      // where the array's bytes begin in the decoded ones
  CheckKind check_kind = CheckKind::none;  // of the decoded bytes
  uint32_t check = 0;
  bool hole = false;  // nothing stored: all fill value
};

// One array: its bytes in C order, cut into parts of equal length. The last one may hold more than the array
// needs.
struct ArrayColumn {
  std::string name;
  std::string split;  // of the group that it lies in, whose name stands in front of its own; mostly empty
  ArrayType type;
  std::string word;  // NumPy's for the type, of plain numbers; else empty
  std::vector<uint64_t> shape;
  Pipeline pipeline;        // of all parts
  uint64_t part_bytes = 0;  // of the array in each part but the last; > 0 where there are parts
  std::vector<ArrayPart> parts;
  std::string fill;                // of holes: the bytes of an item; empty: zeros
  std::vector<std::string> texts;  // of long_text, which only keys may be
  Status unusable;                 // why no column can be made of it; it may still be no part of the table

  uint64_t rows() const { return shape.empty() ? 0 : shape[0]; }
  uint64_t row_bytes() const;  // shapes were checked: it does not overflow
  uint64_t bytes() const { return rows() * row_bytes(); }
};

struct ArrayFile {
  std::string path;
  ShardSpec shard;
  std::shared_ptr<const File> file;  // null: opened when it is read
};

struct ArrayTable {
  bool own_names = false;  // packtrain wrote it: arrays are named as their fields are
  std::vector<ArrayFile> files;
  std::vector<ArrayColumn> arrays;
};

// The number of bytes that an array of this shape takes; nothing if it is 2^60 or more. Sizes of zero count
// as one, so that no product of some of them can overflow either.
std::optional<uint64_t> checked_array_bytes(const std::vector<uint64_t>& shape, uint64_t item_bytes);

// All bytes of an array, decoded and checked.
Result<std::vector<std::byte>> read_array(Storage& storage, const ArrayTable& table,
                                          const ArrayColumn& column);

// Whether the arrays say themselves that they are columns of a table (labels, keys, offsets), or could be:
// all with the same number of rows, which is not below that of the arrays.
bool is_array_table(const ArrayTable& table);

// Adds the samples, and the files that their bytes lie in as shards. Arrays that do not fit together are
// Code::unsupported, offsets that point elsewhere Code::corrupt.
Status add_array_samples(Storage& storage, const ArrayTable& table, const IndexOptions& options,
                         IndexBuilder& out);

}  // namespace packtrain
