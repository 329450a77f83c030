// Position p of an epoch is place p / C of chain p mod C. Neither the world size nor the batch is asked for
// when a sample is named: the samples at positions below `consumed` are done, whoever had them, so that a run
// goes on with any world size and any batch. Which rank has a position: stream_dealing.h.
#include "order/stream_order.h"

#include <fmt/format.h>

#include <mutex>
#include <numeric>

#include "order/batching.h"
#include "order/sliced_order.h"
#include "order/stream_chain.h"
#include "order/stream_dealing.h"

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
  explicit StreamOrder(OrderSpec spec)
      : spec_(std::move(spec)), layout_(spec_), dealing_(spec_.chains, spec_.world) {}

  const OrderSpec& spec() const final { return spec_; }

  uint64_t steps(uint64_t consumed, uint32_t rank) const final {
    const uint64_t steps = global_steps(spec_, consumed);
    if (steps == 0) return 0;
    return dealing_.count(global_batch_at(spec_, consumed, steps - 1), rank) > 0 ? steps : steps - 1;
  }

  void batch(uint64_t epoch, uint64_t consumed, uint64_t step, uint32_t rank,
             std::vector<Pick>& out) const final {
    assert(rank < spec_.world);
    const GlobalBatch batch = global_batch_at(spec_, consumed, step);
    dealing_.deal(batch, rank, out);
    if (out.empty()) return;
    const auto prepared = epochs_.get(epoch, [&] { return StreamEpoch(layout_, epoch); });
    // Chain by chain, where its places in a batch are one behind the other.
    const uint64_t stride = dealing_.shares() ? out.size() : spec_.chains / spec_.world;
    for (uint64_t begin = 0; begin < out.size() && begin < stride; ++begin)
      fill_chain(*prepared, std::span(out).subspan(begin), stride);
  }

  uint64_t replacement(uint64_t epoch, uint64_t position, uint64_t attempt) const final {
    return any_sample(spec_.samples, spec_.seed, epoch, position, attempt);
  }

  uint64_t bytes_held() const final { return dealing_.chains_of_rank() * layout_.window_bytes_of_chain(); }

 private:
  // Every `stride`-th of `picks` is of the chain that the first one is of.
  void fill_chain(const StreamEpoch& epoch, std::span<Pick> picks, uint64_t stride) const {
    const auto number = static_cast<uint32_t>(picks.front().position % spec_.chains);
    const uint64_t length = layout_.chain_length(number);
    StreamChain::Cursor cursor(epoch.chain(number));
    for (uint64_t i = 0; i < picks.size(); i += stride) {
      Pick& pick = picks[i];
      pick.padding = pick.position >= spec_.samples;
      const uint64_t index = pick.position / spec_.chains;
      if (index < length)
        find(cursor, number, index, pick);
      else if (length > 0)  // back along the chain, which this rank has read anyway
        find(cursor, number, length - 1 - (index - length) % length, pick);
      else
        borrow(epoch, pick.position % spec_.samples, pick);
    }
  }

  // Padding of a rank that has no samples of its own repeats one of another rank.
  void borrow(const StreamEpoch& epoch, uint64_t position, Pick& pick) const {
    const auto number = static_cast<uint32_t>(position % spec_.chains);
    StreamChain::Cursor cursor(epoch.chain(number));
    find(cursor, number, position / spec_.chains, pick);
  }

  void find(StreamChain::Cursor& cursor, uint32_t chain, uint64_t index, Pick& pick) const {
    cursor.find(index, pick);
    pick.piece_last = pick.piece_last * spec_.chains + chain;
  }

  OrderSpec spec_;
  StreamLayout layout_;
  StreamDealing dealing_;
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
  spec.chains = static_cast<uint32_t>(chains);
  PACKTRAIN_TRY(check_shards(spec));
  return std::shared_ptr<const Order>(std::make_shared<StreamOrder>(std::move(spec)));
}

}  // namespace packtrain
