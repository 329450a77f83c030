// A stretch of a file, front to back, with reads in flight ahead of the caller.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// One thread at a time; `storage` and `file` must outlive it. Holds 2 MiB: few enough bytes that a piece is
// still in the processor's cache when it is handed out, enough in flight to hide a network's latency.
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
  void submit(Piece& piece);

  const File& file_;
  const uint64_t end_;
  uint64_t next_offset_;  // of the next read to submit
  uint64_t given_ = 0;    // pieces handed out
  uint64_t submitted_ = 0;
  std::vector<Piece> pieces_;  // a ring; before reads_, which must be gone first
  std::unique_ptr<Reads> reads_;
};

}  // namespace packtrain
