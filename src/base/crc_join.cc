// Joining two CRC-32C checks: appending n bytes to A multiplies its check by x^(8n) modulo Castagnoli's
// polynomial, so the check of AB is check(A) * x^(8n) + check(B). x^(8n) is the product of x^(8 * 2^k) over
// the bits k of n. The same holds for zip's CRC-32 and its polynomial.
#include "base/crc.h"
#include "base/hash.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace packtrain {
namespace {

constexpr uint32_t kCastagnoli = 0x82F63B78u;  // bit-reflected: bit 31 is the coefficient of x^0
constexpr uint32_t kZipPolynomial = 0xEDB88320u;

struct Powers {
  uint32_t at[64];
};

// Product of two polynomials modulo a third.
constexpr uint32_t multiply(uint32_t a, uint32_t b, uint32_t modulus = kCastagnoli) {
  uint32_t product = 0;
  for (uint32_t bit = uint32_t{1} << 31; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b >> 1) ^ (b & 1 ? modulus : 0);
  }
  return product;
}

// kPowers.at[k] = x^(8 * 2^k): what appending 2^k zero bytes multiplies a check by.
constexpr Powers kPowers = [] {
  Powers powers{};
  uint32_t power = uint32_t{1} << 23;  // x^8
  for (uint32_t& entry : powers.at) {
    entry = power;
    power = multiply(power, power);
  }
  return powers;
}();

#if defined(__x86_64__)

constexpr uint32_t divide_by_x(uint32_t a) {
  return a & (uint32_t{1} << 31) ? ((a ^ kCastagnoli) << 1) | 1 : a << 1;
}

// The same powers over x^33. The processor's carry-less product of two reflected polynomials, taken as eight
// bytes of message, is theirs times x; its CRC instruction multiplies by x^32 before it reduces. Both
// together give back what is missing here.
constexpr Powers kPowersForProcessor = [] {
  Powers powers = kPowers;
  for (uint32_t& entry : powers.at) {
    for (int i = 0; i < 33; ++i) entry = divide_by_x(entry);
  }
  return powers;
}();

__attribute__((target("pclmul,sse4.2"))) uint32_t shift_by_processor(uint32_t check, uint64_t bytes) {
  for (; bytes != 0; bytes &= bytes - 1) {
    const uint32_t power = kPowersForProcessor.at[__builtin_ctzll(bytes)];
    const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(check)),
                                                 _mm_cvtsi32_si128(static_cast<int>(power)), 0);
    check = static_cast<uint32_t>(_mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(product))));
  }
  return check;
}

#endif

}  // namespace

namespace crc {

uint32_t crc32c_shift_portable(uint32_t check, uint64_t bytes) {
  for (; bytes != 0; bytes &= bytes - 1) check = multiply(kPowers.at[__builtin_ctzll(bytes)], check);
  return check;
}

}  // namespace crc

uint32_t crc32c_join(uint32_t first, uint32_t second, uint64_t second_bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2")) {
    return shift_by_processor(first, second_bytes) ^ second;
  }
#endif
  return crc::crc32c_shift_portable(first, second_bytes) ^ second;
}

uint32_t crc32_join(uint32_t first, uint32_t second, uint64_t second_bytes) {
  uint32_t power = uint32_t{1} << 23;  // x^8
  for (; second_bytes != 0; second_bytes >>= 1) {
    if (second_bytes & 1) first = multiply(power, first, kZipPolynomial);
    power = multiply(power, power, kZipPolynomial);
  }
  return first ^ second;
}

}  // namespace packtrain
