// What a pixel is to NumPy and DLPack.
#pragma once

#include <nanobind/ndarray.h>

#include "packtrain/transform.h"

namespace packtrain::bind {

inline nanobind::dlpack::dtype dtype_of(PixelType type) {
  switch (type) {
    case PixelType::uint8:
      return nanobind::dtype<uint8_t>();
    case PixelType::float16:
      return {uint8_t(nanobind::dlpack::dtype_code::Float), 16, 1};
    case PixelType::bfloat16:
      return nanobind::dtype<uint16_t>();  // NumPy has no such type: its bits
    case PixelType::float32:
      break;
  }
  return nanobind::dtype<float>();
}

}  // namespace packtrain::bind
