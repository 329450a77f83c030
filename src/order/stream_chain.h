// One chain of the order `streams`: a range of the epoch's line of shards, in the order in which it is read.
//
// The line is all shards, one behind the other, in an order drawn for the epoch. Equal ranges of it are the
// chains. A chain is cut into pieces of about piece_bytes, none of which reaches over a shard's end. Its
// pieces are dealt into windows: as many strata along the chain as a window has pieces, one piece of each in
// every window, so that a window comes from as many different places as it can. The samples of a window are
// shuffled exactly. Chain, windows and pieces do not depend on the number of ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "order/last_two.h"
#include "packtrain/order.h"

namespace packtrain {

// How shards are cut: the same in every epoch. Immutable.
struct StreamLayout {
  explicit StreamLayout(const OrderSpec& spec);  // spec.chains is set

  uint64_t chain_start(uint32_t chain) const;  // on the line; chain == chains: its end
  uint64_t chain_length(uint32_t chain) const { return chain_start(chain + 1) - chain_start(chain); }
  // Windows of different chains do not end together: storage would have to deliver them all at once.
  uint64_t first_window_pieces(uint32_t chain) const;
  uint64_t window_bytes_of_chain() const;  // at most, about

  std::vector<StreamShard> shards;      // without empty ones
  std::vector<uint32_t> piece_samples;  // of each shard, at most
  uint64_t samples, seed, bytes = 0;
  uint32_t chains;
  uint64_t mean_piece;     // bytes
  uint64_t window_pieces;  // of one chain, at most
};

// The shards of an epoch, one behind the other. Immutable.
struct StreamLine {
  StreamLine(const StreamLayout& layout, uint64_t epoch);

  uint64_t epoch;
  std::vector<uint32_t> shards;
  std::vector<uint64_t> starts;  // of each, on the line; one more at the end
};

// Thread-safe; memory O(pieces).
class StreamChain {
 public:
  StreamChain(const StreamLayout& layout, const StreamLine& line, uint32_t chain);

  class Cursor;

 private:
  struct Piece {
    uint64_t first;  // sample
    uint64_t start;  // in the chain, before windows are shuffled
    uint32_t count;
  };
  struct Window {
    uint64_t piece;  // its first
    uint64_t start;  // in the chain
  };
  // A window in the order in which its samples come. Immutable.
  struct Shuffle {
    Shuffle(const StreamChain& chain, uint64_t window);
    Permutation order;
    std::vector<uint64_t> lasts;  // of each piece: the place in the window of its last sample
  };
  // The piece of a window that the sample at `start` belongs to, as it stands before the window is shuffled.
  uint64_t piece_at(uint64_t window, uint64_t start) const;
  std::vector<Piece> cut(const StreamLayout& layout, const StreamLine& line, uint32_t chain) const;
  void deal(const std::vector<Piece>& cut, uint64_t strata);
  void set_windows(const StreamLayout& layout, uint32_t chain);
  uint64_t pieces_key_, windows_key_;
  std::vector<Piece> pieces_;    // in the order of reading
  std::vector<Window> windows_;  // and their end
  uint64_t length_ = 0;
  mutable LastTwo<Shuffle> shuffles_;  // by window
};

// Goes along a chain; keeps the window it is in. One thread at a time; the chain must stay alive.
class StreamChain::Cursor {
 public:
  explicit Cursor(const StreamChain& chain) : chain_(chain) {}
  // The sample at `index` of the chain, and its piece; piece_last is an index of the chain, too.
  void find(uint64_t index, Pick& pick);

 private:
  const StreamChain& chain_;
  uint64_t window_ = 0;
  std::shared_ptr<const Shuffle> shuffle_;
};

}  // namespace packtrain
