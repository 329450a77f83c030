#include "format/parquet_page_codec.h"

#include "base/little_endian.h"
#include "format/parquet_records.h"

namespace packtrain {
namespace {

constexpr uint64_t kHighestPageRatio = 32768;  // of any codec here

Status damaged_page() { return Status(Code::corrupt, "a compressed page is damaged"); }

// Of a gzip member (RFC 1952): what stands in front of the DEFLATE data.
Result<uint64_t> gzip_head_bytes(Bytes stored) {
  enum : uint8_t { header_check = 2, extra = 4, name = 8, comment = 16 };
  constexpr size_t kFixed = 10;
  if (stored.size() < kFixed || load_le<uint16_t>(stored.data()) != 0x8B1F ||
      std::to_integer<int>(stored[2]) != 8)
    return damaged_page();
  const auto flags = std::to_integer<uint8_t>(stored[3]);
  size_t at = kFixed;
  if ((flags & extra) != 0) {
    if (stored.size() - at < 2) return damaged_page();
    at += size_t{2} + load_le<uint16_t>(stored.data() + at);
  }
  for (const uint8_t text : {name, comment}) {
    if ((flags & text) == 0) continue;
    while (at < stored.size() && stored[at] != std::byte{0}) ++at;
    ++at;
  }
  if ((flags & header_check) != 0) at += 2;
  if (at > stored.size()) return damaged_page();
  return uint64_t{at};
}

uint32_t big_endian(const std::byte* at) { return __builtin_bswap32(load_le<uint32_t>(at)); }

}  // namespace

Result<ParquetCoded> parquet_coded(int64_t codec, Bytes stored, uint64_t raw) {
  if (raw / kHighestPageRatio > stored.size()) return damaged_page();
  ParquetCoded coded;
  switch (codec) {
    case kParquetUncompressed:
      return coded;
    case kParquetSnappy:
      coded.pipeline = {{"snappy"}};
      return coded;
    case kParquetZstd:
      coded.pipeline = {{"zstd"}};
      return coded;
    case kParquetLz4:
      coded.pipeline = {{"lz4"}};
      return coded;
    case kParquetOldLz4: {
      // A frame of Hadoop's: both lengths, big-endian, in front. Some writers left it away.
      constexpr size_t kLengths = 8;
      if (stored.size() >= kLengths && big_endian(stored.data()) == raw &&
          big_endian(stored.data() + 4) == stored.size() - kLengths)
        coded.front = kLengths;
      coded.pipeline = {{"lz4"}};
      return coded;
    }
    case kParquetGzip: {
      constexpr uint64_t kTail = 8;  // CRC-32 and length
      PACKTRAIN_ASSIGN(head, gzip_head_bytes(stored));
      if (stored.size() - head < kTail) return damaged_page();
      coded.front = head;
      coded.back = kTail;
      coded.pipeline = {{"deflate"}};
      return coded;
    }
    default:
      return Status(Code::unsupported, "is compressed by " + std::string(parquet_codec_name(codec)));
  }
}

}  // namespace packtrain
