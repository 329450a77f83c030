// The one thing that a decoder wants from EXIF: which way is up.
#pragma once

#include <cstdint>

#include "packtrain/status.h"

namespace packtrain {

// `tiff`: the block that follows "Exif\0\0". 1 (upright) to 8; 1 if it says nothing, or nothing sensible.
// Safe on any bytes.
uint8_t exif_orientation(Bytes tiff);

}  // namespace packtrain
