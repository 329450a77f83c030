#include "io/grant.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

namespace packtrain {
namespace {

// Empty if it cannot be read: a limit that is not there does not limit.
std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

std::optional<uint64_t> to_number(std::string_view word) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || word.empty()) return std::nullopt;
  return value;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> found;
  for (std::string word; stream >> word;) found.push_back(std::move(word));
  return found;
}

std::optional<uint64_t> number_in(const std::string& path) {
  const std::vector<std::string> found = words(read_text(path));
  return found.size() == 1 ? to_number(found[0]) : std::nullopt;
}

// The number behind a name in files such as meminfo ("MemTotal:  123 kB") and memory.stat ("inactive_file
// 123").
std::optional<uint64_t> number_after(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> found = words(line);
    if (found.size() >= 2 && found[0] == name) return to_number(found[1]);
  }
  return std::nullopt;
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// A hierarchy of control groups and where in it this process is.
struct Hierarchy {
  std::string root;  // a folder
  std::string path;  // "/job_7/step_0"
  bool version2 = false;
};

// Calls `look` for the process' group and each above it, up to the root. In a container the path may name
// groups that are outside of what is mounted; those above them are there, the root at least.
void for_each_ancestor(const Hierarchy& hierarchy,
                       const std::function<void(const std::string& folder, const std::string& group)>& look) {
  std::string group = hierarchy.path;
  while (!group.empty() && group.back() == '/') group.pop_back();
  for (;;) {
    look(hierarchy.root + group, group.empty() ? "/" : group);
    if (group.empty()) return;
    group.resize(std::min(group.rfind('/'), group.size()));
  }
}

// The hierarchies that hold `controller`, from lines such as "4:cpu,cpuacct:/job" and "0::/job".
std::vector<Hierarchy> hierarchies_of(const GrantSources& sources, std::string_view controller) {
  std::vector<Hierarchy> found;
  std::istringstream lines(read_text(sources.proc + "/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || second + 1 >= line.size() || line[second + 1] != '/') continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    Hierarchy hierarchy{"", line.substr(second + 1), controllers.empty() && line.substr(0, first) == "0"};
    if (hierarchy.version2) {
      const bool alone = exists(sources.cgroup + "/cgroup.controllers");
      hierarchy.root = alone ? sources.cgroup : sources.cgroup + "/unified";
    } else if (("," + controllers + ",").find("," + std::string(controller) + ",") != std::string::npos) {
      // Mounted under all its controllers' names, or a link of one of them.
      hierarchy.root = sources.cgroup + "/" + controllers;
      if (!exists(hierarchy.root)) hierarchy.root = sources.cgroup + "/" + std::string(controller);
    } else {
      continue;
    }
    found.push_back(std::move(hierarchy));
  }
  return found;
}

struct Limit {
  double value;
  std::string from;
};

// CPUs that a group's quota amounts to: microseconds of CPU time in each period.
std::optional<Limit> cpu_quota(const std::string& folder, const std::string& group, bool version2) {
  std::optional<uint64_t> quota, period;
  if (version2) {
    const std::vector<std::string> found = words(read_text(folder + "/cpu.max"));
    if (found.size() != 2) return std::nullopt;
    quota = to_number(found[0]);  // none for "max"
    period = to_number(found[1]);
  } else {
    quota = number_in(folder + "/cpu.cfs_quota_us");  // none for -1
    period = number_in(folder + "/cpu.cfs_period_us");
  }
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return Limit{static_cast<double>(*quota) / static_cast<double>(*period),
               std::string("cgroup ") + (version2 ? "cpu.max" : "cpu.cfs_quota_us") + " of " + group};
}

struct MemoryLimit {
  uint64_t bytes, left, most;
  std::string from;
};

std::optional<MemoryLimit> memory_limit(const std::string& folder, const std::string& group, bool version2) {
  const char* file = version2 ? "memory.max" : "memory.limit_in_bytes";
  const std::optional<uint64_t> limit = number_in(folder + "/" + file);
  if (!limit) return std::nullopt;
  const uint64_t used =
      number_in(folder + (version2 ? "/memory.current" : "/memory.usage_in_bytes")).value_or(0);
  // Cached file pages that nobody touched lately count as used, but make way when memory is asked for; so do
  // the others in the end, and what the kernel keeps of names.
  const std::string stat = read_text(folder + "/memory.stat");
  const auto of = [&](std::string_view name) { return number_after(stat, name).value_or(0); };
  const uint64_t idle = of(version2 ? "inactive_file" : "total_inactive_file");
  const uint64_t busy = of(version2 ? "active_file" : "total_active_file") + of("slab_reclaimable");
  const auto without = [&](uint64_t cached) {
    const uint64_t held = used - std::min(used, cached);
    return *limit > held ? *limit - held : 0;
  };
  return MemoryLimit{*limit, without(idle), without(idle + busy),
                     std::string("cgroup ") + file + " of " + group};
}

void grant_cores(const GrantSources& sources, Grant& grant) {
  grant.machine_cores = std::max<uint32_t>(sources.machine_cores, 1);
  grant.cores = grant.machine_cores;
  grant.cores_from = "the machine";
  if (sources.affinity > 0 && sources.affinity < grant.cores) {
    grant.cores = sources.affinity;
    grant.cores_from = "affinity";
  }
  for (const Hierarchy& hierarchy : hierarchies_of(sources, "cpu")) {
    for_each_ancestor(hierarchy, [&](const std::string& folder, const std::string& group) {
      const std::optional<Limit> quota = cpu_quota(folder, group, hierarchy.version2);
      if (!quota || quota->value > static_cast<double>(grant.cores)) return;
      // A part of a core still is one to run on.
      const auto cores = static_cast<uint32_t>(quota->value);
      const uint32_t whole = std::max<uint32_t>(cores < quota->value ? cores + 1 : cores, 1);
      if (whole >= grant.cores) return;
      grant.cores = whole;
      grant.cores_from = quota->from;
    });
  }
}

void grant_memory(const GrantSources& sources, Grant& grant) {
  const std::string meminfo = read_text(sources.proc + "/meminfo");
  const auto kilobytes = [&](std::string_view name) {
    return number_after(meminfo, name).value_or(0) * 1024;
  };
  grant.memory = kilobytes("MemTotal:");
  grant.memory_available = kilobytes("MemAvailable:");
  grant.memory_most =
      grant.memory_available;  // which counts the page cache, but for what the kernel must keep
  grant.memory_from = "the machine";
  for (const Hierarchy& hierarchy : hierarchies_of(sources, "memory")) {
    for_each_ancestor(hierarchy, [&](const std::string& folder, const std::string& group) {
      const std::optional<MemoryLimit> limit = memory_limit(folder, group, hierarchy.version2);
      // Version 1 says "none" by a number larger than any machine.
      if (!limit || (grant.memory > 0 && limit->bytes >= grant.memory &&
                     limit->left >= grant.memory_available && limit->most >= grant.memory_most))
        return;
      if (grant.memory == 0 || limit->bytes < grant.memory) {
        if (grant.memory == 0) {
          grant.memory_available = limit->left;
          grant.memory_most = limit->most;
        }
        grant.memory = limit->bytes;
        grant.memory_from = limit->from;
      }
      grant.memory_available = std::min(grant.memory_available, limit->left);
      grant.memory_most = std::min(grant.memory_most, limit->most);
    });
  }
}

}  // namespace

uint32_t affinity_cores() {
  // The kernel says EINVAL to a mask shorter than its own; a machine may have more than the 1024 CPUs of
  // cpu_set_t.
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) return 0;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const bool got = ::sched_getaffinity(0, bytes, set) == 0;
    const int error = errno;
    const int count = got ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (got) return static_cast<uint32_t>(count);
    if (error != EINVAL) return 0;
  }
  return 0;
}

Grant granted_from(const GrantSources& sources) {
  Grant grant;
  grant_cores(sources, grant);
  grant_memory(sources, grant);
  return grant;
}

Grant granted() {
  GrantSources sources;
  sources.affinity = affinity_cores();
  sources.machine_cores = static_cast<uint32_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  return granted_from(sources);
}

}  // namespace packtrain
