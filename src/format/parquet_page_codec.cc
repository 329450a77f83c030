#include "format/parquet_page_codec.h"

#include "base/little_endian.h"
#include "format/parquet_records.h"

namespace packtrain {
namespace {

constexpr uint64_t kHighestPageRatio = 32768;  // of any codec here

Status damaged_page() { return Status(Code::corrupt, "a compressed page is damaged"); }

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
    case kParquetGzip:
      coded.pipeline = {{"gzip_member"}};
      return coded;
    default:
      return Status(Code::unsupported, "is compressed by " + std::string(parquet_codec_name(codec)));
  }
}

}  // namespace packtrain
