#include "pack/show_facts.h"

#include <algorithm>

#include "base/words.h"
#include "pack/synth_random.h"

namespace packtrain {

namespace {

constexpr uint64_t kMostSampled = 200'000;
constexpr int64_t kMostClasses = 1'000'000;  // larger numbers are labels to regress, not classes

// Calls `each` for at most kMostSampled samples, evenly spaced over the range.
template <class Each>
void for_evenly_spaced(const SampleRange& range, const Each& each) {
  const uint64_t steps = std::min(range.count, kMostSampled);
  for (uint64_t i = 0; i < steps; ++i)
    each(range.first + static_cast<uint64_t>(static_cast<__uint128_t>(i) * range.count / steps));
}

std::span<const int64_t> labels_of(const Dataset& dataset, const SampleRange& range) {
  const std::span<const int64_t> all = dataset.labels();
  if (all.size() < range.first + range.count) return {};
  return all.subspan(range.first, range.count);
}

// A uniform choice of some of the items that pass by, which holds no more than it keeps (algorithm R).
class Reservoir {
 public:
  explicit Reservoir(size_t keep) : keep_(keep) {}
  void offer(uint64_t item, KeyedRandom& random) {
    ++seen_;
    if (kept_.size() < keep_) {
      kept_.push_back(item);
    } else if (keep_ > 0) {
      const auto place = static_cast<uint64_t>(static_cast<__uint128_t>(random.bits()) * seen_ >> 64);
      if (place < keep_) kept_[place] = item;
    }
  }
  const std::vector<uint64_t>& kept() const { return kept_; }

 private:
  size_t keep_;
  uint64_t seen_ = 0;
  std::vector<uint64_t> kept_;
};

// How many of `wanted` each class gives: rounds of one each, in an order that the seed shuffles.
std::vector<uint64_t> share_out(const std::vector<uint64_t>& counts, uint64_t wanted, KeyedRandom& random) {
  std::vector<size_t> order;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) order.push_back(i);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.below(static_cast<uint32_t>(i))]);
  std::vector<uint64_t> shares(counts.size(), 0);
  bool gave = true;
  while (wanted > 0 && gave) {
    gave = false;
    for (const size_t label : order) {
      if (wanted == 0) break;
      if (shares[label] == counts[label]) continue;
      ++shares[label];
      --wanted;
      gave = true;
    }
  }
  return shares;
}

}  // namespace

Result<SampleRange> range_of_split(const Manifest& manifest, const std::string& split) {
  if (split.empty()) return SampleRange{0, manifest.samples};
  std::string known;
  for (const SplitSpec& spec : manifest.splits) {
    if (spec.name == split) return SampleRange{spec.first, spec.count};
    known += (known.empty() ? "" : ", ") + printable(spec.name);
  }
  return Status(Code::not_found, "no split " + printable(split) + "; " +
                                     (known.empty() ? "the dataset has none" : "there are " + known));
}

std::string class_name(const Manifest& manifest, int64_t label) {
  if (label == kNoLabel) return "no label";
  if (label >= 0 && static_cast<uint64_t>(label) < manifest.classes.size())
    return manifest.classes[static_cast<size_t>(label)];
  return std::to_string(label);
}

ClassFacts count_classes(const Dataset& dataset, const SampleRange& range) {
  ClassFacts facts;
  facts.counts.resize(dataset.manifest().classes.size(), 0);
  const std::span<const int64_t> labels = labels_of(dataset, range);
  if (labels.empty()) facts.unlabelled = range.count;
  for (const int64_t label : labels) {
    if (label == kNoLabel) {
      ++facts.unlabelled;
      continue;
    }
    if (label < 0 || label >= kMostClasses) return {{}, range.count};
    if (static_cast<uint64_t>(label) >= facts.counts.size())
      facts.counts.resize(static_cast<size_t>(label) + 1, 0);
    ++facts.counts[static_cast<size_t>(label)];
  }
  if (facts.unlabelled == range.count) facts.counts.clear();
  return facts;
}

std::vector<uint64_t> sample_sizes(const Dataset& dataset, const SampleRange& range) {
  const auto fields = static_cast<uint32_t>(dataset.manifest().fields.size());
  std::vector<uint64_t> sizes;
  sizes.reserve(std::min(range.count, kMostSampled));
  for_evenly_spaced(range, [&](uint64_t sample) {
    uint64_t bytes = 0;
    for (uint32_t field = 0; field < fields; ++field) bytes += dataset.locate(sample, field).length;
    sizes.push_back(bytes);
  });
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

ShapeCounts recorded_shapes(const Dataset& dataset, const SampleRange& range) {
  ShapeCounts counts;
  for_evenly_spaced(range, [&](uint64_t sample) {
    const auto size = dataset.image_size(sample);
    if (size.first > 0 && size.second > 0) ++counts[size];
  });
  return counts;
}

std::vector<ShardSpec> shards_of(const Dataset& dataset, const SampleRange& range) {
  const std::vector<ShardSpec>& all = dataset.manifest().shards;
  if (range.count == 0 || range.count == dataset.samples()) return all;
  // Samples are in the order of their shards, so a split's shards are neighbours.
  const size_t first = std::min<size_t>(dataset.shard_of(range.first), all.size());
  const size_t end =
      std::min<size_t>(size_t{dataset.shard_of(range.first + range.count - 1)} + 1, all.size());
  return {all.begin() + static_cast<ptrdiff_t>(first),
          all.begin() + static_cast<ptrdiff_t>(std::max(first, end))};
}

std::vector<uint64_t> choose_samples(const Dataset& dataset, const SampleRange& range,
                                     const ClassFacts& classes, uint32_t wanted, uint64_t seed) {
  KeyedRandom random(seed, range.first, range.count);
  // One more group for samples without a class.
  std::vector<uint64_t> counts = classes.counts;
  counts.push_back(classes.unlabelled);
  const std::vector<uint64_t> shares = share_out(counts, wanted, random);
  std::vector<Reservoir> groups;
  groups.reserve(shares.size());
  for (const uint64_t share : shares) groups.emplace_back(share);

  const std::span<const int64_t> labels = labels_of(dataset, range);
  const size_t without = groups.size() - 1;
  for (uint64_t i = 0; i < range.count; ++i) {
    const bool labelled = !classes.counts.empty() && labels[i] != kNoLabel;
    groups[labelled ? static_cast<size_t>(labels[i]) : without].offer(range.first + i, random);
  }
  std::vector<uint64_t> chosen;
  for (const Reservoir& group : groups) {
    std::vector<uint64_t> kept = group.kept();
    std::sort(kept.begin(), kept.end());
    chosen.insert(chosen.end(), kept.begin(), kept.end());
  }
  return chosen;
}

}  // namespace packtrain
