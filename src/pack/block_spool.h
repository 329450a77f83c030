// BlockSpool: samples that share compressed blocks of a container, decoded once and then there in any order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pack/plan.h"
#include "pack/written_fields.h"
#include "packtrain/progress.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// What is to be spooled for these shards, if that pays: where samples come in another order than they lie in
// the container, a block would be decoded again for nearly each of them. A plain value.
struct BlocksToSpool {
  std::vector<uint64_t> pieces;  // of the plan, by block
  uint64_t bytes = 0;            // of all of them
};
inline constexpr uint64_t kDecodedForNothing = uint64_t{256}
                                               << 20;  // bytes that may be decoded once too often
BlocksToSpool blocks_to_spool(const Plan& plan, const std::vector<uint32_t>& shards,
                              const WrittenFields& fields, uint64_t for_nothing = kDecodedForNothing);

// One temporary object in OUT.part (blocks.tmp-TOKEN), as StreamSpool has one for archives. Immutable once
// made; thread-safe. Memory: 8 bytes for each piece of the plan; a block for each thread while it is made.
class BlockSpool {
 public:
  static Result<std::unique_ptr<BlockSpool>> make(Storage& storage, const Plan& plan,
                                                  const BlocksToSpool& wanted, const std::string& folder,
                                                  const std::string& token, uint32_t threads,
                                                  const Progress& progress);
  ~BlockSpool();
  BlockSpool(const BlockSpool&) = delete;
  BlockSpool& operator=(const BlockSpool&) = delete;

  // Pieces of blocks that could not be decoded are not in it: whoever reads those will see why.
  bool has(uint64_t piece) const { return at_[piece] != kNowhere; }
  // All of a piece.
  Status read(uint64_t piece, MutableBytes into) const;

 private:
  static constexpr uint64_t kNowhere = UINT64_MAX;
  explicit BlockSpool(Storage& storage) : storage_(storage) {}
  friend class BlockSpoolFiller;

  Storage& storage_;
  std::vector<uint64_t> at_;        // of each piece of the plan
  std::unique_ptr<Writer> writer_;  // keeps the part
  std::unique_ptr<File> file_;
};

}  // namespace packtrain
