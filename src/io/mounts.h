// What a path is mounted on: the table of filesystems, and the kernel's list of mounts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "packtrain/place.h"

namespace packtrain {

struct KnownFilesystem {
  uint64_t magic;         // f_type of statfs; 0: known by name alone
  std::string_view name;  // as mountinfo has it
  PlaceKind kind;
};
// Null if it is not in the table.
const KnownFilesystem* known_filesystem(uint64_t magic);
const KnownFilesystem* known_filesystem(std::string_view name);
// By magic number first; names decide for filesystems that the table knows by name alone.
PlaceKind filesystem_kind(uint64_t magic, std::string_view name);

struct Mount {
  std::string point;
  std::string type;  // "ext4", "nfs4", "fuse.sshfs"
};
// The mount that an absolute path without symlinks lies on, from the text of /proc/self/mountinfo; lines that
// make no sense are passed over.
std::optional<Mount> find_mount(std::string_view mountinfo, std::string_view path);

}  // namespace packtrain
