// The header of a portable pixmap (P6) or graymap (P5): the one place that parses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "packtrain/status.h"

namespace packtrain {

struct PnmHeader {
  uint32_t width = 0, height = 0;  // at least 1
  uint32_t channels = 0;           // 1 (P5) or 3 (P6)
  uint32_t largest = 0;            // the value of white: 1 to 65535; more than 255 makes samples of two bytes
  size_t bytes = 0;                // of the header: pixels follow
};

// Comments may make a header long; one that is longer than this is not known as one.
inline constexpr size_t kPnmHeadBytes = 256;

// Nothing if `data` does not begin with a whole header of either kind. Safe on any bytes.
std::optional<PnmHeader> read_pnm_header(Bytes data);

}  // namespace packtrain
