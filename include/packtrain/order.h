// Order: which samples, when, on which rank. Arithmetic on (seed, epoch, position); nothing is held per
// sample.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "packtrain/status.h"

namespace packtrain {

// A keyed permutation of [0, count): every position has one value, every value one position. Costs the same
// memory for any count; thread-safe.
class Permutation {
 public:
  Permutation(uint64_t count, uint64_t key) : count_(count) { shuffle(key); }
  void shuffle(uint64_t key);            // makes it that of another key, in the memory it has
  uint64_t at(uint64_t position) const;  // position < count
  uint64_t count() const { return count_; }

 private:
  static constexpr int kRounds = 12;
  uint64_t scramble(uint64_t value) const;  // permutes all values of low_bits_ + high_bits_ bits
  uint64_t count_;
  int low_bits_ = 0, high_bits_ = 0;
  uint64_t keys_[kRounds] = {};
  std::vector<uint32_t> small_;  // a stored shuffle for small counts
};

// The key of every random choice about one place of an epoch: the same on any rank, thread and resume.
uint64_t position_key(uint64_t seed, uint64_t epoch, uint64_t position, uint64_t attempt = 0);

enum class OrderKind : uint8_t {
  source,   // as they lie
  global,   // an exact shuffle of all samples
  streams,  // large sequential reads: pieces of shards, shuffled within a window
};
std::string_view order_kind_name(OrderKind kind);
Result<OrderKind> order_kind_of(std::string_view name);

enum class LastBatch : uint8_t { drop, pad, keep };

// A shard as `streams` sees it: a contiguous range of the samples, cut into pieces that are read whole.
struct StreamShard {
  uint64_t first = 0, count = 0;  // in the space of samples that is ordered
  uint64_t bytes = 0;
};

struct OrderSpec {
  OrderKind kind = OrderKind::global;
  uint64_t samples = 0;
  uint64_t seed = 0;
  uint64_t global_batch = 1;  // over all ranks
  uint32_t world = 1;         // divides global_batch
  LastBatch last = LastBatch::drop;
  // streams only:
  std::vector<StreamShard> shards;  // in order, covering [0, samples)
  uint32_t chains = 0;              // C; 0: lcm(64, world). Ranks that do not divide it share some of them
  uint64_t piece_bytes = 2 << 20;
  uint64_t window_bytes = uint64_t{4} << 30;  // over all ranks
  // Draws with replacement (global only): how often each class comes, relatively, and the class of each
  // sample. A class without samples never comes; the others share what would have been its part.
  std::vector<double> weights;
  std::function<int64_t(uint64_t sample)> class_of;
};

// One place of a batch.
struct Pick {
  uint64_t position = 0;  // in the epoch's global order: the key of its random choices
  uint64_t sample = 0;    // in the space that is ordered
  bool padding = false;   // repeats a sample, so that ranks stay equal (LastBatch::pad)
  uint32_t part = 0;      // the dataset that `sample` belongs to (MixSpec::parts); else 0
  // The samples to be read with it in one go: streams name the piece, else it is the sample itself.
  uint64_t piece_first = 0;
  uint32_t piece_count = 1;
  uint64_t piece_last = 0;  // the last position of the epoch, on any rank, at which a sample of it comes
};

// The order of one run. Immutable; thread-safe.
class Order {
 public:
  static Result<std::shared_ptr<const Order>> make(OrderSpec spec);
  virtual ~Order() = default;
  virtual const OrderSpec& spec() const = 0;

  // Steps of every rank in the rest of an epoch of which `consumed` samples are done; with LastBatch::keep,
  // of this rank.
  virtual uint64_t steps(uint64_t consumed, uint32_t rank) const = 0;
  // What `rank` gets in step `step` of that rest. Prepares what an epoch needs at its first call for it.
  virtual void batch(uint64_t epoch, uint64_t consumed, uint64_t step, uint32_t rank,
                     std::vector<Pick>& out) const = 0;
  // Another sample for a place whose own is bad: a function of (seed, epoch, position, attempt).
  virtual uint64_t replacement(uint64_t epoch, uint64_t position, uint64_t attempt) const = 0;
  // Of the pieces of streams that a rank has to keep at a time, about; else 0.
  virtual uint64_t bytes_held() const { return 0; }
};

// Several datasets in given fractions. Each is gone through in its own shuffles, one behind the other: its
// own epochs, which go on where the mixture's epoch ends.
struct MixPart {
  uint64_t samples = 0;
  double fraction = 0;  // relative to the sum over all parts
  // As in OrderSpec: its samples are drawn, and have no epochs.
  std::vector<double> weights = {};
  std::function<int64_t(uint64_t sample)> class_of = {};
};
struct MixSpec {
  std::vector<MixPart> parts;
  uint64_t epoch_length = 0;           // samples; 0: as many as all parts hold together
  OrderKind kind = OrderKind::global;  // source: each part as it lies
  uint64_t seed = 0;
  uint64_t global_batch = 1;
  uint32_t world = 1;
  LastBatch last = LastBatch::drop;
};
// An order whose picks name their part. spec().samples is the epoch's length; the part of a position is the
// same for each of its replacements.
Result<std::shared_ptr<const Order>> make_mix(MixSpec spec);

// Where a run stands; all that is needed to go on, on any number of ranks. Positions below `consumed` are
// done in every kind of order. Plain JSON of less than 1 KB.
struct OrderState {
  uint32_t version = 1;
  std::string dataset, split;
  OrderKind kind = OrderKind::global;
  uint32_t chains = 0;
  uint64_t window_bytes = 0, piece_bytes = 0;
  uint64_t seed = 0, epoch = 0;
  uint64_t consumed = 0;  // samples of the epoch, over all ranks
  uint64_t global_batch = 0;
  std::string selection;  // hash of indices, predicate, weights and mixture; empty: all samples

  std::string encode() const;
  // Refuses another version, a member that is missing, unknown or of another type, and a chain, window or
  // batch of nothing.
  static Result<OrderState> decode(std::string_view json);
  // Why a run described by `now` may not go on from here, or ok. Batch and world size may differ; seed,
  // chains, window and piece are taken from a state before a run is made of it.
  Status check(const OrderState& now) const;
};

}  // namespace packtrain
