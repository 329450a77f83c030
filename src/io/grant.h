// Where granted() looks, so that tests can show it another machine.
#pragma once

#include <cstdint>
#include <string>

#include "packtrain/place.h"

namespace packtrain {

struct GrantSources {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
  uint32_t affinity = 0;  // CPUs this process may run on
  uint32_t machine_cores = 1;
};
Grant granted_from(const GrantSources& sources);

// CPUs in this process' affinity mask, on machines of any size; 0 if the kernel does not say.
uint32_t affinity_cores();

}  // namespace packtrain
