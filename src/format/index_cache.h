// Where the indexes of bare containers are kept: $XDG_CACHE_HOME/packtrain or ~/.cache/packtrain.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "packtrain/format.h"

namespace packtrain {

// The folder that keeps the index of these containers as they are now: its name is a hash of their absolute
// paths, sizes, times and inodes, so a container that changed has another. Nothing if there is no home for
// it.
Result<std::optional<std::string>> cache_folder(Storage& storage, std::span<const std::string> containers);

// Held while an index is made, so that one process of a node makes it and the others wait. Only a help: where
// locks do not work, several make the same index and the last one's is kept. Released by the destructor, and
// by the kernel if the process dies.
class CacheLock {
 public:
  // Waits for the holder as long as `progress` lets it. Code::stopped if it does not.
  static Result<CacheLock> take(const std::string& cached_folder, const Progress& progress);
  ~CacheLock();
  CacheLock(CacheLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  CacheLock& operator=(CacheLock&&) = delete;

 private:
  explicit CacheLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;  // -1: locks do not work here
};

}  // namespace packtrain
