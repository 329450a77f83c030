#include "order/stream_chain.h"

#include <algorithm>
#include <span>

#include "order/keys.h"

namespace packtrain {
namespace {

uint64_t divide_up(uint64_t value, uint64_t by) { return value / by + (value % by != 0); }

// value * part / whole without overflow; part <= whole.
uint64_t share(uint64_t value, uint64_t part, uint64_t whole) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(value) * part / whole);
}

uint32_t samples_per_piece(const StreamShard& shard, uint64_t piece_bytes) {
  const uint64_t most = std::min<uint64_t>(shard.count, UINT32_MAX);
  if (shard.bytes <= piece_bytes) return static_cast<uint32_t>(most);
  const uint64_t fitting = share(shard.count, piece_bytes, shard.bytes);
  return static_cast<uint32_t>(std::clamp<uint64_t>(fitting, 1, most));
}

void shuffle(std::vector<uint64_t>& values, KeyedRandom& random) {
  for (uint64_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

}  // namespace

StreamLayout::StreamLayout(const OrderSpec& spec)
    : samples(spec.samples), seed(spec.seed), chains(spec.chains) {
  uint64_t pieces = 0;
  for (const StreamShard& shard : spec.shards) {
    if (shard.count == 0) continue;
    shards.push_back(shard);
    piece_samples.push_back(samples_per_piece(shard, spec.piece_bytes));
    bytes += shard.bytes;
    pieces += divide_up(shard.count, piece_samples.back());
  }
  // Where samples are larger than a piece should be, a piece is one sample and a window has fewer of them.
  mean_piece = pieces == 0 ? 1 : std::max<uint64_t>(1, divide_up(bytes, pieces));
  window_pieces = std::max<uint64_t>(1, spec.window_bytes / chains / mean_piece);
}

uint64_t StreamLayout::chain_start(uint32_t chain) const {
  return samples / chains * chain + std::min<uint64_t>(chain, samples % chains);
}

uint64_t StreamLayout::first_window_pieces(uint32_t chain) const {
  // Not below a quarter: the first batches shall be mixed well, too.
  return window_pieces - share(window_pieces - window_pieces / 4, chains - 1 - chain, chains);
}

uint64_t StreamLayout::window_bytes_of_chain() const {
  return std::min(window_pieces * mean_piece, divide_up(bytes, chains));
}

StreamLine::StreamLine(const StreamLayout& layout, uint64_t epoch_number) : epoch(epoch_number) {
  const Permutation order(layout.shards.size(), epoch_key(KeyPurpose::shard_line, layout.seed, epoch));
  shards.reserve(layout.shards.size());
  starts.reserve(layout.shards.size() + 1);
  uint64_t start = 0;
  for (uint64_t i = 0; i < layout.shards.size(); ++i) {
    shards.push_back(static_cast<uint32_t>(order.at(i)));
    starts.push_back(start);
    start += layout.shards[shards.back()].count;
  }
  starts.push_back(start);
}

StreamChain::StreamChain(const StreamLayout& layout, const StreamLine& line, uint32_t chain)
    : pieces_key_(join_keys(epoch_key(KeyPurpose::pieces, layout.seed, line.epoch), chain)),
      windows_key_(join_keys(epoch_key(KeyPurpose::window, layout.seed, line.epoch), chain)) {
  deal(cut(layout, line, chain), layout.window_pieces);
  set_windows(layout, chain);
}

// The chain's part of each shard, in pieces of nearly equal size.
std::vector<StreamChain::Piece> StreamChain::cut(const StreamLayout& layout, const StreamLine& line,
                                                 uint32_t chain) const {
  std::vector<Piece> pieces;
  const uint64_t end = layout.chain_start(chain + 1);
  uint64_t at = layout.chain_start(chain);
  size_t place =
      static_cast<size_t>(std::upper_bound(line.starts.begin(), line.starts.end(), at) - line.starts.begin());
  for (; at < end; ++place) {
    const uint32_t shard = line.shards[place - 1];
    const uint64_t first = layout.shards[shard].first + (at - line.starts[place - 1]);
    const uint64_t count = std::min(end, line.starts[place]) - at;
    const uint64_t parts = divide_up(count, layout.piece_samples[shard]);
    for (uint64_t i = 0; i < parts; ++i) {
      const uint64_t from = share(count, i, parts), to = share(count, i + 1, parts);
      pieces.push_back({first + from, 0, static_cast<uint32_t>(to - from)});
    }
    at += count;
  }
  return pieces;
}

// Round after round one piece of each stratum. The strata take turns in the same order in every round: any
// `strata` pieces in a row are of different strata, wherever a window begins.
void StreamChain::deal(const std::vector<Piece>& cut, uint64_t strata) {
  strata = std::min<uint64_t>(strata, cut.size());
  KeyedRandom random(pieces_key_);
  std::vector<uint64_t> turns(strata), drawn(cut.size());
  for (uint64_t i = 0; i < turns.size(); ++i) turns[i] = i;
  shuffle(turns, random);
  std::vector<uint64_t> members;
  for (uint64_t stratum = 0; stratum < strata; ++stratum) {
    const uint64_t from = share(cut.size(), stratum, strata), to = share(cut.size(), stratum + 1, strata);
    members.clear();
    for (uint64_t i = from; i < to; ++i) members.push_back(i);
    shuffle(members, random);
    std::copy(members.begin(), members.end(), drawn.begin() + static_cast<ptrdiff_t>(from));
  }
  pieces_.reserve(cut.size());
  for (uint64_t round = 0; pieces_.size() < cut.size(); ++round) {
    for (const uint64_t stratum : turns) {
      const uint64_t from = share(cut.size(), stratum, strata), to = share(cut.size(), stratum + 1, strata);
      if (from + round >= to) continue;
      pieces_.push_back(cut[drawn[from + round]]);
      pieces_.back().start = length_;
      length_ += pieces_.back().count;
    }
  }
}

// After the first window all are of nearly equal size: none is so small that its samples would stay together.
void StreamChain::set_windows(const StreamLayout& layout, uint32_t chain) {
  const uint64_t pieces = pieces_.size();
  const auto begin_at = [&](uint64_t piece) {
    windows_.push_back({piece, piece < pieces ? pieces_[piece].start : length_});
  };
  uint64_t first = pieces;
  if (pieces > layout.window_pieces)
    first = std::min(layout.first_window_pieces(chain), std::max<uint64_t>(1, pieces / 2));
  if (first > 0) begin_at(0);
  const uint64_t rest = pieces - first, windows = divide_up(rest, layout.window_pieces);
  for (uint64_t i = 0; i < windows; ++i) begin_at(first + share(rest, i, windows));
  begin_at(pieces);
}

uint64_t StreamChain::piece_at(uint64_t window, uint64_t start) const {
  const auto begin = pieces_.begin() + static_cast<ptrdiff_t>(windows_[window].piece);
  const auto end = pieces_.begin() + static_cast<ptrdiff_t>(windows_[window + 1].piece);
  const auto next = std::upper_bound(begin, end, start,
                                     [](uint64_t value, const Piece& piece) { return value < piece.start; });
  return static_cast<uint64_t>(next - pieces_.begin()) - 1;
}

// From the back, until every piece was met: a small part of the window as a rule.
StreamChain::Shuffle::Shuffle(const StreamChain& chain, uint64_t window)
    : order(chain.windows_[window + 1].start - chain.windows_[window].start,
            join_keys(chain.windows_key_, window)),
      lasts(chain.windows_[window + 1].piece - chain.windows_[window].piece, UINT64_MAX) {
  uint64_t unmet = lasts.size();
  for (uint64_t place = order.count(); place > 0 && unmet > 0; --place) {
    const uint64_t piece = chain.piece_at(window, chain.windows_[window].start + order.at(place - 1));
    uint64_t& last = lasts[piece - chain.windows_[window].piece];
    if (last != UINT64_MAX) continue;
    last = place - 1;
    --unmet;
  }
}

void StreamChain::Cursor::find(uint64_t index, Pick& pick) {
  assert(index < chain_.length_);
  const auto& windows = chain_.windows_;
  if (!shuffle_ || index < windows[window_].start || index >= windows[window_ + 1].start) {
    const auto next =
        std::upper_bound(windows.begin(), windows.end(), index,
                         [](uint64_t value, const Window& window) { return value < window.start; });
    window_ = static_cast<uint64_t>(next - windows.begin()) - 1;
    shuffle_ = chain_.shuffles_.get(window_, [&] { return Shuffle(chain_, window_); });
  }
  const Window& window = windows[window_];
  const uint64_t drawn = window.start + shuffle_->order.at(index - window.start);
  const uint64_t number = chain_.piece_at(window_, drawn);
  const Piece& piece = chain_.pieces_[number];
  pick.sample = piece.first + (drawn - piece.start);
  pick.piece_first = piece.first;
  pick.piece_count = piece.count;
  pick.piece_last = window.start + shuffle_->lasts[number - window.piece];
}

}  // namespace packtrain
