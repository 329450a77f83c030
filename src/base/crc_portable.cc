#include <array>
#include <cstring>

#include "base/crc.h"

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace packtrain::crc {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables(uint32_t reflected_polynomial) {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? reflected_polynomial : 0);
    tables[0][byte] = value;
  }
  for (uint32_t byte = 0; byte < 256; ++byte) {
    for (int step = 1; step < 8; ++step) {
      const uint32_t previous = tables[step - 1][byte];
      tables[step][byte] = (previous >> 8) ^ tables[0][previous & 0xff];
    }
  }
  return tables;
}

constexpr Tables kCrc32 = make_tables(0xEDB88320u);

uint32_t by_tables(const Tables& tables, uint32_t state, const unsigned char* at, size_t bytes) {
  while (bytes >= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    word ^= state;
    state = 0;
    for (int step = 0; step < 8; ++step) state ^= tables[7 - step][(word >> (8 * step)) & 0xff];
    at += 8;
    bytes -= 8;
  }
  while (bytes-- > 0) state = (state >> 8) ^ tables[0][(state ^ *at++) & 0xff];
  return state;
}

#if !defined(__SSE4_2__) && !defined(__ARM_FEATURE_CRC32)
constexpr Tables kCrc32c = make_tables(0x82F63B78u);
#endif

}  // namespace

uint32_t crc32_portable(uint32_t before, const void* data, size_t bytes) {
  return ~by_tables(kCrc32, ~before, static_cast<const unsigned char*>(data), bytes);
}

uint32_t crc32c_portable(uint32_t before, const void* data, size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
#if defined(__SSE4_2__)
  uint64_t state = ~before;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    state = _mm_crc32_u64(state, word);
  }
  auto narrow = static_cast<uint32_t>(state);
  for (; bytes > 0; --bytes) narrow = _mm_crc32_u8(narrow, *at++);
  return ~narrow;
#elif defined(__ARM_FEATURE_CRC32)
  uint32_t state = ~before;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    state = __crc32cd(state, word);
  }
  for (; bytes > 0; --bytes) state = __crc32cb(state, *at++);
  return ~state;
#else
  return ~by_tables(kCrc32c, ~before, at, bytes);
#endif
}

}  // namespace packtrain::crc
