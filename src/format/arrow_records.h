// The metadata of Arrow IPC: flatbuffers that say what columns there are and where the buffers of a batch
// lie.
//
// File:    "ARROW1\0\0", messages, footer, i32 bytes of the footer, "ARROW1"
// Stream:  messages, the last one with no metadata
// Message: u32 0xFFFFFFFF (not in files before 0.15), i32 bytes of the metadata with their padding, metadata,
//          body
// A batch's body holds the buffers of all columns, in depth: validity bits; i32 or i64 offsets where values
// vary in length; values. Compressed buffers begin with the i64 length of what they decode to, -1: stored as
// they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "format/columns.h"
#include "format/flatbuffer.h"
#include "packtrain/status.h"

namespace packtrain {

inline constexpr std::string_view kArrowMagic = "ARROW1";
inline constexpr uint64_t kArrowHeadBytes = 8;  // the magic, padded
inline constexpr uint64_t kArrowTailBytes = 10;
inline constexpr uint32_t kArrowContinuation = 0xFFFFFFFF;
inline constexpr int16_t kArrowVersion5 = 4, kArrowVersion4 = 3;

enum class ArrowMessageKind : uint8_t { none = 0, schema = 1, dictionary = 2, batch = 3 };
// Members of the union Type that have a meaning here.
enum class ArrowType : uint8_t {
  null = 1,
  integer = 2,
  real = 3,
  binary = 4,
  utf8 = 5,
  boolean = 6,
  list = 12,
  structure = 13,
  union_ = 14,
  fixed_size_binary = 15,
  fixed_size_list = 16,
  map = 17,
  large_binary = 19,
  large_utf8 = 20,
  large_list = 21,
  run_end_encoded = 22,
  binary_view = 23,
  utf8_view = 24,
  list_view = 25,
  large_list_view = 26,
};

// Slots of the tables.
namespace arrow_slots {
enum Message : uint16_t { kMessageVersion, kMessageKind, kMessageHeader, kMessageBody };
enum Schema : uint16_t { kSchemaEndianness, kSchemaFields, kSchemaMetadata };
enum Field : uint16_t {
  kFieldName,
  kFieldNullable,
  kFieldTypeKind,
  kFieldType,
  kFieldDictionary,
  kFieldChildren
};
enum KeyValue : uint16_t { kKey, kValue };
enum Batch : uint16_t { kBatchRows, kBatchNodes, kBatchBuffers, kBatchCompression, kBatchVariadic };
enum Footer : uint16_t { kFooterVersion, kFooterSchema, kFooterDictionaries, kFooterBatches };
}  // namespace arrow_slots

// A column, or a child of one, whose values are used. Numbers count nodes and buffers of a batch.
struct ArrowLeaf {
  ArrowType type = ArrowType::null;
  uint32_t width = 0;  // bytes of a value, where all have the same
  bool is_signed = false;
  uint32_t node = 0, buffer = 0;
  uint32_t views_before = 0;  // columns in front whose number of buffers is each batch's own
};

// A column that can become a field, a label or a key.
struct ArrowColumn {
  std::string_view name;  // in the metadata
  ColumnKind kind = ColumnKind::other;
  ArrowLeaf value;
  std::optional<ArrowLeaf> parent;  // a struct of bytes and path: its validity
  std::optional<ArrowLeaf> path;    // its path
  bool dictionary = false;          // of bytes or texts, which are kept as numbers in a dictionary
};

// What the schema says. Views into the metadata, which must stay alive.
struct ArrowSchema {
  std::vector<ArrowColumn> columns;  // `other` for what cannot be used
  uint32_t nodes = 0, buffers = 0, views = 0;
  std::vector<uint32_t> column_nodes;  // the node of each column of the file itself
  std::string_view huggingface;        // what Hugging Face datasets has put into its metadata: JSON
};
// `version` of the message: unions had one more buffer before version 5.
Result<ArrowSchema> parse_arrow_schema(const FlatTable& schema, int16_t version);

struct ArrowMessage {
  int16_t version = 0;
  ArrowMessageKind kind = ArrowMessageKind::none;
  FlatTable header;
  uint64_t body_bytes = 0;
};
Result<ArrowMessage> parse_arrow_message(Bytes metadata);

enum class ArrowCodec : int8_t { lz4_frame = 0, zstd = 1, none = 127 };

struct ArrowBuffer {
  uint64_t offset = 0, bytes = 0;  // in the body
};

// A record batch's own metadata. Views into them.
class ArrowBatch {
 public:
  // Every buffer lies within a body of that many bytes.
  static Result<ArrowBatch> parse(const FlatTable& header, const ArrowSchema& schema, uint64_t body_bytes);

  uint64_t rows() const { return rows_; }
  ArrowCodec codec() const { return codec_; }
  uint64_t null_count(const ArrowLeaf& leaf) const;
  // 0: validity; 1: offsets, or values of one width; 2: values behind offsets.
  ArrowBuffer buffer(const ArrowLeaf& leaf, uint32_t number) const;

 private:
  uint64_t rows_ = 0;
  ArrowCodec codec_ = ArrowCodec::none;
  Bytes nodes_, buffers_, variadic_;
};

struct ArrowBlock {  // in the footer: 24 bytes, 4 of them padding
  static constexpr size_t kBytes = 24;
  uint64_t offset = 0, metadata_bytes = 0, body_bytes = 0;
};
struct ArrowFooter {
  int16_t version = 0;
  FlatTable schema;
  FlatVector blocks;  // of record batches
};
Result<ArrowFooter> parse_arrow_footer(Bytes footer);
// Nothing if a number is negative.
std::optional<ArrowBlock> parse_arrow_block(Bytes block);

}  // namespace packtrain
