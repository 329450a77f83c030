// The checks of a shard's 4 MiB blocks, put together from stretches that different threads wrote.
#pragma once

#include <cstdint>
#include <vector>

#include "packtrain/status.h"

namespace packtrain {

// The check of one stretch that lies in one block.
struct BlockPiece {
  uint64_t offset = 0, bytes = 0;
  uint32_t check = 0;
};

// Goes over a contiguous stretch of a shard front to back and makes a piece for each block it touches. Bytes
// whose check is known already are joined in without being read again. One thread at a time.
class BlockPieces {
 public:
  explicit BlockPieces(uint64_t offset) : at_(offset), start_(offset) {}
  void add(Bytes data);
  void add_known(uint32_t check, Bytes data);  // `check` is crc32c(data)
  std::vector<BlockPiece> finish();

 private:
  void cut();
  uint64_t at_, start_;
  uint32_t running_ = 0;
  std::vector<BlockPiece> pieces_;
};

// The checks of all blocks of a shard of `bytes`, from pieces in any order that cover it without overlap.
std::vector<uint32_t> join_blocks(std::vector<BlockPiece> pieces, uint64_t bytes);

}  // namespace packtrain
