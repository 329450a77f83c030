// Memory that is made once and used again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "packtrain/status.h"

namespace packtrain {

struct FreeAligned {
  std::align_val_t alignment{1};
  void operator()(std::byte* data) const { ::operator delete(data, alignment); }
};

// Bytes on a 64-byte boundary that grow without being cleared; large ones in huge pages where the system has
// them, as the first touch of ten thousand small pages costs as much as decoding ten images. One thread at a
// time.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::move(other.data_)), capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }
  MutableBytes take(size_t bytes);  // what was in it is lost if it has to grow
  size_t capacity() const { return capacity_; }

 private:
  std::unique_ptr<std::byte, FreeAligned> data_;
  size_t capacity_ = 0;
};

// Who says how much memory there may be. Thread-safe.
class MemoryAccount {
 public:
  virtual ~MemoryAccount() = default;
  virtual Status claim(uint64_t bytes) = 0;  // no_room if that is too much
  virtual void grown(uint64_t before, uint64_t after) = 0;
};

}  // namespace packtrain
