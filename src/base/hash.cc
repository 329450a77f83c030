#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/crc.h"

namespace packtrain {

uint32_t crc32c(Bytes data, uint32_t before) {
#if defined(PACKTRAIN_HAVE_ISAL)
  return crc::crc32c_isal(before, data.data(), data.size());
#else
  return crc::crc32c_portable(before, data.data(), data.size());
#endif
}

uint32_t crc32(Bytes data, uint32_t before) {
#if defined(PACKTRAIN_HAVE_ISAL)
  return crc::crc32_isal(before, data.data(), data.size());
#else
  return crc::crc32_portable(before, data.data(), data.size());
#endif
}

namespace {

std::string hex128(XXH128_hash_t hash) { return hex64(hash.high64) + hex64(hash.low64); }

}  // namespace

uint64_t xxh64(Bytes data, uint64_t seed) { return XXH3_64bits_withSeed(data.data(), data.size(), seed); }
std::string xxh128_hex(Bytes data) { return hex128(XXH3_128bits(data.data(), data.size())); }

std::string hex64(uint64_t value) {
  std::string text(16, '0');
  for (int digit = 15; digit >= 0; --digit, value >>= 4) text[digit] = "0123456789abcdef"[value & 15];
  return text;
}

std::string hex_of(Bytes data) {
  std::string text;
  text.reserve(2 * data.size());
  for (const std::byte byte : data) {
    const auto value = std::to_integer<uint32_t>(byte);
    text += "0123456789abcdef"[value >> 4];
    text += "0123456789abcdef"[value & 15];
  }
  return text;
}

std::optional<std::string> bytes_of_hex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes(digits.size() / 2, '\0');
  for (size_t i = 0; i < digits.size(); ++i) {
    const size_t value = std::string_view("0123456789abcdef").find(digits[i]);
    if (value == std::string_view::npos) return std::nullopt;
    const auto before = static_cast<uint8_t>(bytes[i / 2]);
    bytes[i / 2] = static_cast<char>(before << 4 | value);
  }
  return bytes;
}

Xxh128::Xxh128() : state_(XXH3_createState()) { XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_)); }
Xxh128::~Xxh128() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }
void Xxh128::add(Bytes data) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), data.data(), data.size());
}
std::string Xxh128::hex() const {
  return hex128(XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state_)));
}

}  // namespace packtrain
