// Decoders of blocks and streams against any bytes. The first two bytes choose the size that is asked for.
#include <algorithm>
#include <cstring>

#include "packtrain/codec.h"
#include "packtrain/storage.h"

using namespace packtrain;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  size_t raw_bytes = size_t{data[0]} << 8 | data[1];
  Bytes stored = std::as_bytes(std::span(data + 2, size - 2));
  std::vector<std::byte> raw(raw_bytes);
  for (const Pipeline& pipeline :
       {Pipeline{{"deflate"}}, Pipeline{{"zstd"}}, Pipeline{{"lz4"}}, Pipeline{{"lz4_frame"}},
        Pipeline{{"blosc"}}, Pipeline{{"deflate"}, {"zstd"}}, Pipeline{{"snappy"}}, Pipeline{{"lzf"}},
        Pipeline{{"zlib"}}, Pipeline{{"fletcher32"}}, Pipeline{{"shuffle", 1 + data[1] % 16u}},
        Pipeline{{"gzip_member"}}, Pipeline{{"crc32c", data[0] % 16u}, {"stored_check"}},
        Pipeline{{"shuffle", 4}, {"deflate"}}}) {
    (void)decode(pipeline, stored, raw);
  }
  for (const char* codec : {"gzip", "zstd"}) {
    size_t at = 0;
    auto stream = make_stream_decoder(codec, [&](MutableBytes into) -> Result<size_t> {
      size_t now = std::min(into.size(), stored.size() - at);
      if (now > 0) std::memcpy(into.data(), stored.data() + at, now);
      at += now;
      return now;
    });
    if (!stream.ok()) continue;
    std::vector<std::byte> piece(1 + raw_bytes);
    for (int reads = 0; reads < 64; ++reads) {
      auto got = (*stream)->read(piece);
      if (!got.ok() || *got < piece.size()) break;
    }
  }
  return 0;
}
