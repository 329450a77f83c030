// Checks and hashes. All functions are pure and thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "packtrain/status.h"

namespace packtrain {

// CRC-32C (Castagnoli) and CRC-32 (zip, gzip) of `data`, continuing from the check of what came before.
uint32_t crc32c(Bytes data, uint32_t before = 0);
uint32_t crc32(Bytes data, uint32_t before = 0);
// The check of A followed by B, from theirs and the length of B: O(log length).
uint32_t crc32c_join(uint32_t first, uint32_t second, uint64_t second_bytes);
uint32_t crc32_join(uint32_t first, uint32_t second, uint64_t second_bytes);

uint64_t xxh64(Bytes data, uint64_t seed = 0);  // XXH3, 64 bit
std::string xxh128_hex(Bytes data);             // XXH3, 128 bit, 32 hex digits, big-endian as xxhsum prints
std::string hex64(uint64_t value);              // 16 hex digits
std::string hex_of(Bytes data);                 // two lower-case digits a byte
std::optional<std::string> bytes_of_hex(std::string_view digits);  // nothing if they are none

// XXH3-128 of a stream, piece by piece. One thread at a time.
class Xxh128 {
 public:
  Xxh128();
  ~Xxh128();
  Xxh128(const Xxh128&) = delete;
  Xxh128& operator=(const Xxh128&) = delete;
  void add(Bytes data);
  std::string hex() const;

 private:
  void* state_;
};

}  // namespace packtrain
