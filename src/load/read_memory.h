// ReadMemory: where what is read ahead lies until it is decoded.
#pragma once

#include <cstdint>
#include <vector>

#include "packtrain/status.h"

namespace packtrain {

// One region of a fixed size, handed out in stretches, the lowest that is free first. So memory is bounded by
// construction, in whichever sizes reads come, and in steady state neither the heap nor the kernel is asked
// for any: what was touched once stays. One thread at a time.
class ReadMemory {
 public:
  explicit ReadMemory(uint64_t bytes);
  ~ReadMemory();
  ReadMemory(const ReadMemory&) = delete;
  ReadMemory& operator=(const ReadMemory&) = delete;

  Status map();  // before anything is taken; no_room if there is not so much address space
  // A stretch on a 64-byte boundary; none if no room of that size is free.
  MutableBytes take(uint64_t bytes);
  void give_back(MutableBytes stretch);
  // So that give_back() never allocates, with so many stretches taken.
  void expect(size_t stretches) { holes_.reserve(stretches + 1); }

  uint64_t size() const { return size_; }
  uint64_t in_use() const { return in_use_; }
  uint64_t touched() const { return touched_; }  // the most that was ever in use from the front

 private:
  struct Hole {
    uint64_t begin, end;
  };
  const uint64_t size_;
  std::byte* region_ = nullptr;
  std::vector<Hole> holes_;  // by address; no two of them meet
  uint64_t in_use_ = 0, touched_ = 0;
  uint64_t too_much_ = UINT64_MAX;  // what no hole is large enough for, since the last stretch came back
};

}  // namespace packtrain
