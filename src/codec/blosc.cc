// Blosc 1 buffers (a header of 16 bytes, then blocks by one of several compressors) through libblosc. The
// only file that includes it. Only calls with a context of their own are used: the others share one.
#include <blosc.h>

#include <string>

#include "codec/block_codecs.h"

namespace packtrain {
namespace {

constexpr int kDefaultLevel = 5;
constexpr int kOneThread = 1;

}  // namespace

Result<size_t> blosc_decode(Bytes stored, MutableBytes raw) {
  if (stored.size() < BLOSC_MIN_HEADER_LENGTH) return Status(Code::corrupt, "blosc data are cut short");
  size_t raw_bytes = 0, stored_bytes = 0, block_bytes = 0;
  blosc_cbuffer_sizes(stored.data(), &raw_bytes, &stored_bytes, &block_bytes);
  if (stored_bytes != stored.size()) {
    return Status(Code::corrupt, "blosc data claim to be " + std::to_string(stored_bytes) + " bytes where " +
                                     std::to_string(stored.size()) + " are stored");
  }
  if (raw_bytes > raw.size()) {
    return Status(Code::corrupt,
                  "blosc data decode to more than the " + std::to_string(raw.size()) + " bytes recorded");
  }
  if (raw_bytes == 0) return size_t{0};
  size_t checked_bytes = 0;
  if (blosc_cbuffer_validate(stored.data(), stored.size(), &checked_bytes) != 0)
    return Status(Code::corrupt, "blosc data have a damaged header");
  const int made = blosc_decompress_ctx(stored.data(), raw.data(), raw.size(), kOneThread);
  if (made < 0 || static_cast<size_t>(made) != raw_bytes) {
    const char* library = blosc_cbuffer_complib(stored.data());
    return Status(Code::corrupt, "blosc data are damaged, or compressed by " +
                                     std::string(library != nullptr ? library : "a compressor") +
                                     ", which this libblosc was built without");
  }
  return raw_bytes;
}

Result<std::vector<std::byte>> blosc_encode(Bytes raw, uint32_t number_bytes, int level) {
  if (level < 0 || level > 9)
    return Status(Code::invalid, "blosc level " + std::to_string(level) + " is not within 0 to 9");
  if (raw.size() > BLOSC_MAX_BUFFERSIZE) return Status(Code::invalid, "a blosc buffer holds less than 2 GiB");
  std::vector<std::byte> stored(raw.size() + BLOSC_MAX_OVERHEAD);
  const int shuffle = number_bytes > 1 ? BLOSC_SHUFFLE : BLOSC_NOSHUFFLE;
  const size_t bytes = number_bytes > 1 && number_bytes <= BLOSC_MAX_TYPESIZE ? number_bytes : 1;
  const int made =
      blosc_compress_ctx(level == 0 ? kDefaultLevel : level, shuffle, bytes, raw.size(), raw.data(),
                         stored.data(), stored.size(), BLOSC_LZ4_COMPNAME, 0, kOneThread);
  if (made <= 0)
    return Status(Code::io, "libblosc could not compress " + std::to_string(raw.size()) + " bytes");
  stored.resize(static_cast<size_t>(made));
  return stored;
}

}  // namespace packtrain
