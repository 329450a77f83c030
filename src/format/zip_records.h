// The records of a zip archive (APPNOTE 6.3), parsed and written. Pure functions, thread-safe.
//
//   [local header, data]…  central directory  [ZIP64 end record, ZIP64 locator]  end record, comment
//
// Sizes and offsets of 32 bits that do not fit hold 0xFFFFFFFF, and the value stands in the ZIP64 extra
// field. The extra field of a local header may differ from that of the directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "packtrain/status.h"

namespace packtrain {

inline constexpr size_t kZipLocalBytes = 30;
inline constexpr size_t kZipCentralBytes = 46;
inline constexpr size_t kZipEndBytes = 22;
inline constexpr size_t kZip64EndBytes = 56;
inline constexpr size_t kZip64LocatorBytes = 20;
inline constexpr size_t kZipLongestComment = 0xFFFF;
inline constexpr uint32_t kZip32Limit = 0xFFFFFFFF;

enum class ZipMethod : uint16_t { store = 0, deflate = 8, zstd = 93 };

inline constexpr uint16_t kZipEncrypted = 1 << 0;
inline constexpr uint16_t kZipPatched = 1 << 5;
inline constexpr uint16_t kZipStrongEncryption = 1 << 6;
inline constexpr uint16_t kZipUtf8 = 1 << 11;
inline constexpr uint16_t kZipMaskedDirectory = 1 << 13;

// Where the directory is, by the end record or its ZIP64 form.
struct ZipEnd {
  uint64_t entries = 0, directory_bytes = 0, directory_offset = 0;
  uint32_t disk = 0, directory_disk = 0;
  bool sixty_four = false;  // the number of entries is not cut to 16 bits
};

// One entry by the central directory; views into it.
struct ZipEntry {
  std::string_view name;
  uint16_t flags = 0;
  uint16_t method = 0;
  uint32_t crc32 = 0;
  uint64_t stored = 0, raw = 0, local_offset = 0;
  uint32_t disk = 0;
  uint32_t unix_mode = 0;  // 0: made by a system that has none
};

struct ZipLocal {
  uint16_t flags = 0, method = 0;
  uint16_t name_bytes = 0, extra_bytes = 0;
  uint32_t stored = 0;  // nothing to rely on: writers of streams and of ZIP64 leave it open
};

// The place of the end record in `tail`, the last bytes of a file: the last one whose comment ends with them.
std::optional<size_t> find_zip_end(Bytes tail);
ZipEnd parse_zip_end(Bytes record);                         // kZipEndBytes
std::optional<uint64_t> parse_zip64_locator(Bytes record);  // where the ZIP64 end record is
std::optional<ZipEnd> parse_zip64_end(Bytes record);        // kZip64EndBytes
Result<ZipLocal> parse_zip_local(Bytes record);             // kZipLocalBytes
// The entry at the front of `directory`, which is moved behind it.
Result<ZipEntry> take_zip_entry(Bytes& directory);

// Writing. Times are 1980-01-01, so that equal data give equal bytes; files are read-only for all.
struct ZipWritten {
  std::string_view name;
  ZipMethod method = ZipMethod::store;
  uint32_t crc32 = 0;
  uint64_t stored = 0, raw = 0, local_offset = 0;
  // 0, or the length of the local header's extra field, kZipLeastRoom at least: padding fills what sizes
  // leave, so that the place of the data is known before their number.
  uint16_t local_room = 0;
};
inline constexpr uint16_t kZipLeastRoom = 24;
size_t zip_local_bytes(const ZipWritten& entry);
size_t zip_central_bytes(const ZipWritten& entry);
size_t zip_end_bytes(uint64_t entries, uint64_t directory_offset, uint64_t directory_bytes);
// Each writes as many bytes as its namesake says.
void write_zip_local(const ZipWritten& entry, std::byte* out);
void write_zip_central(const ZipWritten& entry, std::byte* out);
void write_zip_end(uint64_t entries, uint64_t directory_offset, uint64_t directory_bytes, std::byte* out);

}  // namespace packtrain
