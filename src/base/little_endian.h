// Numbers in files are little-endian; these read and write them at any alignment.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace packtrain {

static_assert(std::endian::native == std::endian::little, "packtrain maps little-endian columns as they are");

template <class T>
T load_le(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void store_le(void* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace packtrain
