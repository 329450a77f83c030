// Position p of an epoch is place p / C of chain p mod C, and belongs to rank p mod world. As the world size
// divides C, a rank meets the same chains in every batch, no other rank meets them, and a batch has as many
// positions of each rank. None of it asks for the world size or the batch when it names the sample: the
// samples at positions below `consumed` are done, whoever had them, so that a run goes on with any world size
// that divides C and any batch.
#include "order/stream_order.h"

#include <fmt/format.h>

#include <mutex>
#include <numeric>

#include "order/batching.h"
#include "order/sliced_order.h"
#include "order/stream_chain.h"

namespace packtrain {
namespace {

constexpr uint64_t kUsualChains = 64;
constexpr uint64_t kMostChains = 1 << 24;

// The chains of one epoch, each made when it is first asked for: a rank pays for its own only. Thread-safe.
class StreamEpoch {
 public:
  StreamEpoch(const StreamLayout& layout, uint64_t epoch)
      : layout_(&layout), line_(layout, epoch), slots_(new Slot[layout.chains]) {}

  const StreamChain& chain(uint32_t number) const {
    Slot& slot = slots_[number];
    std::call_once(slot.once,
                   [&] { slot.chain = std::make_unique<const StreamChain>(*layout_, line_, number); });
    return *slot.chain;
  }

 private:
  struct Slot {
    std::once_flag once;
    std::unique_ptr<const StreamChain> chain;
  };
  const StreamLayout* layout_;
  StreamLine line_;
  std::unique_ptr<Slot[]> slots_;
};

class StreamOrder final : public Order {
 public:
  explicit StreamOrder(OrderSpec spec) : spec_(std::move(spec)), layout_(spec_) {}

  const OrderSpec& spec() const final { return spec_; }

  uint64_t steps(uint64_t consumed, uint32_t rank) const final {
    const uint64_t steps = global_steps(spec_, consumed);
    if (steps == 0) return 0;
    return share_of(global_batch_at(spec_, consumed, steps - 1), rank).count > 0 ? steps : steps - 1;
  }

  void batch(uint64_t epoch, uint64_t consumed, uint64_t step, uint32_t rank,
             std::vector<Pick>& out) const final {
    assert(rank < spec_.world);
    const Share share = share_of(global_batch_at(spec_, consumed, step), rank);
    out.clear();
    out.resize(share.count);
    if (out.empty()) return;
    const auto prepared = epochs_.get(epoch, [&] { return StreamEpoch(layout_, epoch); });
    // Chain by chain: its places in a batch are one behind the other.
    const uint64_t own_chains = spec_.chains / spec_.world;
    for (uint64_t begin = 0; begin < out.size() && begin < own_chains; ++begin) {
      const uint64_t position = share.first + begin * spec_.world;
      fill_chain(*prepared, position, std::span(out).subspan(begin), own_chains);
    }
  }

  uint64_t replacement(uint64_t epoch, uint64_t position, uint64_t attempt) const final {
    return any_sample(spec_.samples, spec_.seed, epoch, position, attempt);
  }

 private:
  // A rank's positions in a batch: every world-th.
  struct Share {
    uint64_t first = 0, count = 0;
  };
  Share share_of(GlobalBatch batch, uint32_t rank) const {
    const uint64_t skipped = (rank + spec_.world - batch.first % spec_.world) % spec_.world;
    if (skipped >= batch.count) return {};
    return {batch.first + skipped, (batch.count - skipped - 1) / spec_.world + 1};
  }

  // Every `stride`-th of `picks` is of the chain that `position`, the first one's, is of.
  void fill_chain(const StreamEpoch& epoch, uint64_t position, std::span<Pick> picks, uint64_t stride) const {
    const auto number = static_cast<uint32_t>(position % spec_.chains);
    const uint64_t length = layout_.chain_length(number);
    StreamChain::Cursor cursor(epoch.chain(number));
    for (uint64_t i = 0; i < picks.size(); i += stride, position += spec_.chains) {
      Pick& pick = picks[i];
      pick.position = position;
      pick.padding = position >= spec_.samples;
      const uint64_t index = position / spec_.chains;
      if (index < length)
        cursor.find(index, pick);
      else if (length > 0)  // back along the chain, which this rank has read anyway
        cursor.find(length - 1 - (index - length) % length, pick);
      else
        borrow(epoch, position % spec_.samples, pick);
    }
  }

  // Padding of a rank that has no samples of its own repeats one of another rank.
  void borrow(const StreamEpoch& epoch, uint64_t position, Pick& pick) const {
    StreamChain::Cursor(epoch.chain(static_cast<uint32_t>(position % spec_.chains)))
        .find(position / spec_.chains, pick);
  }

  OrderSpec spec_;
  StreamLayout layout_;
  mutable LastTwo<StreamEpoch> epochs_;
};

Status check_shards(const OrderSpec& spec) {
  uint64_t covered = 0;
  for (size_t i = 0; i < spec.shards.size(); ++i) {
    const StreamShard& shard = spec.shards[i];
    if (shard.first != covered || shard.count > spec.samples - covered)
      return Status(
          Code::invalid,
          fmt::format("shard {} of the order holds samples {} to {}, but {} of {} samples lie before it", i,
                      shard.first, shard.first + shard.count, covered, spec.samples));
    covered += shard.count;
  }
  if (covered == spec.samples) return {};
  return Status(Code::invalid, fmt::format("the shards of the order hold {} samples, but there are {}",
                                           covered, spec.samples));
}

}  // namespace

Result<std::shared_ptr<const Order>> make_stream_order(OrderSpec spec) {
  if (spec.piece_bytes == 0 || spec.window_bytes == 0)
    return Status(Code::invalid, "the order 'streams' needs pieces and a window of at least one byte");
  const uint64_t chains = spec.chains > 0 ? spec.chains : std::lcm(kUsualChains, uint64_t{spec.world});
  if (chains > kMostChains)
    return Status(Code::invalid, fmt::format("the order 'streams' is for at most {} chains, not {}; take the "
                                             "order 'global'",
                                             kMostChains, chains));
  if (chains % spec.world != 0)
    return Status(
        Code::invalid,
        fmt::format("this run's order 'streams' has {} chains, which {} ranks cannot share equally; go "
                    "on with a number of ranks that divides {}, or begin a new run",
                    chains, spec.world, chains));
  spec.chains = static_cast<uint32_t>(chains);
  PACKTRAIN_TRY(check_shards(spec));
  return std::shared_ptr<const Order>(std::make_shared<StreamOrder>(std::move(spec)));
}

}  // namespace packtrain
