// DEFLATE of whole blocks, raw (RFC 1951), as a zlib stream (RFC 1950) or as a member of gzip (RFC 1952),
// through libdeflate. The only file that includes it.
#include <libdeflate.h>

#include <string>

#include "codec/block_codecs.h"

namespace packtrain {
namespace {

constexpr int kDeflateLevel = 6;
constexpr int kHighestLevel = 12;

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* decompressor) const { libdeflate_free_decompressor(decompressor); }
};
struct FreeCompressor {
  void operator()(libdeflate_compressor* compressor) const { libdeflate_free_compressor(compressor); }
};

// Setting up a decompressor costs more than inflating a small block, so each thread keeps one.
libdeflate_decompressor* this_threads_decompressor() {
  thread_local std::unique_ptr<libdeflate_decompressor, FreeDecompressor> kept(
      libdeflate_alloc_decompressor());
  return kept.get();
}

using Decompress = decltype(&libdeflate_deflate_decompress_ex);

Result<size_t> decode_by(Decompress decompress, Bytes stored, MutableBytes raw) {
  libdeflate_decompressor* decompressor = this_threads_decompressor();
  if (decompressor == nullptr) return Status(Code::no_room, "no memory for a deflate decoder");
  // libdeflate wants addresses that are not null, also where there is nothing to read or write.
  std::byte nothing{};
  size_t taken = 0, made = 0;
  libdeflate_result result =
      decompress(decompressor, stored.empty() ? &nothing : stored.data(), stored.size(),
                 raw.empty() ? &nothing : raw.data(), raw.size(), &taken, &made);
  switch (result) {
    case LIBDEFLATE_SUCCESS:
      break;
    case LIBDEFLATE_INSUFFICIENT_SPACE:
      return Status(Code::corrupt,
                    "deflate data decode to more than the " + std::to_string(raw.size()) + " bytes recorded");
    default:
      return Status(Code::corrupt, "deflate data are damaged or cut short");
  }
  if (taken != stored.size()) {
    return Status(Code::corrupt, "deflate data end " + std::to_string(stored.size() - taken) +
                                     " bytes before the space recorded for them");
  }
  return made;
}

using Bound = decltype(&libdeflate_deflate_compress_bound);
using Compress = decltype(&libdeflate_deflate_compress);

Result<std::vector<std::byte>> encode_by(Bound bound, Compress compress, Bytes raw, int level) {
  if (level < 0 || level > kHighestLevel) {
    return Status(Code::invalid, "deflate level " + std::to_string(level) + " is not within 0 to 12");
  }
  std::unique_ptr<libdeflate_compressor, FreeCompressor> compressor(
      libdeflate_alloc_compressor(level == 0 ? kDeflateLevel : level));
  if (compressor == nullptr) return Status(Code::no_room, "no memory for a deflate encoder");
  std::vector<std::byte> stored(bound(compressor.get(), raw.size()));
  std::byte nothing{};
  size_t made = compress(compressor.get(), raw.empty() ? &nothing : raw.data(), raw.size(), stored.data(),
                         stored.size());
  if (made == 0) return Status(Code::io, "libdeflate did not keep to its own bound");
  stored.resize(made);
  return stored;
}

}  // namespace

Result<size_t> deflate_decode(Bytes stored, MutableBytes raw) {
  return decode_by(libdeflate_deflate_decompress_ex, stored, raw);
}

Result<std::vector<std::byte>> deflate_encode(Bytes raw, int level) {
  return encode_by(libdeflate_deflate_compress_bound, libdeflate_deflate_compress, raw, level);
}

Result<size_t> zlib_decode(Bytes stored, MutableBytes raw) {
  return decode_by(libdeflate_zlib_decompress_ex, stored, raw);
}

Result<std::vector<std::byte>> zlib_encode(Bytes raw, int level) {
  return encode_by(libdeflate_zlib_compress_bound, libdeflate_zlib_compress, raw, level);
}

Result<size_t> gzip_member_decode(Bytes stored, MutableBytes raw) {
  return decode_by(libdeflate_gzip_decompress_ex, stored, raw);
}

}  // namespace packtrain
