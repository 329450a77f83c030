#include "pack/block_checks.h"

#include <algorithm>
#include <cassert>

#include "base/hash.h"
#include "packtrain/index.h"

namespace packtrain {

namespace {
// Joining two checks costs about as much as reading this many bytes again.
constexpr size_t kWorthJoining = 16 << 10;
}  // namespace

void BlockPieces::cut() {
  if (at_ > start_) pieces_.push_back({start_, at_ - start_, running_});
  start_ = at_;
  running_ = 0;
}

void BlockPieces::add(Bytes data) {
  while (!data.empty()) {
    const size_t room = kBlockBytes - at_ % kBlockBytes, part = std::min(room, data.size());
    running_ = crc32c(data.first(part), running_);
    at_ += part;
    data = data.subspan(part);
    if (part == room) cut();
  }
}

void BlockPieces::add_known(uint32_t check, Bytes data) {
  const size_t room = kBlockBytes - at_ % kBlockBytes;
  if (data.size() < kWorthJoining || data.size() > room) return add(data);
  running_ = crc32c_join(running_, check, data.size());
  at_ += data.size();
  if (data.size() == room) cut();
}

std::vector<BlockPiece> BlockPieces::finish() {
  cut();
  return std::move(pieces_);
}

std::vector<uint32_t> join_blocks(std::vector<BlockPiece> pieces, uint64_t bytes) {
  std::sort(pieces.begin(), pieces.end(),
            [](const BlockPiece& a, const BlockPiece& b) { return a.offset < b.offset; });
  std::vector<uint32_t> checks((bytes + kBlockBytes - 1) / kBlockBytes);
  uint64_t at = 0;
  for (const BlockPiece& piece : pieces) {
    assert(piece.offset == at);
    uint32_t& check = checks[at / kBlockBytes];
    check = at % kBlockBytes == 0 ? piece.check : crc32c_join(check, piece.check, piece.bytes);
    at += piece.bytes;
  }
  assert(at == bytes);
  return checks;
}

}  // namespace packtrain
