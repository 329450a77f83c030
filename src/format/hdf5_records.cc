#include "format/hdf5_records.h"

#include <bit>

#include "base/little_endian.h"
#include "packtrain/storage.h"

namespace packtrain {
namespace {

constexpr size_t kMostDimensions = 32;
// Bits of the superblock's consistency flags: a writer has the file open, or left it so.
constexpr uint32_t kOpenForWriting = 1, kOpenForWritingAndReading = 4;

Status record_cut_short(std::string_view what) {
  return Status(Code::corrupt, std::string(what) + " is cut short");
}

Status unknown_version(std::string_view what, uint32_t version) {
  return Status(Code::unsupported, std::string(what) + " has the unknown version " + std::to_string(version) +
                                       "; `h5repack OLD NEW` writes a file that packtrain reads");
}

Status wrong_sizes() {
  return Status(Code::unsupported,
                "its addresses do not have eight bytes; `h5repack OLD NEW` writes such a file");
}

Result<Hdf5Superblock> parse_old_superblock(Hdf5Cursor& at, uint8_t version) {
  at.skip(4);  // versions of parts that have one version only, and a byte of nothing
  uint8_t address_bytes = at.u8(), length_bytes = at.u8();
  at.skip(1 + 2 + 2 + 4);            // sizes of group nodes, flags
  if (version == 1) at.skip(2 + 2);  // sizes of chunk nodes
  Hdf5Superblock block;
  block.base = at.u64();
  at.skip(8);  // free space
  block.end = at.u64();
  at.skip(8 + 8);  // driver, the root's name
  block.root = at.u64();
  if (at.failed()) return record_cut_short("the superblock");
  if (address_bytes != 8 || length_bytes != 8) return wrong_sizes();
  return block;
}

Result<Hdf5Superblock> parse_new_superblock(Hdf5Cursor& at, uint8_t version, Bytes whole) {
  constexpr size_t kChecked = 44;
  uint8_t address_bytes = at.u8(), length_bytes = at.u8(), flags = at.u8();
  Hdf5Superblock block;
  block.base = at.u64();
  at.skip(8);  // extension
  block.end = at.u64();
  block.root = at.u64();
  uint32_t checksum = at.u32();
  if (at.failed()) return record_cut_short("the superblock");
  if (address_bytes != 8 || length_bytes != 8) return wrong_sizes();
  if (hdf5_checksum(whole.first(kChecked)) != checksum) {
    return Status(Code::corrupt, "the superblock does not match its checksum");
  }
  if (version == 3 && (flags & (kOpenForWriting | kOpenForWritingAndReading)) != 0) {
    return Status(Code::corrupt,
                  "its writer has not closed it; if none is running, `h5clear -s FILE` may save it");
  }
  return block;
}

// The element of an integer: whole bytes, no bits left out.
void take_integer(Hdf5Cursor& at, uint32_t bits, Hdf5Type& type) {
  uint16_t first_bit = at.u16(), used_bits = at.u16();
  type.big_endian = (bits & 1) != 0;
  type.is_signed = (bits & 8) != 0;
  bool whole = first_bit == 0 && used_bits == type.size * 8 && type.size <= 8;
  type.kind = whole ? Hdf5Type::Kind::integer : Hdf5Type::Kind::raw;
}

// Takes what describes a real number.
bool is_ieee_real(Hdf5Cursor& at, uint32_t size) {
  const uint16_t first_bit = at.u16(), used_bits = at.u16();
  at.skip(1);
  const uint8_t exponent_bits = at.u8();
  at.skip(6);  // the mantissa and the exponent's bias follow from it
  const uint8_t expected = size == 2 ? 5 : size == 4 ? 8 : 11;
  return (size == 2 || size == 4 || size == 8) && first_bit == 0 && used_bits == 8 * size &&
         exponent_bits == expected;
}

// Whether an enumeration, behind its base type, has the two members that h5py gives NumPy's truth values.
bool is_truth(Hdf5Cursor at, uint32_t members, uint8_t version, uint32_t size) {
  if (members != 2 || size != 1) return false;
  for (const std::string_view name :
       {std::string_view("FALSE\0\0\0", 8), std::string_view("TRUE\0\0\0\0", 8)}) {
    // Names are filled up to eight bytes, but for the newest version's.
    if (as_text(at.take(version < 3 ? 8 : name.find('\0') + 1)) !=
        name.substr(0, version < 3 ? 8 : name.find('\0') + 1))
      return false;
  }
  return at.u8() == 0 && at.u8() == 1;
}

Hdf5Type take_type(Hdf5Cursor& at, bool inner) {
  enum : uint8_t { integer, real, time, text, bits, opaque, compound, reference, enumeration, variable };
  Hdf5Type type;
  const uint8_t first = at.u8(), kind = first & 15, version = first >> 4;
  auto flags = static_cast<uint32_t>(at.number(3));
  type.size = at.u32();
  switch (kind) {
    case integer:
      take_integer(at, flags, type);
      break;
    case real:
      type.kind = Hdf5Type::Kind::raw;
      type.big_endian = (flags & 1) != 0;
      type.is_real = is_ieee_real(at, type.size);
      break;
    case bits:
    case opaque:
      type.kind = Hdf5Type::Kind::raw;
      break;
    case text:
      type.kind = Hdf5Type::Kind::text;
      break;
    case enumeration: {
      if (inner) break;
      Hdf5Type base = take_type(at, true);
      if (base.kind != Hdf5Type::Kind::integer || base.size != type.size) break;
      type = base;
      type.is_truth = is_truth(at, flags & 0xFFFF, version, type.size);
      break;
    }
    case variable: {
      if (inner) break;
      Hdf5Type item = take_type(at, true);
      bool fixed = item.kind == Hdf5Type::Kind::integer || item.kind == Hdf5Type::Kind::raw ||
                   item.kind == Hdf5Type::Kind::text;
      type.kind = (flags & 15) == 1 ? Hdf5Type::Kind::string : Hdf5Type::Kind::sequence;
      type.item_size = type.kind == Hdf5Type::Kind::string ? 1 : fixed ? item.size : 0;
      type.big_endian = item.big_endian && item.size > 1;
      break;
    }
    default:
      break;
  }
  if (type.size == 0) type.kind = Hdf5Type::Kind::other;
  return type;
}

// A number of bytes, which is negative where there is no value, and as many bytes.
Result<std::vector<std::byte>> take_fill(Hdf5Cursor& at) {
  const auto bytes = static_cast<int32_t>(at.u32());
  const Bytes value = at.take(bytes < 0 ? 0 : static_cast<uint64_t>(bytes));
  if (at.failed()) return record_cut_short("a fill value");
  return std::vector<std::byte>(value.begin(), value.end());
}

// Versions 4 and 5: shape of a chunk, then which index and what belongs to it.
void take_new_chunks(Hdf5Cursor& at, Hdf5Layout& layout) {
  enum : uint8_t { single = 1, implicit, fixed_array, extensible_array, tree2 };
  constexpr uint8_t kPlainEdges = 1, kFilteredSingle = 2;
  uint8_t flags = at.u8(), dimensions = at.u8(), number_bytes = at.u8();
  if (number_bytes > 8) number_bytes = 8;
  layout.plain_edges = (flags & kPlainEdges) != 0;
  for (size_t i = 0; i < dimensions && !at.failed(); ++i) layout.chunk.push_back(at.number(number_bytes));
  switch (at.u8()) {
    case single:
      layout.chunk_index = Hdf5Layout::ChunkIndex::single;
      if ((flags & kFilteredSingle) != 0) {
        layout.single_stored = at.u64();
        layout.single_mask = at.u32();
      }
      break;
    case implicit:
      layout.chunk_index = Hdf5Layout::ChunkIndex::implicit;
      break;
    case fixed_array:
      layout.chunk_index = Hdf5Layout::ChunkIndex::fixed_array;
      at.skip(1);
      break;
    case extensible_array:
      layout.chunk_index = Hdf5Layout::ChunkIndex::extensible_array;
      at.skip(5);
      break;
    case tree2:
      layout.chunk_index = Hdf5Layout::ChunkIndex::tree2;
      at.skip(6);
      break;
    default:
      return;
  }
  layout.address = at.u64();
}

}  // namespace

uint64_t Hdf5Cursor::number(size_t bytes) {
  Bytes from = take(bytes);
  uint64_t value = 0;
  for (size_t i = 0; i < from.size(); ++i) value |= uint64_t{std::to_integer<uint8_t>(from[i])} << (8 * i);
  return value;
}

Bytes Hdf5Cursor::take(uint64_t bytes) {
  if (bytes > rest_.size()) {
    failed_ = true;
    rest_ = {};
    return {};
  }
  Bytes front = rest_.first(static_cast<size_t>(bytes));
  rest_ = rest_.subspan(static_cast<size_t>(bytes));
  return front;
}

bool Hdf5Cursor::starts_with(std::string_view signature) {
  return as_text(take(signature.size())) == signature;
}

uint32_t hdf5_checksum(Bytes bytes) {
  const uint32_t start = 0xdeadbeef + static_cast<uint32_t>(bytes.size());
  uint32_t a = start, b = start, c = start;
  const auto word = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4 && at + i < bytes.size(); ++i) {
      value |= uint32_t{std::to_integer<uint8_t>(bytes[at + i])} << (8 * i);
    }
    return value;
  };
  size_t at = 0;
  for (; bytes.size() - at > 12; at += 12) {
    a += word(at);
    b += word(at + 4);
    c += word(at + 8);
    // Each round: the first of three takes up the third, which takes up the second.
    a = (a - c) ^ std::rotl(c, 4), c += b;
    b = (b - a) ^ std::rotl(a, 6), a += c;
    c = (c - b) ^ std::rotl(b, 8), b += a;
    a = (a - c) ^ std::rotl(c, 16), c += b;
    b = (b - a) ^ std::rotl(a, 19), a += c;
    c = (c - b) ^ std::rotl(b, 4), b += a;
  }
  if (at == bytes.size()) return c;
  a += word(at);
  b += word(at + 4);
  c += word(at + 8);
  c = (c ^ b) - std::rotl(b, 14);
  a = (a ^ c) - std::rotl(c, 11);
  b = (b ^ a) - std::rotl(a, 25);
  c = (c ^ b) - std::rotl(b, 16);
  a = (a ^ c) - std::rotl(c, 4);
  b = (b ^ a) - std::rotl(a, 14);
  c = (c ^ b) - std::rotl(b, 24);
  return c;
}

Result<Hdf5Superblock> parse_hdf5_superblock(Bytes bytes) {
  Hdf5Cursor at(bytes);
  at.skip(kHdf5Signature.size());
  uint8_t version = at.u8();
  if (version <= 1) return parse_old_superblock(at, version);
  if (version <= 3) return parse_new_superblock(at, version, bytes);
  return unknown_version("the superblock", version);
}

std::string Hdf5Type::numpy_word() const {
  if (big_endian && size > 1) return {};
  const char* letter = kind == Kind::integer          ? is_truth    ? "b"
                                                        : is_signed ? "i"
                                                                    : "u"
                       : kind == Kind::raw && is_real ? "f"
                                                      : nullptr;
  const bool whole = size == 1 || size == 2 || size == 4 || size == 8;
  if (letter == nullptr || !whole) return {};
  return (size == 1 ? "|" : "<") + std::string(letter) + std::to_string(size);
}

Result<Hdf5Type> parse_hdf5_type(Bytes message) {
  Hdf5Cursor at(message);
  Hdf5Type type = take_type(at, false);
  if (at.failed()) return record_cut_short("a datatype");
  return type;
}

Result<std::vector<uint64_t>> parse_hdf5_space(Bytes message) {
  constexpr uint8_t kNull = 2;
  Hdf5Cursor at(message);
  uint8_t version = at.u8(), dimensions = at.u8();
  at.skip(1);  // whether limits and permutations follow
  bool nothing = false;
  if (version == 1) {
    at.skip(5);
  } else if (version == 2) {
    nothing = at.u8() == kNull;
  } else {
    return unknown_version("a dataspace", version);
  }
  if (dimensions > kMostDimensions) return Status(Code::corrupt, "a dataspace has too many dimensions");
  std::vector<uint64_t> shape;
  for (size_t i = 0; i < dimensions; ++i) shape.push_back(at.u64());
  if (at.failed()) return record_cut_short("a dataspace");
  if (nothing) shape.assign(1, 0);
  return shape;
}

Result<Hdf5Layout> parse_hdf5_layout(Bytes message) {
  enum : uint8_t { compact, contiguous, chunked };
  Hdf5Cursor at(message);
  Hdf5Layout layout;
  uint8_t version = at.u8();
  if (version < 3 || version > 5) return unknown_version("a layout", version);
  switch (at.u8()) {
    case compact: {
      layout.kind = Hdf5Layout::Kind::compact;
      Bytes inside = at.take(at.u16());
      layout.inside.assign(inside.begin(), inside.end());
      break;
    }
    case contiguous:
      layout.kind = Hdf5Layout::Kind::contiguous;
      layout.address = at.u64();
      layout.bytes = at.u64();
      break;
    case chunked:
      layout.kind = Hdf5Layout::Kind::chunked;
      if (version > 3) {
        take_new_chunks(at, layout);
        break;
      }
      layout.chunk_index = Hdf5Layout::ChunkIndex::tree;
      layout.chunk.resize(at.u8());
      layout.address = at.u64();
      for (uint64_t& side : layout.chunk) side = at.u32();
      break;
    default:
      break;
  }
  if (at.failed()) return record_cut_short("a layout");
  return layout;
}

Result<std::vector<std::byte>> parse_hdf5_fill(Bytes message) {
  constexpr uint8_t kDefined = 32;
  Hdf5Cursor at(message);
  const uint8_t version = at.u8();
  bool defined = true;
  if (version == 1 || version == 2) {
    at.skip(2);  // when room is taken, and when it is filled
    defined = at.u8() != 0 || version == 1;
  } else if (version == 3) {
    defined = (at.u8() & kDefined) != 0;
  } else {
    return unknown_version("a fill value", version);
  }
  return defined ? take_fill(at) : std::vector<std::byte>();
}

Result<std::vector<std::byte>> parse_old_hdf5_fill(Bytes message) {
  Hdf5Cursor at(message);
  return take_fill(at);
}

Result<std::vector<Hdf5Filter>> parse_hdf5_filters(Bytes message) {
  constexpr uint16_t kNamedFrom = 256;  // filters below have no name since version 2
  Hdf5Cursor at(message);
  uint8_t version = at.u8(), count = at.u8();
  if (version != 1 && version != 2) return unknown_version("a list of filters", version);
  if (version == 1) at.skip(6);
  std::vector<Hdf5Filter> filters;
  for (size_t i = 0; i < count && !at.failed(); ++i) {
    Hdf5Filter filter;
    filter.id = at.u16();
    uint64_t name_bytes = version == 1 || filter.id >= kNamedFrom ? at.u16() : 0;
    at.skip(2);  // whether it may be left out
    uint16_t values = at.u16();
    at.skip(version == 1 ? (name_bytes + 7) / 8 * 8 : name_bytes);
    if (values > 0) filter.first_value = at.u32();
    if (values > 1) at.skip(4 * (values - uint64_t{1}));
    if (version == 1 && values % 2 != 0) at.skip(4);
    filters.push_back(filter);
  }
  if (at.failed()) return record_cut_short("a list of filters");
  return filters;
}

Result<Hdf5Link> parse_hdf5_link(Bytes message) {
  Hdf5Cursor at(message);
  uint8_t version = at.u8(), flags = at.u8();
  if (version != 1) return unknown_version("a link", version);
  uint8_t kind = (flags & 8) != 0 ? at.u8() : 0;
  if ((flags & 4) != 0) at.skip(8);   // order of creation
  if ((flags & 16) != 0) at.skip(1);  // character set
  Bytes name = at.take(at.number(size_t{1} << (flags & 3)));
  Hdf5Link link{std::string(as_text(name))};
  if (kind == 0) link.address = at.u64();
  if (at.failed()) return record_cut_short("a link");
  return link;
}

}  // namespace packtrain
