#include "packtrain/place.h"

#include <limits.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "io/mounts.h"
#include "io/posix_file.h"
#include "io/posix_paths.h"

namespace packtrain {
namespace {

constexpr KnownFilesystem kFilesystems[] = {
    {0xEF53, "ext4", PlaceKind::local},  // ext2 and ext3 share the number
    {0x58465342, "xfs", PlaceKind::local},
    {0x9123683E, "btrfs", PlaceKind::local},
    {0x2FC12FC1, "zfs", PlaceKind::local},
    {0xF2F52010, "f2fs", PlaceKind::local},
    {0xCA451A4E, "bcachefs", PlaceKind::local},
    {0x3153464A, "jfs", PlaceKind::local},
    {0x52654973, "reiserfs", PlaceKind::local},
    {0x5346544E, "ntfs", PlaceKind::local},
    {0x7366746E, "ntfs3", PlaceKind::local},
    {0x2011BAB0, "exfat", PlaceKind::local},
    {0x4D44, "vfat", PlaceKind::local},
    {0x794C7630, "overlay", PlaceKind::local},
    {0x61756673, "aufs", PlaceKind::local},
    {0x73717368, "squashfs", PlaceKind::local},
    {0xE0F5E1E2, "erofs", PlaceKind::local},
    {0x9660, "iso9660", PlaceKind::local},
    {0x01021994, "tmpfs", PlaceKind::memory},
    {0x858458F6, "ramfs", PlaceKind::memory},
    {0x958458F6, "hugetlbfs", PlaceKind::memory},
    {0x6969, "nfs", PlaceKind::network},
    {0x0BD00BD0, "lustre", PlaceKind::network},
    {0x47504653, "gpfs", PlaceKind::network},
    {0x19830326, "beegfs", PlaceKind::network},
    {0x00C36400, "ceph", PlaceKind::network},
    {0xFF534D42, "cifs", PlaceKind::network},
    {0xFE534D42, "smb3", PlaceKind::network},
    {0x517B, "smbfs", PlaceKind::network},
    {0x01021997, "9p", PlaceKind::network},
    {0x5346414F, "afs", PlaceKind::network},
    {0x6B414653, "kafs", PlaceKind::network},
    {0x73757245, "coda", PlaceKind::network},
    {0xAAD7AAEA, "panfs", PlaceKind::network},
    {0x20030528, "orangefs", PlaceKind::network},
    {0x7461636F, "ocfs2", PlaceKind::network},
    {0x01161970, "gfs2", PlaceKind::network},
    {0x786F4256, "vboxsf", PlaceKind::network},
    {0xBACBACBC, "vmhgfs", PlaceKind::network},
    {0x65735546, "fuse", PlaceKind::fuse},
    // Modules outside the kernel whose numbers are not published, or differ between versions.
    {0, "wekafs", PlaceKind::network},
    {0, "dvs", PlaceKind::network},
    {0, "pvfs2", PlaceKind::network},
};

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// Spaces, tabs, line ends and backslashes stand as \040 and so on.
std::string unescape(std::string_view field) {
  std::string text;
  for (size_t at = 0; at < field.size(); ++at) {
    const auto digit = [&](size_t i) { return i < field.size() && field[i] >= '0' && field[i] <= '7'; };
    if (field[at] == '\\' && digit(at + 1) && digit(at + 2) && digit(at + 3)) {
      text.push_back(
          static_cast<char>((field[at + 1] - '0') * 64 + (field[at + 2] - '0') * 8 + (field[at + 3] - '0')));
      at += 3;
    } else {
      text.push_back(field[at]);
    }
  }
  return text;
}

bool lies_on(std::string_view path, std::string_view point) {
  if (!starts_with(path, point)) return false;
  return point == "/" || path.size() == point.size() || path[point.size()] == '/';
}

std::string read_mountinfo() {
  std::ifstream file("/proc/self/mountinfo");
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

}  // namespace

std::string_view place_kind_name(PlaceKind kind) {
  switch (kind) {
    case PlaceKind::memory:
      return "memory";
    case PlaceKind::local:
      return "local";
    case PlaceKind::network:
      return "network";
    case PlaceKind::fuse:
      return "fuse";
    case PlaceKind::unknown:
      break;
  }
  return "unknown";
}

const KnownFilesystem* known_filesystem(uint64_t magic) {
  for (const KnownFilesystem& known : kFilesystems)
    if (known.magic != 0 && known.magic == magic) return &known;
  return nullptr;
}

const KnownFilesystem* known_filesystem(std::string_view name) {
  for (const KnownFilesystem& known : kFilesystems)
    if (known.name == name) return &known;
  return nullptr;
}

PlaceKind filesystem_kind(uint64_t magic, std::string_view name) {
  if (const KnownFilesystem* known = known_filesystem(magic)) return known->kind;
  if (const KnownFilesystem* known = known_filesystem(name)) return known->kind;
  return starts_with(name, "fuse.") ? PlaceKind::fuse : PlaceKind::unknown;
}

// A line: id parent major:minor root point options [tags…] - type source super-options
std::optional<Mount> find_mount(std::string_view mountinfo, std::string_view path) {
  std::optional<Mount> best;
  while (!mountinfo.empty()) {
    const size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    std::istringstream line{std::string(mountinfo.substr(0, end))};
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    std::string word, point, type;
    for (int field = 0; field < 5 && line >> word; ++field) point = word;
    while (line >> word && word != "-") {
    }
    if (!(line >> type)) continue;
    point = unescape(point);
    // Of two mounts on one point the later hides the earlier.
    if (lies_on(path, point) && (!best || point.size() >= best->point.size())) best = Mount{point, type};
  }
  return best;
}

Result<Place> place_of(std::string_view path) {
  PACKTRAIN_ASSIGN(name, kernel_path(path));
  if (name.empty()) name = ".";
  char real[PATH_MAX];
  // What does not exist yet will be made in the nearest folder that does.
  while (::realpath(name.c_str(), real) == nullptr) {
    const std::string parent = folder_of(name);
    if ((errno != ENOENT && errno != ENOTDIR) || parent == name)
      return path_error(errno, "cannot look at", path);
    name = parent;
  }
  struct statfs type;
  struct statvfs room;
  if (::statfs(real, &type) != 0 || ::statvfs(real, &room) != 0)
    return path_error(errno, "cannot ask its filesystem", path);

  Place place;
  // Some systems keep f_type in a signed word: compare what it holds, not what it means.
  const uint64_t magic = static_cast<uint32_t>(type.f_type);
  if (std::optional<Mount> mount = find_mount(read_mountinfo(), real)) {
    place.filesystem = mount->type;
    place.mount = mount->point;
  } else if (const KnownFilesystem* known = known_filesystem(magic)) {
    place.filesystem = known->name;
  }
  place.kind = filesystem_kind(magic, place.filesystem);
  place.bytes_total = uint64_t{room.f_blocks} * room.f_frsize;
  place.bytes_free = uint64_t{room.f_bavail} * room.f_frsize;
  place.inodes_total = room.f_files;
  place.inodes_free = room.f_favail;
  place.read_only = (room.f_flag & ST_RDONLY) != 0;
  return place;
}

}  // namespace packtrain
