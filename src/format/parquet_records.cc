#include "format/parquet_records.h"

#include <algorithm>
#include <bit>

#include "format/thrift_compact.h"

namespace packtrain {
namespace {

constexpr size_t kMostLeaves = 4096;
constexpr uint32_t kDeepestSchema = 32;

enum ConvertedType : int64_t {
  kUtf8 = 0,
  kEnum = 4,
  kUint8 = 11,
  kUint64 = 14,
  kInt8 = 15,
  kInt64 = 18,
  kJson = 19,
  kBson = 20
};
enum LogicalType : int16_t {
  kLogicalString = 1,
  kLogicalEnum = 4,
  kLogicalInteger = 10,
  kLogicalJson = 12,
  kLogicalBson = 13,
  kLogicalUuid = 14
};

struct SchemaElement {
  int64_t type = -1, type_length = 0, repetition = 0, children = 0;
  std::string_view name;
  int64_t converted = -1;
  int16_t logical = 0;
};

Result<SchemaElement> parse_element(ThriftReader& reader) {
  SchemaElement element;
  const Status parsed = reader.structure([&](int16_t id, ThriftType type) -> Result<bool> {
    const bool number = type == ThriftType::i32;
    int64_t* into = !number   ? nullptr
                    : id == 1 ? &element.type
                    : id == 2 ? &element.type_length
                    : id == 3 ? &element.repetition
                    : id == 5 ? &element.children
                    : id == 6 ? &element.converted
                              : nullptr;
    if (into != nullptr) {
      PACKTRAIN_ASSIGN(value, reader.integer());
      *into = value;
      return true;
    }
    if (id == 4 && type == ThriftType::binary) {
      PACKTRAIN_ASSIGN(name, reader.text());
      element.name = name;
      return true;
    }
    if (id == 10 && type == ThriftType::structure) {  // a union: the field that it has is its type
      const Status inner_parsed = reader.structure([&](int16_t member, ThriftType) -> Result<bool> {
        element.logical = member;
        return false;
      });
      PACKTRAIN_TRY(inner_parsed);
      return true;
    }
    return false;
  });
  PACKTRAIN_TRY(parsed);
  return element;
}

ColumnKind kind_of(const SchemaElement& element) {
  const int64_t converted = element.converted;
  switch (static_cast<ParquetType>(element.type)) {
    case ParquetType::byte_array:
      if (converted == kUtf8 || converted == kEnum || converted == kJson ||
          element.logical == kLogicalString || element.logical == kLogicalEnum ||
          element.logical == kLogicalJson)
        return ColumnKind::text;
      if (converted == kBson || element.logical == kLogicalBson) return ColumnKind::bytes;
      return converted == -1 && element.logical == 0 ? ColumnKind::bytes : ColumnKind::other;
    case ParquetType::fixed_byte_array:
      return converted == -1 && (element.logical == 0 || element.logical == kLogicalUuid) &&
                     element.type_length > 0
                 ? ColumnKind::bytes
                 : ColumnKind::other;
    case ParquetType::int32:
    case ParquetType::int64:
      return (converted == -1 || (converted >= kUint8 && converted <= kInt64)) &&
                     (element.logical == 0 || element.logical == kLogicalInteger)
                 ? ColumnKind::integers
                 : ColumnKind::other;
    default:
      return ColumnKind::other;
  }
}

uint32_t width_of(const SchemaElement& element) {
  switch (static_cast<ParquetType>(element.type)) {
    case ParquetType::int32:
      return 4;
    case ParquetType::int64:
      return 8;
    case ParquetType::fixed_byte_array:
      return static_cast<uint32_t>(element.type_length);
    default:
      return 0;
  }
}

// Builds leaves and columns from the elements of the schema, which stand in depth-first order.
class ParquetSchemaWalk {
 public:
  ParquetSchemaWalk(const std::vector<SchemaElement>& elements, ParquetFooter& out)
      : elements_(elements), out_(out) {}

  Status run() {
    if (elements_.empty()) return damaged();
    at_ = 1;
    for (int64_t i = 0; i < elements_[0].children; ++i) {
      if (at_ >= elements_.size()) return damaged();
      ParquetColumn column;
      column.name = elements_[at_].name;
      PACKTRAIN_TRY(take_column(column));
      out_.columns.push_back(column);
    }
    return at_ == elements_.size() ? Status() : damaged();
  }

 private:
  static Status damaged() { return Status(Code::corrupt, "the schema is damaged"); }
  static uint32_t definition_of(const SchemaElement& element) { return element.repetition == 0 ? 0 : 1; }

  Status take_column(ParquetColumn& column) {
    const SchemaElement& top = elements_[at_];
    const bool group = top.type == -1 && top.repetition != 2;
    if (!group) {
      column.value = out_.leaves.size();
      PACKTRAIN_ASSIGN(kind, take(0, 0, false));
      column.kind = kind;
      return {};
    }
    ++at_;
    const uint32_t definition = definition_of(top);
    for (int64_t i = 0; i < top.children; ++i) {
      if (at_ >= elements_.size()) return damaged();
      const std::string_view name = elements_[at_].name;
      const size_t leaf = out_.leaves.size();
      PACKTRAIN_ASSIGN(kind, take(1, definition, false));
      if (name == "bytes" && kind == ColumnKind::bytes) {
        column.kind = kind;
        column.value = leaf;
        column.in_struct = true;
      } else if (name == "path" && kind == ColumnKind::text) {
        column.path = leaf;
      }
    }
    return {};
  }

  // The element at at_ with all below it.
  Result<ColumnKind> take(uint32_t depth, uint32_t definition, bool repeated) {
    if (depth > kDeepestSchema) return Status(Code::unsupported, "has columns nested too deeply");
    const SchemaElement& element = elements_[at_++];
    definition += definition_of(element);
    repeated = repeated || element.repetition == 2;
    if (element.type == -1) {
      for (int64_t i = 0; i < element.children; ++i) {
        if (at_ >= elements_.size()) return damaged();
        PACKTRAIN_ASSIGN(ignored, take(depth + 1, definition, repeated));
        (void)ignored;
      }
      return ColumnKind::other;
    }
    if (element.type < 0 || element.type > 7 || element.type_length < 0 || element.type_length > INT32_MAX)
      return damaged();
    if (out_.leaves.size() == kMostLeaves) return Status(Code::unsupported, "has more than 4,096 columns");
    const bool is_unsigned = element.converted >= kUint8 && element.converted <= kUint64;
    out_.leaves.push_back(
        {static_cast<ParquetType>(element.type), width_of(element), is_unsigned, definition});
    return repeated ? ColumnKind::other : kind_of(element);
  }

  const std::vector<SchemaElement>& elements_;
  ParquetFooter& out_;
  size_t at_ = 0;
};

Status parse_column_metadata(ThriftReader& reader, ParquetChunk& chunk) {
  return reader.structure([&](int16_t id, ThriftType type) -> Result<bool> {
    const bool number = type == ThriftType::i32 || type == ThriftType::i64;
    int64_t* into = !number    ? nullptr
                    : id == 1  ? &chunk.type
                    : id == 4  ? &chunk.codec
                    : id == 5  ? &chunk.values
                    : id == 7  ? &chunk.bytes
                    : id == 9  ? &chunk.data_page
                    : id == 11 ? &chunk.dictionary_page
                               : nullptr;
    if (into == nullptr) return false;
    PACKTRAIN_ASSIGN(value, reader.integer());
    *into = value;
    return true;
  });
}

Result<ParquetChunk> parse_chunk(ThriftReader& reader) {
  ParquetChunk chunk;
  const Status parsed = reader.structure([&](int16_t id, ThriftType type) -> Result<bool> {
    if (id == 1 && type == ThriftType::binary) {
      PACKTRAIN_ASSIGN(path, reader.text());
      chunk.elsewhere = !path.empty();
      return true;
    }
    if (id == 3 && type == ThriftType::structure) {
      PACKTRAIN_TRY(parse_column_metadata(reader, chunk));
      return true;
    }
    if ((id == 4 && type == ThriftType::i64) || (id == 5 && type == ThriftType::i32)) {
      PACKTRAIN_ASSIGN(value, reader.integer());
      (id == 4 ? chunk.offset_index : chunk.offset_index_bytes) = value;
      return true;
    }
    if (id == 8) chunk.encrypted = true;
    return false;
  });
  PACKTRAIN_TRY(parsed);
  return chunk;
}

Result<size_t> list_of_structs(ThriftReader& reader) {
  ThriftType element{};
  PACKTRAIN_ASSIGN(count, reader.list(element));
  if (count > 0 && element != ThriftType::structure)
    return Status(Code::corrupt, "the footer holds a list of something else");
  return count;
}

Status parse_group(ThriftReader& reader, ParquetFooter& footer) {
  ParquetGroup group;
  bool has_rows = false;
  group.first_chunk = footer.chunks.size();
  const Status parsed = reader.structure([&](int16_t id, ThriftType type) -> Result<bool> {
    if (id == 1 && type == ThriftType::list) {
      PACKTRAIN_ASSIGN(count, list_of_structs(reader));
      for (size_t i = 0; i < count; ++i) {
        PACKTRAIN_ASSIGN(chunk, parse_chunk(reader));
        footer.chunks.push_back(chunk);
      }
      return true;
    }
    if (id == 3 && type == ThriftType::i64) {
      PACKTRAIN_ASSIGN(rows, reader.integer());
      if (rows < 0) return Status(Code::corrupt, "a row group has a negative number of rows");
      group.rows = static_cast<uint64_t>(rows);
      has_rows = true;
      return true;
    }
    return false;
  });
  PACKTRAIN_TRY(parsed);
  if (!has_rows) return Status(Code::corrupt, "a row group does not say how many rows it has");
  if (footer.chunks.size() - group.first_chunk != footer.leaves.size())
    return Status(Code::corrupt, "a row group does not have a chunk for each column");
  footer.groups.push_back(group);
  return {};
}

Status parse_pair(ThriftReader& reader, ParquetFooter& footer) {
  std::string_view key, value;
  const Status parsed = reader.structure([&](int16_t id, ThriftType type) -> Result<bool> {
    if ((id != 1 && id != 2) || type != ThriftType::binary) return false;
    PACKTRAIN_ASSIGN(text, reader.text());
    (id == 1 ? key : value) = text;
    return true;
  });
  PACKTRAIN_TRY(parsed);
  if (key == "huggingface") footer.huggingface = value;
  return {};
}

}  // namespace

std::string_view parquet_codec_name(int64_t codec) {
  constexpr std::string_view kNames[] = {"no codec", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4"};
  return codec >= 0 && codec < static_cast<int64_t>(std::size(kNames)) ? kNames[codec] : "an unknown codec";
}

std::string_view parquet_encoding_name(int64_t encoding) {
  switch (encoding) {
    case 0:
      return "plain";
    case 2:
    case 8:
      return "dictionary";
    case 5:
    case 6:
    case 7:
      return "delta";
    case 9:
      return "byte-stream-split";
    default:
      return "unknown";
  }
}

Result<ParquetFooter> parse_parquet_footer(Bytes bytes) {
  ThriftReader reader(bytes);
  ParquetFooter footer;
  std::optional<int64_t> rows;
  bool has_groups = false;
  const Status parsed = reader.structure([&](int16_t id, ThriftType type) -> Result<bool> {
    if (id == 3 && type == ThriftType::i64) {
      PACKTRAIN_ASSIGN(value, reader.integer());
      rows = value;
      return true;
    }
    if (type != ThriftType::list || (id != 2 && id != 4 && id != 5)) return false;
    PACKTRAIN_ASSIGN(count, list_of_structs(reader));
    if (id == 2) {
      std::vector<SchemaElement> elements;
      for (size_t i = 0; i < count; ++i) {
        PACKTRAIN_ASSIGN(element, parse_element(reader));
        elements.push_back(element);
      }
      if (!footer.columns.empty()) return Status(Code::corrupt, "the footer has two schemas");
      PACKTRAIN_TRY(ParquetSchemaWalk(elements, footer).run());
    }
    has_groups |= id == 4;
    for (size_t i = 0; i < count && id == 4; ++i) PACKTRAIN_TRY(parse_group(reader, footer));
    for (size_t i = 0; i < count && id == 5; ++i) PACKTRAIN_TRY(parse_pair(reader, footer));
    return true;
  });
  PACKTRAIN_TRY(parsed);
  // What is missing or of another type would otherwise be rows that nobody misses.
  if (footer.columns.empty() || !rows || !has_groups)
    return Status(Code::corrupt, "the footer lacks its schema, its number of rows or its row groups");
  auto left = static_cast<uint64_t>(*rows);
  for (const ParquetGroup& group : footer.groups) left -= group.rows;  // may wrap, and is not 0 then
  if (*rows < 0 || left != 0)
    return Status(Code::corrupt,
                  "the row groups do not have the " + std::to_string(*rows) + " rows that the footer names");
  return footer;
}

Result<ParquetPage> parse_parquet_page(Bytes head) {
  ThriftReader reader(head);
  ParquetPage page;
  int64_t kind = -1, bytes = -1, uncompressed = -1, values = -1, definition_bytes = 0, repetition_bytes = 0;
  bool has_head = false;
  const Status parsed = reader.structure([&](int16_t id, ThriftType type) -> Result<bool> {
    if (type == ThriftType::i32 && id >= 1 && id <= 4) {
      PACKTRAIN_ASSIGN(value, reader.integer());
      if (id == 4) {
        page.crc = static_cast<uint32_t>(value);
      } else {
        (id == 1 ? kind : id == 2 ? uncompressed : bytes) = value;
      }
      return true;
    }
    if (type != ThriftType::structure || (id != 5 && id != 7 && id != 8)) return false;
    has_head = true;
    const bool v2 = id == 8;
    const Status inner_parsed = reader.structure([&](int16_t inner, ThriftType inner_type) -> Result<bool> {
      if (v2 && inner == 7 && inner_type == ThriftType::no) page.compressed = false;
      if (inner_type != ThriftType::i32) return false;
      int64_t* into = inner == 1              ? &values
                      : inner == (v2 ? 4 : 2) ? &page.encoding
                      : id == 5 && inner == 3 ? &page.level_encoding
                      : v2 && inner == 5      ? &definition_bytes
                      : v2 && inner == 6      ? &repetition_bytes
                                              : nullptr;
      if (into == nullptr) return false;
      PACKTRAIN_ASSIGN(value, reader.integer());
      *into = value;
      return true;
    });
    PACKTRAIN_TRY(inner_parsed);
    return true;
  });
  PACKTRAIN_TRY(parsed);
  const bool data = kind == 0 || kind == 2 || kind == 3;
  if (uncompressed < 0 || uncompressed > INT32_MAX) uncompressed = bytes;
  if (kind < 0 || kind > 3 || bytes < 0 || bytes > INT32_MAX || (data && (!has_head || values < 0)) ||
      definition_bytes < 0 || repetition_bytes < 0)
    return Status(Code::corrupt, "no page begins here");
  page.head_bytes = reader.position();
  page.bytes = static_cast<uint64_t>(bytes);
  page.raw = static_cast<uint64_t>(uncompressed);
  page.kind = static_cast<ParquetPageKind>(kind);
  page.values = data ? static_cast<uint64_t>(values) : 0;
  page.definition_bytes = static_cast<uint64_t>(definition_bytes);
  page.repetition_bytes = static_cast<uint64_t>(repetition_bytes);
  return page;
}

Result<std::vector<ParquetPagePlace>> parse_parquet_offset_index(Bytes index) {
  ThriftReader reader(index);
  std::vector<ParquetPagePlace> places;
  const Status parsed = reader.structure([&](int16_t id, ThriftType type) -> Result<bool> {
    if (id != 1 || type != ThriftType::list) return false;
    PACKTRAIN_ASSIGN(count, list_of_structs(reader));
    places.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      int64_t numbers[3] = {-1, -1, -1};
      const Status inner_parsed = reader.structure([&](int16_t inner, ThriftType inner_type) -> Result<bool> {
        if (inner < 1 || inner > 3 || (inner_type != ThriftType::i32 && inner_type != ThriftType::i64))
          return false;
        PACKTRAIN_ASSIGN(value, reader.integer());
        numbers[inner - 1] = value;
        return true;
      });
      PACKTRAIN_TRY(inner_parsed);
      if (numbers[0] < 0 || numbers[1] < 0 || numbers[2] < 0)
        return Status(Code::corrupt, "the list of pages is damaged");
      places.push_back({static_cast<uint64_t>(numbers[0]), static_cast<uint64_t>(numbers[1]),
                        static_cast<uint64_t>(numbers[2])});
    }
    return true;
  });
  PACKTRAIN_TRY(parsed);
  return places;
}

namespace {

// Calls take(number, times) for `count` numbers, equal ones of a run at once.
template <class Take>
Status take_runs(Bytes runs, uint32_t bits, uint64_t count, const Take& take) {
  const auto damaged = [] { return Status(Code::corrupt, "the levels or numbers of a page are damaged"); };
  if (bits > 32) return damaged();
  const uint32_t mask = bits == 32 ? UINT32_MAX : (1u << bits) - 1;
  size_t at = 0;
  const auto number_at = [&](uint64_t bit) {
    uint64_t word = 0;
    const size_t first = at + static_cast<size_t>(bit / 8), last = std::min(first + 5, runs.size());
    for (size_t i = first; i < last; ++i) word |= std::to_integer<uint64_t>(runs[i]) << (8 * (i - first));
    return static_cast<uint32_t>(word >> bit % 8) & mask;
  };
  for (uint64_t left = count; left > 0;) {
    uint64_t head = 0;
    for (int shift = 0;; shift += 7) {
      if (at == runs.size() || shift > 56) return damaged();
      const auto byte = std::to_integer<uint64_t>(runs[at++]);
      head |= (byte & 0x7F) << shift;
      if (byte < 0x80) break;
    }
    if ((head & 1) == 0) {  // so many times one number
      const uint64_t times = head >> 1;
      const size_t bytes = (bits + 7) / 8;
      if (bytes > runs.size() - at || times == 0 || times > left) return damaged();
      take(number_at(0), static_cast<size_t>(times));
      at += bytes;
      left -= times;
      continue;
    }
    // Groups of eight numbers, the last one filled up.
    const uint64_t groups = head >> 1;
    if (groups == 0 || (bits > 0 && groups > (runs.size() - at) / bits) || groups > count) return damaged();
    const uint64_t now = std::min<uint64_t>(groups * 8, left);
    for (uint64_t i = 0; i < now; ++i) take(number_at(i * bits), size_t{1});
    at += static_cast<size_t>(groups * bits);
    left -= now;
  }
  return {};
}

}  // namespace

Status parse_parquet_runs(Bytes runs, uint32_t bits, uint64_t count, std::vector<uint32_t>& numbers) {
  return take_runs(runs, bits, count,
                   [&](uint32_t number, size_t times) { numbers.insert(numbers.end(), times, number); });
}

Status parse_parquet_levels(Bytes levels, uint32_t highest, uint64_t values, std::vector<bool>& present) {
  return take_runs(
      levels, static_cast<uint32_t>(std::bit_width(highest)), values,
      [&](uint32_t level, size_t times) { present.insert(present.end(), times, level == highest); });
}

}  // namespace packtrain
