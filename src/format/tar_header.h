// One 512-byte header of a tar archive: parsing every dialect, writing one.
//
//   offset  0 name[100]  100 mode[8]  108 uid[8]  116 gid[8]  124 size[12]  136 mtime[12]  148 checksum[8]
//         156 type  157 link name[100]  257 "ustar\0" "00" (GNU: "ustar  \0")  265 uname[32]  297 gname[32]
//         329 device numbers[16]  345 prefix[155]
//
// Numbers are octal digits, or base-256 if the first byte has its high bit set. The checksum is the sum of
// all bytes of the header with its own field taken as blanks; some old writers summed signed bytes.
// Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "packtrain/status.h"

namespace packtrain {

inline constexpr uint64_t kTarBlock = 512;
inline constexpr size_t kTarNameBytes = 100;

// The bytes from the end of `size` bytes of data to the next block.
inline uint64_t tar_padding(uint64_t size) { return (kTarBlock - size % kTarBlock) % kTarBlock; }

// What a member is, as far as a reader of regular files cares.
enum class TarKind : uint8_t {
  regular,
  without_data,  // folders, links, devices: nothing follows the header, whatever its size says
  pax,           // records about the next member
  pax_global,    // records about all that follow
  long_name,     // GNU: the next member's name
  long_link,     // GNU: the next member's link target
  sparse,
  other_volume,  // the rest of a member that began in another file
};

struct TarHeader {
  // Views into the block.
  std::string_view prefix, name;  // the full name is prefix + '/' + name, or the name if there is no prefix
  TarKind kind = TarKind::regular;
  bool is_link = false;  // without data, because another member or file has them: a hard or symbolic link
  uint64_t size = 0;     // of the data that follow
};

bool is_zero(Bytes bytes);
// Whether the block's checksum is right: a header, almost surely. False for a block of zeros.
bool is_tar_header(Bytes block);
// `block` holds kTarBlock bytes. Code::corrupt says which rule it breaks.
Result<TarHeader> parse_tar_header(Bytes block);

// The records of a pax header that matter here. Strings keep their memory when cleared.
struct PaxRecords {
  std::string path;  // empty: not given
  std::optional<uint64_t> size;
  bool sparse = false;
  void clear();
};
// Adds what `data`, lines of "LENGTH KEY=VALUE\n", says; unknown keys are ignored.
Status parse_pax(Bytes data, PaxRecords& records);

// The writer's profile: ustar, a regular file, no owner, no time. The name fits into kTarNameBytes.
void write_tar_header(std::string_view name, uint64_t size, MutableBytes block);

}  // namespace packtrain
