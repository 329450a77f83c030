// Appender: an object whose size is known only at the end, written front to back through a buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// Grows the object by need and cuts it at the end. Without commit() nothing is left. One thread at a time;
// 4 MiB of memory.
class Appender {
 public:
  // `size`: what the object was created with. The bytes before `start` are left for overwrite().
  Appender(std::unique_ptr<Writer> writer, uint64_t size, uint64_t start = 0);
  ~Appender();
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;

  uint64_t position() const { return written_ + buffer_.size(); }  // where the next byte goes
  Status append(Bytes data);
  Status append_zeros(uint64_t bytes);
  // Bytes that were appended, or left out at the start, become these.
  Status overwrite(uint64_t offset, Bytes data);
  // Hands out all that was appended and gives the object its final size; nothing is appended afterwards.
  Status settle();
  Status commit();

 private:
  Status flush();
  Status write(Bytes data);

  std::unique_ptr<Writer> writer_;
  uint64_t size_;     // of the object as it is now
  uint64_t written_;  // bytes handed to writer_; the rest is in buffer_
  std::vector<std::byte> buffer_;
  bool committed_ = false;
};

}  // namespace packtrain
