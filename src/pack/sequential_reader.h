// Stretches of files, front to back, as fast as memory or the disk behind it gives them.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

class CachedView;

// One thread at a time; `storage` must outlive it, and a file the stretch of it.
//
// Reads directly into one small buffer, so that what comes from memory is still in the processor's cache when
// it is handed out and no other thread takes part. Once reads make it wait, it goes over to large ones in
// flight ahead of the caller, which hide the latency of a disk or network. What it learned holds for the next
// stretch: use one for many. Holds 256 KiB, and 4 MiB more after it had to wait. One that may look at what is
// in memory maps a stretch of a megabyte or more instead, if all of it is there.
class SequentialReader {
 public:
  // `looks`: what is in memory is looked at where it is, and not copied first. Only for who looks at each
  // byte once, or does not mind that others may change it in between.
  explicit SequentialReader(Storage& storage, bool looks = false);
  ~SequentialReader();

  // Goes to bytes [begin, end) of `file`; what is left of the last stretch is dropped.
  void start(const File& file, uint64_t begin, uint64_t end);
  // The next bytes, valid until the next call; empty at the end.
  Result<Bytes> next();

  bool reads_ahead() const { return ahead_; }

 private:
  struct Piece {
    Read read;
    std::vector<std::byte> bytes;
    bool done = false;
  };
  Result<Bytes> next_in_view();
  Result<Bytes> next_directly();
  Result<Bytes> next_of_those_ahead();
  void fill();
  void wait_for(Piece& piece);
  void note_wait(std::chrono::steady_clock::duration waited);
  void give_back(std::unique_ptr<Piece> piece);

  Storage& storage_;
  const bool looks_;
  std::unique_ptr<CachedView> view_;  // of what is left of the stretch, if all of that is in memory
  size_t seen_ = 0;                   // bytes of it
  const File* file_ = nullptr;
  uint64_t next_offset_ = 0, end_ = 0;  // of the next read
  bool ahead_ = false;
  uint8_t slow_waits_ = 0;         // a bit for each of the last waits, set if it was slow
  std::vector<std::byte> buffer_;  // of direct reads
  std::deque<std::unique_ptr<Piece>> in_flight_;
  std::vector<std::unique_ptr<Piece>> spare_;
  std::unique_ptr<Piece> given_;  // what the caller looks at
  std::unique_ptr<Reads> reads_;  // destroyed first: it waits for what is in flight
};

}  // namespace packtrain
