// Facts of the index's bytes that its writer and its reader share; docs/index-format.md specifies them all.
#pragma once

#include <cstdint>
#include <string>

namespace packtrain::rows {

inline constexpr uint32_t kAbsent = 0xFFFFFFFF;  // length of a field that a sample does not have
inline constexpr size_t kMostFields =
    64;  // a sample with more kinds of fields is indexed in the general form
inline constexpr uint64_t kMostSlack =
    16 << 10;  // bytes between the fields of a sample that a read may bring for nothing
inline constexpr uint16_t kHoleFlag = 4;  // in block.flags, above the two bits of the check's kind

inline std::string field_column(size_t field, const char* what) {
  return "f" + std::to_string(field) + "." + what;
}

}  // namespace packtrain::rows
