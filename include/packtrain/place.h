// Place: what a path lies on, and what this process was granted. Judged by statfs type, affinity and
// cgroups, never by names or by what the machine has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "packtrain/status.h"

namespace packtrain {

enum class PlaceKind : uint8_t {
  memory,
  local,
  network,
  fuse,
  unknown
};  // fuse: a user-space filesystem; judged like network
std::string_view place_kind_name(PlaceKind kind);

struct Place {
  PlaceKind kind = PlaceKind::unknown;
  std::string filesystem;                      // "ext4", "lustre", "nfs4", "tmpfs", …
  std::string mount;                           // where it is mounted
  uint64_t bytes_total = 0, bytes_free = 0;    // free: for this user
  uint64_t inodes_total = 0, inodes_free = 0;  // 0 of 0: the filesystem does not count them
  bool read_only = false;
  bool far() const {
    return kind == PlaceKind::network || kind == PlaceKind::fuse || kind == PlaceKind::unknown;
  }
};

// Of the nearest existing folder at or above `path`.
Result<Place> place_of(std::string_view path);

struct Grant {
  uint32_t cores = 1;  // by affinity and every cgroup ancestor's CPU quota, at least 1
  uint32_t machine_cores = 1;
  uint64_t memory = 0;                  // the least of the machine's and every cgroup ancestor's limit
  uint64_t memory_available = 0;        // what of it is left now
  uint64_t memory_most = 0;             // what could be had now, if all of the page cache made way
  std::string cores_from, memory_from;  // in words: "affinity", "cgroup cpu.max of /job_7"
};
Grant granted();

}  // namespace packtrain
