#include "format/index_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "format/index_containers.h"

namespace packtrain {
namespace {

constexpr std::chrono::milliseconds kLookAgain{50};

std::optional<std::string> cache_home() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value ? value : "");
  };
  // The specification of XDG_CACHE_HOME asks to ignore relative paths.
  if (auto cache = variable("XDG_CACHE_HOME"); cache.starts_with('/'))
    return std::string(cache) + "/packtrain";
  if (auto home = variable("HOME"); home.starts_with('/')) return std::string(home) + "/.cache/packtrain";
  return std::nullopt;
}

// Size, time and identity of a container, by which a changed one is told. Those of a folder are its files';
// what lies deeper is compared when it is read.
Status add_facts(Storage& storage, const std::string& path, bool within, Xxh128& hash) {
  PACKTRAIN_ASSIGN(info, storage.stat(path));
  const uint64_t facts[] = {info.size, static_cast<uint64_t>(info.mtime_ns), info.inode};
  hash.add(std::as_bytes(std::span(facts)));
  if (info.kind != FileKind::folder || within) return {};
  std::vector<std::string> names;
  PACKTRAIN_TRY(storage.list(path, [&](FolderEntry&& entry) {
    names.push_back(std::move(entry.name));
    return true;
  }));
  std::sort(names.begin(), names.end());
  std::string below = path + "/";
  for (const std::string& name : names) {
    hash.add(as_bytes(name));
    below.resize(path.size() + 1);
    below += name;
    PACKTRAIN_TRY(add_facts(storage, below, true, hash));
  }
  return {};
}

}  // namespace

Result<std::optional<std::string>> cache_folder(Storage& storage, std::span<const std::string> containers) {
  Xxh128 hash;
  hash.add(as_bytes("packtrain index cache 3"));
  for (const std::string& container : containers) {
    const std::string path = absolute_path(container);
    const uint64_t length[] = {path.size()};
    hash.add(std::as_bytes(std::span(length)));
    hash.add(as_bytes(path));
    PACKTRAIN_TRY(add_facts(storage, container, false, hash));
  }
  auto home = cache_home();
  if (!home) return std::optional<std::string>();
  return std::optional<std::string>(*home + "/" + hash.hex());
}

Result<CacheLock> CacheLock::take(const std::string& cached_folder, const Progress& progress) {
  std::string path = cached_folder + ".lock";
  int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return CacheLock(-1);
  CacheLock lock(descriptor);
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return CacheLock(-1);
    if (progress && !progress({.phase = "wait for another process to index", .unit = "containers"})) {
      return Status(Code::stopped, "stopped while waiting for another process to index");
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  return lock;
}

CacheLock::~CacheLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace packtrain
