#include "format/arrow_records.h"

#include "base/words.h"

namespace packtrain {
namespace {

using namespace arrow_slots;

// A table may refer to the same one twice, so that few bytes could unfold to any number of columns.
constexpr uint32_t kMostColumns = 4096;
constexpr uint32_t kDeepest = 64;
constexpr size_t kNodeBytes = 16, kBufferEntryBytes = 16;

Status check_version(int16_t version) {
  if (version == kArrowVersion5 || version == kArrowVersion4) return {};
  if (version < 0 || version > kArrowVersion5)
    return Status(Code::corrupt, "metadata version " + std::to_string(version) + " does not exist");
  return Status(Code::unsupported,
                "was written by an Arrow before 0.8; read it with pyarrow and write it again");
}

// Walks the fields of a schema in depth, in the order in which a batch has their nodes and buffers.
class SchemaWalk {
 public:
  SchemaWalk(ArrowSchema& out, int16_t version) : out_(out), version_(version) {}

  Status run(const FlatTable& schema) {
    PACKTRAIN_ASSIGN(endianness, schema.number<int16_t>(kSchemaEndianness, 0));
    if (endianness != 0) {
      return Status(Code::unsupported,
                    "holds big-endian numbers; read it with pyarrow and write it again on this machine");
    }
    PACKTRAIN_ASSIGN(fields, schema.tables(kSchemaFields));
    if (fields.size() > kMostColumns) return too_many();
    for (size_t i = 0; i < fields.size(); ++i) {
      PACKTRAIN_ASSIGN(field, fields.at(i));
      out_.column_nodes.push_back(out_.nodes);
      PACKTRAIN_ASSIGN(column, take_column(field));
      out_.columns.push_back(column);
    }
    PACKTRAIN_ASSIGN(metadata, schema.tables(kSchemaMetadata));
    for (size_t i = 0; i < metadata.size() && i < kMostColumns; ++i) {
      PACKTRAIN_ASSIGN(pair, metadata.at(i));
      PACKTRAIN_ASSIGN(key, pair.text(kKey));
      if (key != "huggingface") continue;
      PACKTRAIN_ASSIGN(value, pair.text(kValue));
      out_.huggingface = value;
    }
    return {};
  }

 private:
  struct Found {
    ArrowLeaf leaf;
    ColumnKind kind = ColumnKind::other;
  };

  static Status too_many() {
    return Status(Code::unsupported, "has more than " + count_in_words(kMostColumns) + " columns");
  }

  Result<ArrowColumn> take_column(const FlatTable& field) {
    ArrowColumn column;
    PACKTRAIN_ASSIGN(name, field.text(kFieldName));
    PACKTRAIN_ASSIGN(type, field.number<uint8_t>(kFieldTypeKind, 0));
    column.name = name;
    if (static_cast<ArrowType>(type) == ArrowType::structure && !field.has(kFieldDictionary)) {
      PACKTRAIN_ASSIGN(taken, take_struct(field, column));
      return taken;
    }
    PACKTRAIN_ASSIGN(found, take(field, 0));
    column.kind = found.kind;
    column.value = found.leaf;
    const auto values = static_cast<ArrowType>(type);
    column.dictionary =
        field.has(kFieldDictionary) && (values == ArrowType::binary || values == ArrowType::large_binary ||
                                        values == ArrowType::utf8 || values == ArrowType::large_utf8);
    return column;
  }

  // Images and recordings as Hugging Face datasets keeps them: bytes, and the path they had.
  Result<ArrowColumn> take_struct(const FlatTable& field, ArrowColumn column) {
    PACKTRAIN_ASSIGN(parent, begin(ArrowType::structure, 1));
    PACKTRAIN_ASSIGN(children, field.tables(kFieldChildren));
    for (size_t i = 0; i < children.size(); ++i) {
      PACKTRAIN_ASSIGN(child, children.at(i));
      PACKTRAIN_ASSIGN(name, child.text(kFieldName));
      PACKTRAIN_ASSIGN(found, take(child, 1));
      if (name == "bytes" && found.kind == ColumnKind::bytes) {
        column.kind = found.kind;
        column.value = found.leaf;
        column.parent = parent;
      } else if (name == "path" && found.kind == ColumnKind::text) {
        column.path = found.leaf;
      }
    }
    return column;
  }

  // Counts a node with its buffers.
  Result<ArrowLeaf> begin(ArrowType type, uint32_t buffers) {
    if (out_.nodes >= kMostColumns) return too_many();
    ArrowLeaf leaf{.type = type, .node = out_.nodes, .buffer = out_.buffers, .views_before = out_.views};
    ++out_.nodes;
    out_.buffers += buffers;
    return leaf;
  }

  Result<Found> take(const FlatTable& field, uint32_t depth) {
    if (depth > kDeepest) return Status(Code::unsupported, "has columns nested too deeply");
    if (field.has(kFieldDictionary)) {  // validity and the numbers of the values
      PACKTRAIN_ASSIGN(leaf, begin(ArrowType::null, 2));
      return Found{leaf};
    }
    PACKTRAIN_ASSIGN(type_number, field.number<uint8_t>(kFieldTypeKind, 0));
    PACKTRAIN_ASSIGN(type, field.table(kFieldType));
    const auto kind = static_cast<ArrowType>(type_number);
    PACKTRAIN_ASSIGN(buffers, buffers_of(kind, type));
    PACKTRAIN_ASSIGN(leaf, begin(kind, buffers));
    PACKTRAIN_ASSIGN(children, field.tables(kFieldChildren));
    for (size_t i = 0; i < children.size(); ++i) {
      PACKTRAIN_ASSIGN(child, children.at(i));
      PACKTRAIN_ASSIGN(taken, take(child, depth + 1));
      (void)taken;
    }
    Found found{leaf};
    switch (kind) {
      case ArrowType::binary:
      case ArrowType::large_binary:
        found.kind = ColumnKind::bytes;
        break;
      case ArrowType::utf8:
      case ArrowType::large_utf8:
        found.kind = ColumnKind::text;
        break;
      case ArrowType::fixed_size_binary: {
        PACKTRAIN_ASSIGN(width, type.number<int32_t>(0, 0));
        if (width < 0) return Status(Code::corrupt, "a column has values of a negative length");
        found.leaf.width = static_cast<uint32_t>(width);
        if (width > 0) found.kind = ColumnKind::bytes;
        break;
      }
      case ArrowType::integer: {
        PACKTRAIN_ASSIGN(bits, type.number<int32_t>(0, 0));
        PACKTRAIN_ASSIGN(is_signed, type.number<uint8_t>(1, 0));
        if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
          return Status(Code::corrupt, "a column has whole numbers of " + std::to_string(bits) + " bits");
        found.leaf.width = static_cast<uint32_t>(bits) / 8;
        found.leaf.is_signed = is_signed != 0;
        found.kind = ColumnKind::integers;
        break;
      }
      default:
        break;
    }
    return found;
  }

  Result<uint32_t> buffers_of(ArrowType kind, const FlatTable& type) {
    switch (kind) {
      case ArrowType::null:
      case ArrowType::run_end_encoded:
        return uint32_t{0};
      case ArrowType::structure:
      case ArrowType::fixed_size_list:
        return uint32_t{1};
      case ArrowType::binary:
      case ArrowType::utf8:
      case ArrowType::large_binary:
      case ArrowType::large_utf8:
      case ArrowType::list_view:
      case ArrowType::large_list_view:
        return uint32_t{3};
      case ArrowType::union_: {
        PACKTRAIN_ASSIGN(dense, type.number<int16_t>(0, 0));
        return uint32_t{1} + (dense != 0 ? 1 : 0) + (version_ < kArrowVersion5 ? 1 : 0);
      }
      case ArrowType::binary_view:
      case ArrowType::utf8_view:
        ++out_.views;
        return uint32_t{2};
      default:
        if (static_cast<uint8_t>(kind) == 0 || kind > ArrowType::large_list_view)
          return Status(Code::unsupported, "has a column of type " +
                                               std::to_string(static_cast<unsigned>(kind)) +
                                               ", which this version of packtrain does not know");
        return uint32_t{2};
    }
  }

  ArrowSchema& out_;
  const int16_t version_;
};

}  // namespace

Result<ArrowSchema> parse_arrow_schema(const FlatTable& schema, int16_t version) {
  if (!schema.present()) return Status(Code::corrupt, "the schema is missing");
  PACKTRAIN_TRY(check_version(version));
  ArrowSchema parsed;
  PACKTRAIN_TRY(SchemaWalk(parsed, version).run(schema));
  return parsed;
}

Result<ArrowMessage> parse_arrow_message(Bytes metadata) {
  PACKTRAIN_ASSIGN(root, FlatTable::root(metadata));
  ArrowMessage message;
  PACKTRAIN_ASSIGN(version, root.number<int16_t>(kMessageVersion, 0));
  PACKTRAIN_ASSIGN(kind, root.number<uint8_t>(kMessageKind, 0));
  PACKTRAIN_ASSIGN(header, root.table(kMessageHeader));
  PACKTRAIN_ASSIGN(body_bytes, root.number<int64_t>(kMessageBody, 0));
  PACKTRAIN_TRY(check_version(version));
  if (!header.present() || body_bytes < 0) return Status(Code::corrupt, "a message has no sound header");
  message.version = version;
  message.kind = static_cast<ArrowMessageKind>(kind);
  message.header = header;
  message.body_bytes = static_cast<uint64_t>(body_bytes);
  return message;
}

Result<ArrowBatch> ArrowBatch::parse(const FlatTable& header, const ArrowSchema& schema,
                                     uint64_t body_bytes) {
  ArrowBatch batch;
  PACKTRAIN_ASSIGN(rows, header.number<int64_t>(kBatchRows, 0));
  PACKTRAIN_ASSIGN(nodes, header.structs(kBatchNodes, kNodeBytes));
  PACKTRAIN_ASSIGN(buffers, header.structs(kBatchBuffers, kBufferEntryBytes));
  PACKTRAIN_ASSIGN(compression, header.table(kBatchCompression));
  PACKTRAIN_ASSIGN(variadic, header.structs(kBatchVariadic, sizeof(int64_t)));
  if (rows < 0) return Status(Code::corrupt, "a batch has a negative number of rows");
  batch.rows_ = static_cast<uint64_t>(rows);
  batch.nodes_ = nodes.bytes;
  batch.buffers_ = buffers.bytes;
  batch.variadic_ = variadic.bytes;
  uint64_t expected = schema.buffers;
  for (size_t i = 0; i < variadic.count; ++i) {
    const auto more = load_le<int64_t>(variadic.bytes.data() + i * sizeof(int64_t));
    if (more < 0 || static_cast<uint64_t>(more) > buffers.count)
      return Status(Code::corrupt, "a batch does not have the buffers of its columns");
    expected += static_cast<uint64_t>(more);
  }
  if (nodes.count != schema.nodes || buffers.count != expected || variadic.count != schema.views)
    return Status(Code::corrupt, "a batch does not have the buffers of its columns");
  for (const uint32_t node : schema.column_nodes) {
    if (load_le<uint64_t>(nodes.bytes.data() + size_t{node} * kNodeBytes) != batch.rows_)
      return Status(Code::corrupt, "a batch of " + std::to_string(rows) +
                                       " rows has a column with another number of values");
  }
  for (size_t i = 0; i < buffers.count; ++i) {
    const auto offset = load_le<int64_t>(buffers.bytes.data() + i * kBufferEntryBytes);
    const auto bytes = load_le<int64_t>(buffers.bytes.data() + i * kBufferEntryBytes + 8);
    if (offset < 0 || bytes < 0 || static_cast<uint64_t>(offset) > body_bytes ||
        static_cast<uint64_t>(bytes) > body_bytes - static_cast<uint64_t>(offset))
      return Status(Code::corrupt, "a buffer lies outside of its batch");
  }
  if (compression.present()) {
    PACKTRAIN_ASSIGN(codec, compression.number<int8_t>(0, 0));
    PACKTRAIN_ASSIGN(method, compression.number<int8_t>(1, 0));
    if (method != 0 || (codec != 0 && codec != 1))
      return Status(Code::unsupported,
                    "is compressed in a way that this version of packtrain does not know; "
                    "write it again uncompressed, with lz4 or with zstd");
    batch.codec_ = static_cast<ArrowCodec>(codec);
  }
  return batch;
}

uint64_t ArrowBatch::null_count(const ArrowLeaf& leaf) const {
  return load_le<uint64_t>(nodes_.data() + size_t{leaf.node} * kNodeBytes + 8);
}

ArrowBuffer ArrowBatch::buffer(const ArrowLeaf& leaf, uint32_t number) const {
  uint64_t at = uint64_t{leaf.buffer} + number;
  for (uint32_t i = 0; i < leaf.views_before; ++i)
    at += load_le<uint64_t>(variadic_.data() + i * sizeof(uint64_t));
  const std::byte* record = buffers_.data() + static_cast<size_t>(at) * kBufferEntryBytes;
  return {load_le<uint64_t>(record), load_le<uint64_t>(record + 8)};
}

Result<ArrowFooter> parse_arrow_footer(Bytes footer) {
  PACKTRAIN_ASSIGN(root, FlatTable::root(footer));
  ArrowFooter parsed;
  PACKTRAIN_ASSIGN(version, root.number<int16_t>(kFooterVersion, 0));
  PACKTRAIN_ASSIGN(schema, root.table(kFooterSchema));
  PACKTRAIN_ASSIGN(blocks, root.structs(kFooterBatches, ArrowBlock::kBytes));
  parsed.version = version;
  parsed.schema = schema;
  parsed.blocks = blocks;
  return parsed;
}

std::optional<ArrowBlock> parse_arrow_block(Bytes block) {
  const auto offset = load_le<int64_t>(block.data());
  const auto metadata_bytes = load_le<int32_t>(block.data() + 8);
  const auto body_bytes = load_le<int64_t>(block.data() + 16);
  if (offset < 0 || metadata_bytes < 0 || body_bytes < 0) return std::nullopt;
  return ArrowBlock{static_cast<uint64_t>(offset), static_cast<uint64_t>(metadata_bytes),
                    static_cast<uint64_t>(body_bytes)};
}

}  // namespace packtrain
