// Window: a file seen through one buffer that moves forward, for parsers that hop from header to header.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// Decides by itself between two ways of reading: small reads that skip what lies between the headers, and
// large ones that read through it. Skipping `gap` bytes pays if reading them would take longer than one
// more read does; what a read costs is measured on the way, so that storage with a long latency is read
// through in large pieces and a warm page cache is not. One thread at a time; at most 4 MiB of memory.
class Window {
 public:
  Window(Storage& storage, const File& file) : storage_(storage), file_(file), size_(file.size()) {}

  uint64_t size() const { return size_; }  // of the file
  // `bytes` bytes from `offset`, which lie within the file; valid until the next call.
  Result<Bytes> at(uint64_t offset, size_t bytes) {
    if (offset >= start_ && offset + bytes <= start_ + held_) {
      return Bytes(buffer_).subspan(offset - start_, bytes);
    }
    return load(offset, bytes);
  }

 private:
  Result<Bytes> load(uint64_t offset, size_t bytes);
  size_t next_size(uint64_t offset);

  Storage& storage_;
  const File& file_;
  const uint64_t size_;
  std::vector<std::byte> buffer_;
  uint64_t start_ = 0;
  size_t held_ = 0;
  size_t wanted_ = 0;         // bytes of the next window; 0 before the first
  uint64_t loads_ = 0;        // windows read so far
  double read_seconds_ = -1;  // what a small read costs; -1: not measured yet
};

}  // namespace packtrain
