#include "format/tar_header.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstring>
#include <type_traits>

#include "base/little_endian.h"
#include "base/words.h"
#include "packtrain/storage.h"

namespace packtrain {
namespace {

struct Span {
  size_t at, bytes;
};
constexpr Span kName{0, 100}, kMode{100, 8}, kUid{108, 8}, kGid{116, 8}, kSize{124, 12}, kTime{136, 12},
    kChecksum{148, 8}, kMagicSpan{257, 8}, kUname{265, 32}, kGname{297, 32}, kDevices{329, 16},
    kPrefix{345, 155};
constexpr size_t kTypeSpan = 156;
constexpr uint64_t kLargestOctalSize = (uint64_t{1} << 33) - 1;  // eleven digits

std::string_view field(Bytes block, Span span) { return as_text(block).substr(span.at, span.bytes); }

std::string_view until_nul(std::string_view text) { return text.substr(0, text.find('\0')); }

// Octal with blanks in front and a blank or NUL behind; nothing if it is anything else.
std::optional<uint64_t> octal(std::string_view text) {
  size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return 0;
  text.remove_prefix(first);
  size_t end = std::min(text.find_first_of(std::string_view(" \0", 2)), text.size());
  uint64_t value = 0;
  for (char digit : text.substr(0, end)) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = value << 3 | static_cast<uint64_t>(digit - '0');
  }
  return value;
}

std::optional<uint64_t> number(std::string_view text) {
  auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return octal(text);
  if (first != 0x80) return std::nullopt;  // negative, or beyond 64 bits
  uint64_t value = 0;
  for (char byte : text.substr(1)) {
    if (value >> 56 != 0) return std::nullopt;
    value = value << 8 | static_cast<unsigned char>(byte);
  }
  return value;
}

// Of a kilobyte at most: eight bytes a step, in four sums of 16 bits each.
constexpr uint32_t byte_sum(Bytes bytes) {
  uint32_t sum = 0;
  if (!std::is_constant_evaluated()) {
    constexpr uint64_t kEven = 0x00ff00ff00ff00ff;
    uint64_t sums = 0;
    for (; bytes.size() >= sizeof sums; bytes = bytes.subspan(sizeof sums)) {
      const auto word = load_le<uint64_t>(bytes.data());
      sums += (word & kEven) + (word >> 8 & kEven);
    }
    for (; sums != 0; sums >>= 16) sum += static_cast<uint32_t>(sums & 0xffff);
  }
  for (std::byte byte : bytes) sum += static_cast<uint32_t>(byte);
  return sum;
}

constexpr uint32_t plain_sum(Bytes block) {
  return byte_sum(block.first(kTarBlock)) - byte_sum(block.subspan(kChecksum.at, kChecksum.bytes)) +
         kChecksum.bytes * ' ';
}
int32_t signed_sum(Bytes block) {
  auto sum = static_cast<int32_t>(plain_sum(block));
  for (size_t i = 0; i < kTarBlock; ++i) {
    bool in_checksum = i >= kChecksum.at && i < kChecksum.at + kChecksum.bytes;
    if (!in_checksum && static_cast<uint8_t>(block[i]) >= 0x80) sum -= 256;
  }
  return sum;
}

// Bytes that were lost or added move all headers behind them. One that is a byte or two beside its block has
// the right sum still where zeros or blanks surround its fields, but its magic is not where magic is.
bool is_shifted(Bytes block) {
  constexpr std::string_view kMagic = "ustar";
  const std::string_view text = as_text(block);
  if (text.substr(kMagicSpan.at, kMagic.size()) == kMagic) return false;
  return text.substr(kMagicSpan.at - 8, 16 + kMagic.size()).find(kMagic) != text.npos;
}

TarKind kind_of(char type, std::string_view name) {
  switch (type) {
    case '\0':  // old writers mark a folder by its name alone
      return name.ends_with('/') ? TarKind::without_data : TarKind::regular;
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case 'V':
      return TarKind::without_data;
    case 'x':
    case 'X':
      return TarKind::pax;
    case 'g':
      return TarKind::pax_global;
    case 'L':
      return TarKind::long_name;
    case 'K':
      return TarKind::long_link;
    case 'S':
      return TarKind::sparse;
    case 'M':
      return TarKind::other_volume;
    default:
      return TarKind::regular;  // what POSIX asks for with types a reader does not know
  }
}

constexpr void put(MutableBytes block, Span span, std::string_view text) {
  std::transform(text.begin(), text.begin() + std::min(text.size(), span.bytes), block.begin() + span.at,
                 [](char byte) { return static_cast<std::byte>(byte); });
}

// Octal digits to the field's end but one, where a NUL stays.
constexpr void put_octal(MutableBytes block, Span span, uint64_t value) {
  for (size_t i = span.bytes - 1; i-- > 0; value >>= 3) {
    block[span.at + i] = static_cast<std::byte>('0' + (value & 7));
  }
}

// The last eight octal digits of `value`, the first of them in the lowest byte, none made a letter yet.
constexpr uint64_t octal_digits(uint64_t value) {
  value = (value >> 12 & 0xfff) | (value & 0xfff) << 32;
  value = (value >> 6 & 0x0000003f0000003f) | (value & 0x0000003f0000003f) << 16;
  return (value >> 3 & 0x0007000700070007) | (value & 0x0007000700070007) << 8;
}
constexpr uint64_t kOctalZeros = 0x3030303030303030;
constexpr uint32_t digit_sum(uint64_t digits) {
  return static_cast<uint32_t>(digits * 0x0101010101010101 >> 56);
}

// The writer's header but for name, size and checksum, and the sum of what is in it.
struct PlainHeader {
  std::byte bytes[kTarBlock];
  uint32_t sum;
};
constexpr PlainHeader kPlainHeader = [] {
  PlainHeader header{};
  const MutableBytes block(header.bytes);
  put_octal(block, kMode, 0444);
  put_octal(block, kUid, 0);
  put_octal(block, kGid, 0);
  put_octal(block, kTime, 0);
  block[kTypeSpan] = std::byte{'0'};
  put(block, kMagicSpan, std::string_view("ustar\00000", 8));
  put(block, kUname, "bigdata");
  put(block, kGname, "bigdata");
  put_octal(block, {kDevices.at, 8}, 0);
  put_octal(block, {kDevices.at + 8, 8}, 0);
  header.sum = plain_sum(block);
  return header;
}();

}  // namespace

bool is_zero(Bytes bytes) {
  return bytes.empty() ||
         (bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

bool is_tar_header(Bytes block) {
  std::string_view text = field(block, kChecksum);
  if (text.find_first_of("01234567") == std::string_view::npos) return false;
  auto recorded = octal(text);
  if (!recorded) return false;
  const bool sums = *recorded == plain_sum(block) || static_cast<int64_t>(*recorded) == signed_sum(block);
  return sums && !is_shifted(block);
}

Result<TarHeader> parse_tar_header(Bytes block) {
  assert(block.size() >= kTarBlock);
  if (!is_tar_header(block)) return Status(Code::corrupt, "header checksum is wrong");
  TarHeader header;
  header.name = until_nul(field(block, kName));
  std::string_view magic = field(block, kMagicSpan);
  // GNU's own dialect ("ustar  ") keeps times where POSIX keeps the prefix.
  if (magic.starts_with(std::string_view("ustar\0", 6))) header.prefix = until_nul(field(block, kPrefix));
  const char type = static_cast<char>(block[kTypeSpan]);
  header.kind = kind_of(type, header.name);
  header.is_link = type == '1' || type == '2';
  auto size = number(field(block, kSize));
  if (!size) {
    return Status(Code::corrupt, "header of " + printable(header.name) + " has a size that is no number");
  }
  header.size = header.kind == TarKind::without_data ? 0 : *size;
  return header;
}

void PaxRecords::clear() {
  path.clear();
  size.reset();
  sparse = false;
}

Status parse_pax(Bytes data, PaxRecords& records) {
  std::string_view text = as_text(data);
  while (!text.empty() && text[0] != '\0') {
    size_t length = 0;
    auto parsed = std::from_chars(text.data(), text.data() + text.size(), length);
    auto digits = static_cast<size_t>(parsed.ptr - text.data());
    if (parsed.ec != std::errc() || length > text.size() || length < digits + 3 || text[digits] != ' ' ||
        text[length - 1] != '\n') {
      return Status(Code::corrupt, "pax record is malformed");
    }
    std::string_view record = text.substr(digits + 1, length - digits - 2);
    text.remove_prefix(length);
    size_t equals = record.find('=');
    if (equals == std::string_view::npos) return Status(Code::corrupt, "pax record has no '='");
    std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") {
      records.path = value;
    } else if (key == "size") {
      uint64_t size = 0;
      auto number = std::from_chars(value.data(), value.data() + value.size(), size);
      if (number.ec != std::errc() || number.ptr != value.data() + value.size()) {
        return Status(Code::corrupt, "pax size is no number");
      }
      records.size = size;
    } else if (key.starts_with("GNU.sparse.")) {
      records.sparse = true;
    }
  }
  return {};
}

void write_tar_header(std::string_view name, uint64_t size, MutableBytes block) {
  assert(block.size() >= kTarBlock && name.size() <= kTarNameBytes);
  std::memcpy(block.data(), kPlainHeader.bytes, kTarBlock);
  if (!name.empty()) std::memcpy(block.data() + kName.at, name.data(), name.size());
  // Sums are taken of what is written, not of the block: it would have to be written first.
  uint32_t sum = kPlainHeader.sum + byte_sum(as_bytes(name));
  std::byte* const digits = block.data() + kSize.at;
  if (size <= kLargestOctalSize) {
    const uint64_t first = octal_digits(size >> 24), last = octal_digits(size);
    store_le(digits, (first | kOctalZeros) >> 40);  // the last three of the first eight
    store_le(digits + 3, last | kOctalZeros);
    sum += 11 * '0' + digit_sum(first) + digit_sum(last);
  } else {
    for (size_t i = kSize.bytes; i-- > 4; size >>= 8) digits[i] = static_cast<std::byte>(size & 0xff);
    digits[0] = std::byte{0x80};
    sum += byte_sum(block.subspan(kSize.at, kSize.bytes));
  }
  // Six digits, NUL, blank: the form every writer uses.
  store_le(block.data() + kChecksum.at, (octal_digits(sum) | kOctalZeros) >> 16 | static_cast<uint64_t>(' ')
                                                                                      << 56);
}

}  // namespace packtrain
