// Codec: bytes to bytes. A pipeline says how stored bytes became what they are.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "packtrain/status.h"

namespace packtrain {

// One step from raw to stored bytes:
//   "deflate"      raw DEFLATE, no header
//   "zlib"         the same in a zlib stream
//   "gzip_member"  the same in one member of gzip
//   "zstd"         one frame
//   "lz4"          one bare block
//   "lz4_frame"    one frame
//   "snappy"       one block; decoded only
//   "lzf"          one block of LibLZF; decoded only
//   "blosc"        one buffer of Blosc 1; the parameter is the number of bytes in a number, which encoding
//                  shuffles by
//   "shuffle"      HDF5's: all first bytes of numbers, then all second ones; the parameter is the number of
//                  bytes in a number
//   "fletcher32"   HDF5's: a check of four bytes behind the data
//   "crc32c"       a CRC-32C, little-endian, behind the data; the parameter is how many bytes in front of the
//                  data it covers too, which decoding leaves away; decoded only
//   "stored_check" nothing is done: the check that is recorded of the block is of what is stored, not of what
//                  that decodes to. The last step
//   "fill"         nothing is stored: `value` again and again; decoded only
struct CodecStep {
  std::string name;
  uint32_t parameter = 0;  // meaning by codec, 0 if it has none
  std::string value = {};  // bytes, of "fill" alone
  bool operator==(const CodecStep&) const = default;
};
// The pipeline of bytes that are not stored: `value`, from its first byte on, as often as needed.
inline std::vector<CodecStep> fill_pipeline(std::string_view value) {
  return {{"fill", 0, std::string(value)}};
}
// In the order of encoding; decoding runs it backwards. Empty: stored as they are.
using Pipeline = std::vector<CodecStep>;

inline constexpr std::string_view kStoredCheck = "stored_check";
inline bool checks_stored(const Pipeline& pipeline) {
  return !pipeline.empty() && pipeline.back().name == kStoredCheck;
}
// Whether decoding compares a check that is stored with the bytes.
bool decoding_checks(const Pipeline& pipeline);
// Whether nothing is stored that could be damaged.
inline bool is_fill(const Pipeline& pipeline) { return pipeline.size() == 1 && pipeline[0].name == "fill"; }

// Fills `raw`, whose size is known from the index, to the last byte; stored bytes that decode to
// more or less are Code::corrupt, a codec that is not compiled in Code::unsupported. Thread-safe.
Status decode(const Pipeline& pipeline, Bytes stored, MutableBytes raw);
// Thread-safe. `level` 0 is the codec's default.
Result<std::vector<std::byte>> encode(const Pipeline& pipeline, Bytes raw, int level = 0);

struct CodecInfo {
  std::string_view name;
  bool compiled_in;
  std::string_view library;  // what it needs, for doctor
  std::string_view package;  // of Debian and Ubuntu, that has it
};
const std::vector<CodecInfo>& codecs();

// Takes as many bytes as it can get, 0 at the end.
using ByteSource = std::function<Result<size_t>(MutableBytes into)>;

// A long compressed stream, decoded front to back: "gzip" (several members too), "zstd" (several
// frames too). One thread at a time.
struct StreamDecoder {
  virtual ~StreamDecoder() = default;
  virtual Result<size_t> read(
      MutableBytes into) = 0;  // less than asked only at the end of the stream; 0: the end
};
Result<std::unique_ptr<StreamDecoder>> make_stream_decoder(std::string_view codec, ByteSource source);

}  // namespace packtrain
