#include "order/sliced_order.h"

#include "order/batching.h"
#include "order/keys.h"
#include "order/last_two.h"

namespace packtrain {
namespace {

struct Slice {
  uint64_t first = 0, count = 0;
};

// A batch that is cut short is shared as evenly as a full one, so that as many ranks as possible get a part.
Slice slice_of(GlobalBatch batch, uint32_t world, uint32_t rank) {
  const uint64_t each = batch.count / world, more = batch.count % world;
  const uint64_t before = rank < more ? rank : more;
  return {batch.first + each * rank + before, each + (rank < more ? 1 : 0)};
}

class SourceOrder final : public SlicedOrder {
 public:
  using SlicedOrder::SlicedOrder;
  uint64_t replacement(uint64_t epoch, uint64_t position, uint64_t attempt) const final {
    return any_sample(spec().samples, spec().seed, epoch, position, attempt);
  }

 private:
  void choose(uint64_t, std::span<Pick> picks) const final {
    for (Pick& pick : picks) pick.sample = place(pick);
  }
};

class GlobalOrder final : public SlicedOrder {
 public:
  using SlicedOrder::SlicedOrder;
  uint64_t replacement(uint64_t epoch, uint64_t position, uint64_t attempt) const final {
    return any_sample(spec().samples, spec().seed, epoch, position, attempt);
  }

 private:
  void choose(uint64_t epoch, std::span<Pick> picks) const final {
    const uint64_t key = epoch_key(KeyPurpose::shuffle, spec().seed, epoch);
    const auto shuffle = shuffles_.get(
        epoch, [&] { return Permutation(spec().samples, key); },
        [&](Permutation& spare) { spare.shuffle(key); });
    for (Pick& pick : picks) pick.sample = shuffle->at(place(pick));
  }

  mutable LastTwo<Permutation> shuffles_;
};

}  // namespace

uint64_t SlicedOrder::steps(uint64_t consumed, uint32_t rank) const {
  const uint64_t steps = global_steps(spec_, consumed);
  if (steps == 0) return 0;
  const GlobalBatch last = global_batch_at(spec_, consumed, steps - 1);
  return slice_of(last, spec_.world, rank).count > 0 ? steps : steps - 1;
}

void SlicedOrder::batch(uint64_t epoch, uint64_t consumed, uint64_t step, uint32_t rank,
                        std::vector<Pick>& out) const {
  assert(rank < spec_.world);
  const Slice slice = slice_of(global_batch_at(spec_, consumed, step), spec_.world, rank);
  out.clear();
  out.resize(slice.count);
  for (uint64_t i = 0; i < slice.count; ++i) {
    out[i].position = slice.first + i;
    out[i].padding = out[i].position >= spec_.samples;
  }
  if (out.empty()) return;
  choose(epoch, out);
  for (Pick& pick : out) pick.piece_first = pick.sample;
}

std::shared_ptr<const Order> make_source_order(OrderSpec spec) {
  return std::make_shared<SourceOrder>(std::move(spec));
}

std::shared_ptr<const Order> make_global_order(OrderSpec spec) {
  return std::make_shared<GlobalOrder>(std::move(spec));
}

uint64_t any_sample(uint64_t samples, uint64_t seed, uint64_t epoch, uint64_t position, uint64_t attempt) {
  if (samples == 0) return 0;
  return KeyedRandom(purpose_key(KeyPurpose::replace, position_key(seed, epoch, position, attempt)))
      .below(samples);
}

}  // namespace packtrain
