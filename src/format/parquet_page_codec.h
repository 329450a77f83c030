// How a compressed page of Parquet became what is stored: the part of it that a pipeline decodes.
#pragma once

#include <cstdint>

#include "packtrain/codec.h"
#include "packtrain/status.h"

namespace packtrain {

struct ParquetCoded {
  Pipeline pipeline;
  uint64_t front = 0;  // bytes in front of what the pipeline decodes
};

// `stored`: the compressed bytes, which decode to `raw`. Codecs that packtrain does not have are
// Code::unsupported.
Result<ParquetCoded> parquet_coded(int64_t codec, Bytes stored, uint64_t raw);

}  // namespace packtrain
