#include "load/parts.h"

#include <algorithm>

#include "base/hash.h"
#include "packtrain/place.h"

namespace packtrain {
namespace {

Status check_part(const LoadSpec& spec, const LoadPart& part) {
  if (!part.dataset) return Status(Code::invalid, "a loader needs a dataset");
  if (part.first > part.dataset->samples() || part.samples > part.dataset->samples() - part.first)
    return Status(Code::invalid, "the split does not lie within the dataset");
  if (part.size() > 0 && part.selection && part.selection->largest() >= part.samples) {
    return Status(Code::invalid, "the index " + std::to_string(part.selection->largest()) +
                                     " is not below the number of samples, " + std::to_string(part.samples));
  }
  const size_t fields = part.dataset->manifest().fields.size();
  if (spec.image &&
      (part.image_fields.empty() || std::any_of(part.image_fields.begin(), part.image_fields.end(),
                                                [&](uint32_t field) { return field >= fields; })))
    return Status(Code::invalid, "there is no such field for the image");
  for (const uint32_t field : part.fields)
    if (field >= fields) return Status(Code::invalid, "there is no such field");
  if (part.fields.size() != spec.fields())
    return Status(Code::invalid, "every dataset of a mixture delivers the same fields");
  // A thread waits for the reads of one storage at a time.
  if (&part.dataset->storage() != &spec.parts.front().dataset->storage())
    return Status(Code::unsupported, "the datasets of a mixture must be opened through one storage");
  return part.dataset->sound(IndexPart::labels, kQuickToCompare);  // a batch's bytes have checks of their own
}

void add_stream_shards(const LoadPart& part, OrderSpec& order) {
  const Manifest& manifest = part.dataset->manifest();
  uint64_t sample = part.first;
  const uint64_t end = part.first + part.samples;
  while (sample < end) {
    const uint32_t shard = part.dataset->shard_of(sample);
    // Samples of a shard follow each other: its last one is found by halving.
    uint64_t low = sample, high = end - 1;
    while (low < high) {
      const uint64_t middle = low + (high - low + 1) / 2;
      if (part.dataset->shard_of(middle) == shard) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const uint64_t count = low + 1 - sample;
    const uint64_t whole = std::max<uint64_t>(manifest.shards[shard].samples, 1);
    order.shards.push_back({sample - part.first, count, manifest.shards[shard].bytes / whole * count});
    sample = low + 1;
  }
}

// Of a sample as the order calls it. The part goes along, as an order may live longer than its spec.
std::function<int64_t(uint64_t)> class_of(const LoadPart& part) {
  if (part.weights.empty()) return {};
  return [part](uint64_t ordered) { return part.dataset->label(part.sample_at(ordered)); };
}

Result<std::shared_ptr<const Order>> make_order_of_mixture(const LoadSpec& spec) {
  MixSpec mix;
  for (const LoadPart& part : spec.parts)
    mix.parts.push_back({part.size(), part.fraction, part.weights, class_of(part)});
  mix.epoch_length = spec.epoch_length;
  mix.kind = spec.order.kind;
  mix.seed = spec.order.seed;
  mix.global_batch = spec.order.global_batch;
  mix.world = spec.order.world;
  mix.last = spec.order.last;
  return make_mix(std::move(mix));
}

std::string selection_of(const LoadPart& part) {
  std::string selection;
  if (part.selection) selection = part.selection->hash();
  if (!part.weights.empty()) selection += "w" + xxh128_hex(std::as_bytes(std::span(part.weights)));
  return selection;
}

double sum_of_fractions(const LoadSpec& spec) {
  double sum = 0;
  for (const LoadPart& part : spec.parts) sum += part.fraction;
  return sum;
}

// What decoding makes of a byte, about: FLAC halves audio, photographs grow five to tenfold, and padding
// keeps values twice.
double growth(const ValueSpec& value) {
  const auto decoded = [&]() -> double {
    if (value.kind == ValueKind::image) return 8;
    if (value.kind != ValueKind::audio) return 1;
    return value.type == NumberType::int16 ? 2 : 4;
  };
  return (value.pad ? 2 : 1) * decoded();
}

}  // namespace

Status check_spec(const LoadSpec& spec) {
  if (spec.parts.empty()) return Status(Code::invalid, "a loader needs a dataset");
  if (spec.parts.size() > 1 && !spec.mixed)
    return Status(Code::invalid, "several datasets can only be loaded as a mixture");
  if (spec.image) PACKTRAIN_TRY(spec.image->check());
  for (const ValueSpec& value : spec.values) PACKTRAIN_TRY(value.check());
  for (const LoadPart& part : spec.parts) PACKTRAIN_TRY(check_part(spec, part));
  if (spec.rank >= spec.order.world)
    return Status(Code::invalid, "rank " + std::to_string(spec.rank) + " is not below the world size, " +
                                     std::to_string(spec.order.world));
  return {};
}

Result<std::shared_ptr<const Order>> make_order(LoadSpec& spec) {
  if (spec.mixed) {
    PACKTRAIN_ASSIGN(order, make_order_of_mixture(spec));
    spec.order = order->spec();
    return order;
  }
  const LoadPart& part = spec.parts.front();
  spec.order.samples = part.size();
  if (spec.order.kind == OrderKind::streams && part.selection) {
    return Status(Code::unsupported,
                  "order=\"streams\" reads whole shards and cannot be had with indices=; use "
                  "order=\"global\"");
  }
  if (spec.order.kind == OrderKind::streams && spec.order.shards.empty()) add_stream_shards(part, spec.order);
  spec.order.weights = part.weights;
  spec.order.class_of = class_of(part);
  PACKTRAIN_ASSIGN(order, Order::make(spec.order));
  spec.order = order->spec();
  return order;
}

void set_identity(const LoadSpec& spec, OrderState& state) {
  if (!spec.mixed) {
    const LoadPart& part = spec.parts.front();
    state.dataset = part.dataset->manifest().id;
    state.split = part.split;
    state.selection = selection_of(part);
    return;
  }
  // Hashes, so that a state is as small for a hundred datasets as for one.
  std::string parts;
  std::vector<double> shares;
  const double sum = sum_of_fractions(spec);
  for (const LoadPart& part : spec.parts) {
    parts += part.dataset->manifest().id + "\n" + part.split + "\n" + selection_of(part) + "\n";
    shares.push_back(part.fraction / sum);
  }
  state.dataset = "mix-" + xxh128_hex(as_bytes(parts));
  state.selection =
      "m" + xxh128_hex(std::as_bytes(std::span(shares))) + "x" + std::to_string(spec.order.samples);
}

uint64_t bytes_a_sample(const LoadSpec& spec) {
  constexpr uint64_t kLooks = 256;
  const double sum_of_all = sum_of_fractions(spec);
  double bytes = spec.image ? static_cast<double>(spec.image->bytes()) : 0;
  if (spec.fields() == 0) return static_cast<uint64_t>(bytes);
  for (const LoadPart& part : spec.parts) {
    if (part.samples == 0) continue;
    const uint64_t looks = std::min(kLooks, part.samples);
    double sum = 0;
    for (uint64_t i = 0; i < looks; ++i) {
      const uint64_t sample = part.first + part.samples / looks * i;
      for (size_t field = 0; field < part.fields.size(); ++field)
        sum += growth(spec.value(field)) *
               static_cast<double>(part.dataset->locate(sample, part.fields[field]).length);
    }
    bytes += part.fraction / sum_of_all * sum / static_cast<double>(looks);
  }
  return static_cast<uint64_t>(bytes);
}

bool lies_far(const LoadSpec& spec) {
  return std::any_of(spec.parts.begin(), spec.parts.end(), [](const LoadPart& part) {
    const auto place = place_of(part.dataset->folder());
    return place.ok() && place->far();
  });
}

}  // namespace packtrain
