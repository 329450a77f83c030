// The table of image decoders: which one reads these bytes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "decode/pixel_decoder.h"
#include "packtrain/status.h"

namespace packtrain {

inline constexpr size_t kImageFormats = 4;

// One decoder of each kind, made when the first such image comes and kept. One thread at a time.
class PixelDecoders {
 public:
  // By content. An image of a kind that is not decoded, or whose library was absent, is Code::unsupported;
  // what is no image is Code::corrupt. The decoder lives as long as this does.
  Result<PixelDecoder*> find(Bytes encoded);
  uint64_t warnings() const;  // of all of them

 private:
  std::array<std::unique_ptr<PixelDecoder>, kImageFormats> decoders_;  // in the order of the table
};

// That what is held of the image while it is decoded is at most `memory` bytes.
Status check_memory(const Frame& frame, uint64_t memory);

}  // namespace packtrain
