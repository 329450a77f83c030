// Fetcher: the bytes of a planned field, from wherever they are now.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "index/decoded_blocks.h"
#include "pack/block_spool.h"
#include "pack/memory_gate.h"
#include "pack/piece_files.h"
#include "pack/plan.h"
#include "pack/stream_spool.h"
#include "packtrain/storage.h"

namespace packtrain {

// Reads what the plan names and compares it with what the plan expects: a file that vanished, grew, shrank or
// was written to since the scan is an error that says so. Thread-safe. The plan must outlive it.
class Fetcher {
 public:
  Fetcher(Storage& storage, const Plan& plan);

  // Where cells of Origin::stream are; without it they cannot be fetched. Before the first thread starts.
  void use(const StreamSpool* spool) { spool_ = spool; }
  // Where pieces of compressed blocks are, if they were decoded beforehand. Before the first thread starts.
  void use(const BlockSpool* spool) { block_spool_ = spool; }

  // Fills `into`, which has the cell's size.
  Status fetch(const Cell& cell, MutableBytes into);
  // The first bytes of the cell, as many as fit into `into`. What lies compressed in a container is read
  // whole.
  Status fetch_head(const Cell& cell, MutableBytes into);
  // All of it in pieces of at most `piece_bytes`, in order, for what should not be in memory whole.
  Status fetch_pieces(const Cell& cell, size_t piece_bytes, const std::function<Status(Bytes)>& each);

  // The block that a piece is a slice of, decoded and checked.
  Status decode_block(const Piece& piece, std::vector<std::byte>& raw);

  // Where the cell's bytes are, for messages and for opening.
  std::string source_path(const Cell& cell) const;

 private:
  Result<std::unique_ptr<File>> open_file(const Cell& cell);
  Status read_block(const Piece& piece, MutableBytes raw);
  Status fetch_piece(uint64_t number, MutableBytes into);

  Storage& storage_;
  const Plan& plan_;
  const StreamSpool* spool_ = nullptr;
  const BlockSpool* block_spool_ = nullptr;
  DecodedBlocks<std::pair<uint32_t, uint64_t>> decoded_;  // by file and offset
  MemoryGate gate_;                                       // what is decoded whole
  PieceFiles piece_files_;
};

}  // namespace packtrain
