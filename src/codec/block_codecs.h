// What each codec's own file offers to the table in codec.cc. A file whose library is absent is left out of
// the build, and the table then does not name its functions. All functions are thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "packtrain/codec.h"

namespace packtrain {

// `*_decode` returns how many bytes it put into `raw`: fewer than fit are no error here, more are
// Code::corrupt, and so are bytes left over in `stored`. It allocates nothing that grows with either.
Result<size_t> deflate_decode(Bytes stored, MutableBytes raw);
Result<std::vector<std::byte>> deflate_encode(Bytes raw, int level);

Result<size_t> zlib_decode(Bytes stored, MutableBytes raw);  // the same with zlib's header and Adler-32
Result<std::vector<std::byte>> zlib_encode(Bytes raw, int level);
Result<size_t> gzip_member_decode(Bytes stored, MutableBytes raw);  // with gzip's header, CRC-32 and length

Result<size_t> zstd_decode(Bytes stored, MutableBytes raw);
Result<std::vector<std::byte>> zstd_encode(Bytes raw, int level);
Result<std::unique_ptr<StreamDecoder>> make_zstd_stream(ByteSource source);

Result<size_t> lz4_decode(Bytes stored, MutableBytes raw);  // one bare block
Result<std::vector<std::byte>> lz4_encode(Bytes raw, int level);
Result<size_t> lz4_frame_decode(Bytes stored, MutableBytes raw);  // one frame
Result<std::vector<std::byte>> lz4_frame_encode(Bytes raw, int level);

Result<size_t> blosc_decode(Bytes stored, MutableBytes raw);
// By LZ4; numbers of more than one byte are shuffled.
Result<std::vector<std::byte>> blosc_encode(Bytes raw, uint32_t number_bytes, int level);

Result<size_t> snappy_decode(Bytes stored, MutableBytes raw);
Result<size_t> lzf_decode(Bytes stored, MutableBytes raw);

Result<size_t> fletcher32_decode(Bytes stored, MutableBytes raw);
Result<std::vector<std::byte>> fletcher32_encode(Bytes raw, int level);

// The parameter is how many bytes in front of the data the check covers too.
Result<size_t> crc32c_decode(Bytes stored, const CodecStep& step, MutableBytes raw);

// By the number of bytes in a number; what is left over at the end stays where it is.
Result<size_t> shuffle_decode(Bytes stored, const CodecStep& step, MutableBytes raw);
Result<std::vector<std::byte>> shuffle_encode(Bytes raw, uint32_t number_bytes, int level);
Result<size_t> fill_decode(Bytes stored, const CodecStep& step, MutableBytes raw);

Result<std::unique_ptr<StreamDecoder>> make_gzip_stream(ByteSource source);

}  // namespace packtrain
