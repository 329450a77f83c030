// A stretch of a file, front to back, with reads in flight ahead of the caller.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// One thread at a time; `storage` and `file` must outlive it. Starts with small pieces, so that what comes
// from memory is still in the processor's cache when it is handed out; once a read makes it wait, it goes
// over to large ones that hide the latency of a disk or network. Holds 256 KiB, or 4 MiB then.
class SequentialReader {
 public:
  SequentialReader(Storage& storage, const File& file, uint64_t begin, uint64_t end);

  // The next bytes, valid until the next call; empty at the end.
  Result<Bytes> next();

 private:
  struct Piece {
    Read read;
    std::vector<std::byte> bytes;
    bool done = false;
  };
  void fill();
  void wait_for(Piece& piece);

  const File& file_;
  const uint64_t end_;
  uint64_t next_offset_;  // of the next read to submit
  uint64_t piece_bytes_;
  size_t depth_;
  // In the order of the file, the front one handed out next. They outlive reads_, which waits for them.
  std::deque<std::unique_ptr<Piece>> in_flight_;
  std::unique_ptr<Piece> given_;
  std::unique_ptr<Reads> reads_;
};

}  // namespace packtrain
