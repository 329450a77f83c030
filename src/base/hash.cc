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

constexpr uint32_t kCastagnoli = 0x82F63B78u;  // bit-reflected: bit 31 is the coefficient of x^0

// Product of two polynomials modulo Castagnoli's.
constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = uint32_t{1} << 31; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b >> 1) ^ (b & 1 ? kCastagnoli : 0);
  }
  return product;
}

// kPowers[k] = x^(8 * 2^k): what appending 2^k zero bytes multiplies a check by.
constexpr auto kPowers = [] {
  struct {
    uint32_t at[64];
  } powers{};
  uint32_t power = uint32_t{1} << 23;  // x^8
  for (uint32_t& entry : powers.at) {
    entry = power;
    power = multiply(power, power);
  }
  return powers;
}();

std::string hex128(XXH128_hash_t hash) { return hex64(hash.high64) + hex64(hash.low64); }

}  // namespace

uint32_t crc32c_join(uint32_t first, uint32_t second, uint64_t second_bytes) {
  for (int k = 0; second_bytes != 0; ++k, second_bytes >>= 1) {
    if (second_bytes & 1) first = multiply(kPowers.at[k], first);
  }
  return first ^ second;
}

uint64_t xxh64(Bytes data, uint64_t seed) { return XXH3_64bits_withSeed(data.data(), data.size(), seed); }
std::string xxh128_hex(Bytes data) { return hex128(XXH3_128bits(data.data(), data.size())); }

std::string hex64(uint64_t value) {
  std::string text(16, '0');
  for (int digit = 15; digit >= 0; --digit, value >>= 4) text[digit] = "0123456789abcdef"[value & 15];
  return text;
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
