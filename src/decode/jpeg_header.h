// The header of a JPEG stream, walked marker by marker: what can be known of it without a decoder.
#pragma once

#include <cstdint>
#include <optional>

#include "packtrain/decode.h"

namespace packtrain {

struct JpegHeader {
  ImageShape shape;
  uint8_t bits = 8;              // of a component
  bool progressive = false;      // coded with Huffman codes, as nearly all of them are
  Chroma chroma = Chroma::s420;  // or the nearest that loses nothing
  bool has_adobe = false;        // an Adobe APP14 segment: four components are then stored inverted
  Bytes exif;                    // the TIFF block of the first EXIF segment; empty if there is none
};

// Nothing if `data` is no JPEG, or ends before its frame header. Safe on any bytes.
std::optional<JpegHeader> read_jpeg_header(Bytes data);

}  // namespace packtrain
