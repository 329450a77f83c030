// Parquet's metadata: the footer, which says what columns there are and where their chunks lie, and the heads
// of pages.
//
// File:   "PAR1", row groups, footer (thrift), u32 bytes of the footer, "PAR1"
// Row group: a chunk of pages for each column, one behind the other
// Page:   head (thrift), levels, values. Version 1: definition levels with their u32 length in front, if the
//         column is optional at all. Version 2: levels without, their length is in the head. What is
//         compressed is all of a page of version 1, and the values of one of version 2.
// Plain values: byte arrays are u32 length and bytes, numbers as they are; rows that are null have none.
// A dictionary page holds plain values; pages that use it hold numbers into it, behind a byte that says how
// many bits they have.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "format/columns.h"
#include "packtrain/status.h"

namespace packtrain {

inline constexpr std::string_view kParquetMagic = "PAR1";
inline constexpr uint64_t kParquetTailBytes = 8;

enum class ParquetType : int32_t {
  boolean = 0,
  int32 = 1,
  int64 = 2,
  int96 = 3,
  real = 4,
  double_real = 5,
  byte_array = 6,
  fixed_byte_array = 7,
};
enum class ParquetPageKind : int32_t { data = 0, index = 1, dictionary = 2, data_v2 = 3 };
// Encodings; the first of dictionaries is the old number for it.
inline constexpr int32_t kParquetPlain = 0, kParquetOldDictionary = 2, kParquetRle = 3,
                         kParquetDictionary = 8;
inline constexpr int32_t kParquetUncompressed = 0, kParquetSnappy = 1, kParquetGzip = 2, kParquetOldLz4 = 5,
                         kParquetZstd = 6, kParquetLz4 = 7;  // codecs

std::string_view parquet_codec_name(int64_t codec);
std::string_view parquet_encoding_name(int64_t encoding);

// A leaf of the schema: what a row group has a chunk for.
struct ParquetLeaf {
  ParquetType type = ParquetType::boolean;
  uint32_t width = 0;  // bytes of a value, where all have the same
  bool is_unsigned = false;
  uint32_t definition = 0;  // the level of a value that is there
};

// A column that can become a field, a label or a key.
struct ParquetColumn {
  std::string_view name;  // in the footer
  ColumnKind kind = ColumnKind::other;
  size_t value = 0;            // into ParquetFooter::leaves
  std::optional<size_t> path;  // a struct of bytes and path
  bool in_struct = false;
};

struct ParquetChunk {
  bool encrypted = false, elsewhere = false;
  int64_t type = 0, codec = 0, values = 0;
  int64_t data_page = 0, dictionary_page = 0, bytes = 0;  // offsets in the file; dictionary 0: there is none
  int64_t offset_index = 0, offset_index_bytes = 0;       // 0: there is none
};

struct ParquetGroup {
  uint64_t rows = 0;
  size_t first_chunk = 0;  // into ParquetFooter::chunks, one a leaf
};

// Views into the footer's bytes, which must stay alive.
struct ParquetFooter {
  std::vector<ParquetColumn> columns;
  std::vector<ParquetLeaf> leaves;
  std::vector<ParquetGroup> groups;
  std::vector<ParquetChunk> chunks;
  std::string_view huggingface;  // what Hugging Face datasets has put into its metadata: JSON
};
Result<ParquetFooter> parse_parquet_footer(Bytes footer);

struct ParquetPage {
  uint64_t head_bytes = 0;
  uint64_t bytes = 0;      // behind the head
  uint64_t raw = 0;        // the same, once they are decoded
  bool compressed = true;  // version 2 may say that its values are not
  ParquetPageKind kind = ParquetPageKind::data;
  uint64_t values = 0;  // nulls included
  int64_t encoding = 0, level_encoding = kParquetRle;
  uint64_t definition_bytes = 0, repetition_bytes = 0;  // version 2
  std::optional<uint32_t> crc;
};
// `head`: bytes from the page's first on. Corrupt if they do not hold the head to its end.
Result<ParquetPage> parse_parquet_page(Bytes head);

struct ParquetPagePlace {
  uint64_t offset = 0, bytes = 0, first_row = 0;  // bytes with the head
};
Result<std::vector<ParquetPagePlace>> parse_parquet_offset_index(Bytes index);

// Numbers of up to 32 bits in runs and bit-packed groups: levels, and numbers into a dictionary. As many as
// `count` are appended.
Status parse_parquet_runs(Bytes runs, uint32_t bits, uint64_t count, std::vector<uint32_t>& numbers);
// Which values of a page are there, from its definition levels: those that have the highest one.
Status parse_parquet_levels(Bytes levels, uint32_t highest, uint64_t values, std::vector<bool>& present);

}  // namespace packtrain
