#include "format/zarr_fill.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "base/little_endian.h"
#include "base/words.h"

namespace packtrain {
namespace {

template <class T>
std::string bytes_of(T value) {
  std::string bytes(sizeof value, '\0');
  store_le(bytes.data(), value);
  return bytes;
}

// Round to nearest, ties to even, as NumPy converts.
uint16_t half_of(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 48 & 0x8000);
  if (std::isnan(value)) return 0x7E00;
  const double size = std::fabs(value);
  if (size >= 65520) return sign | 0x7C00;
  // Numbers of half precision are multiples of a power of two that depends on their size.
  const int exponent = size < std::ldexp(1.0, -14) ? -14 : std::ilogb(size);
  const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  const uint32_t magnitude =
      steps < 1024 ? steps : steps - 1024 + (static_cast<uint32_t>(exponent + 15) << 10);
  return static_cast<uint16_t>(sign | magnitude);
}

std::string real_bytes(double value, uint64_t bytes) {
  if (bytes == 2) return bytes_of(half_of(value));
  if (bytes == 4) return bytes_of(std::bit_cast<uint32_t>(static_cast<float>(value)));
  return bytes_of(std::bit_cast<uint64_t>(value));
}

// "0x7fc00000": the bits, the highest first.
std::optional<std::string> bits_of(std::string_view text, uint64_t bytes) {
  if (!text.starts_with("0x") && !text.starts_with("0b")) return std::nullopt;
  const int base = text[1] == 'x' ? 16 : 2;
  uint64_t value = 0;
  const auto parsed = std::from_chars(text.data() + 2, text.data() + text.size(), value, base);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || bytes > 8) return std::nullopt;
  if (bytes < 8 && value >> (8 * bytes) != 0) return std::nullopt;
  return bytes_of(value).substr(0, static_cast<size_t>(bytes));
}

std::optional<std::string> real_of(const Json& fill, uint64_t bytes) {
  if (fill.is_number()) return real_bytes(fill.as_double(), bytes);
  const std::string& text = fill.as_string();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "NaN") return real_bytes(std::numeric_limits<double>::quiet_NaN(), bytes);
  if (text == "Infinity") return real_bytes(kInfinity, bytes);
  if (text == "-Infinity") return real_bytes(-kInfinity, bytes);
  return bits_of(text, bytes);
}

std::optional<std::string> integer_of(const Json& fill, bool is_signed, uint64_t bytes) {
  if (!fill.is_number()) return bits_of(fill.as_string(), bytes);
  const uint64_t bits = 8 * bytes;
  const double real = fill.as_double();
  if (fill.as_uint() == 0 && real > 0) {  // a whole number that was written as a real one
    if (real != std::floor(real) || real >= std::ldexp(1.0, is_signed ? 63 : 64)) return std::nullopt;
    const auto value = static_cast<uint64_t>(real);
    if (bits < 64 && value >> (is_signed ? bits - 1 : bits) != 0) return std::nullopt;
    return bytes_of(value).substr(0, static_cast<size_t>(bytes));
  }
  if (real < 0) {
    const int64_t value = fill.is_integer() ? fill.as_int(1) : static_cast<int64_t>(real);
    if (!is_signed || value >= 0 || static_cast<double>(value) != real) return std::nullopt;
    if (bits < 64 && value < -(int64_t{1} << (bits - 1))) return std::nullopt;
    return bytes_of(static_cast<uint64_t>(value)).substr(0, static_cast<size_t>(bytes));
  }
  const uint64_t value = fill.as_uint();
  if ((bits < 64 || is_signed) && value >> (is_signed ? bits - 1 : bits) != 0) return std::nullopt;
  return bytes_of(value).substr(0, static_cast<size_t>(bytes));
}

std::optional<std::string> base64_of(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0, held = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char letter : text) {
    const size_t value = kDigits.find(letter);
    if (value == std::string_view::npos) return std::nullopt;
    held = held << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(held >> bits & 0xFF);
  }
  return bytes;
}

std::optional<std::string> item_of(const Json& fill, ZarrNumber number, const ArrayType& type) {
  const uint64_t bytes = type.item_bytes;
  switch (number) {
    case ZarrNumber::truth:
      if (fill.is_bool()) return bytes_of<uint8_t>(fill.as_bool() ? 1 : 0);
      return integer_of(fill, false, bytes);
    case ZarrNumber::signed_integer:
    case ZarrNumber::unsigned_integer:
      return integer_of(fill, number == ZarrNumber::signed_integer, bytes);
    case ZarrNumber::real:
      return real_of(fill, bytes);
    case ZarrNumber::complex: {
      if (!fill.is_array()) {
        auto real = real_of(fill, bytes / 2);
        if (real) real->resize(bytes);
        return real;
      }
      if (fill.items().size() != 2) return std::nullopt;
      const auto real = real_of(fill.items()[0], bytes / 2), imaginary = real_of(fill.items()[1], bytes / 2);
      if (!real || !imaginary) return std::nullopt;
      return *real + *imaginary;
    }
    case ZarrNumber::time:
      if (fill.as_string() == "NaT") return bytes_of(uint64_t{1} << 63);
      return integer_of(fill, true, bytes);
    case ZarrNumber::text: {
      if (!fill.is_string()) return std::nullopt;
      if (type.kind == ArrayType::Kind::long_text || fill.as_string().empty()) return fill.as_string();
      return std::nullopt;  // of one width, in UTF-32: never seen
    }
    case ZarrNumber::bytes: {
      std::optional<std::string> made;
      if (fill.is_string()) made = base64_of(fill.as_string());
      if (fill.is_array()) {
        made.emplace();
        for (const Json& byte : fill.items()) {
          if (byte.as_uint(UINT64_MAX) > 0xFF) return std::nullopt;
          *made += static_cast<char>(byte.as_uint());
        }
      }
      if (!made || made->size() > bytes) return std::nullopt;
      made->resize(bytes);
      return made;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> zarr_fill(const Json& fill, ZarrNumber number, const ArrayType& type) {
  if (fill.is_null()) return std::string();
  if (fill.is_number() && fill.as_double(1) == 0 && !std::signbit(fill.as_double())) return std::string();
  auto item = item_of(fill, number, type);
  if (!item) {
    return Status(Code::unsupported, "lacks chunks, and its fill value " + printable(fill.dump()) +
                                         " is not understood; write them all (write_empty_chunks)");
  }
  if (number != ZarrNumber::text && item->find_first_not_of('\0') == std::string::npos) item->clear();
  return std::move(*item);
}

}  // namespace packtrain
