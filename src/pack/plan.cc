#include "pack/plan.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <queue>

#include "base/give_back.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/words.h"
#include "pack/conversion_cost.h"
#include "pack/random.h"
#include "pack/source_changes.h"

namespace packtrain {
namespace {

constexpr uint64_t kDefaultShardBytes = 512'000'000;
constexpr uint64_t kMostShards = 1'000'000;  // as many as six digits number
constexpr uint64_t kMostSamples = UINT32_MAX - 1;

std::string_view order_name(PackOrder order) {
  switch (order) {
    case PackOrder::shuffled:
      return "shuffled";
    case PackOrder::stratified:
      return "stratified";
    case PackOrder::source:
      return "source";
  }
  return "";
}

// What a sample will take in its shard, about exactly: a head of 512 bytes and padding for each field, as in
// a tar.
uint64_t packed_bytes(const Plan& plan, uint64_t sample) {
  uint64_t bytes = 0;
  for (const Cell& cell : SampleCells(plan.catalog, sample))
    bytes += 512 + (plan.expected_size(cell) + 511) / 512 * 512;
  return bytes;
}

// Samples class by class, dealt out to shards in turn: each shard gets each class in proportion, to one
// sample.
void stratify(const Catalog& catalog, BigVector<uint32_t>& samples, uint64_t shards, Random& random) {
  random.shuffle(samples, 0, samples.size());
  std::stable_sort(samples.begin(), samples.end(), [&](uint32_t a, uint32_t b) {
    return catalog.samples[a].label < catalog.samples[b].label;
  });
  BigVector<uint32_t> dealt;
  dealt.reserve(samples.size());
  for (uint64_t shard = 0; shard < shards; ++shard) {
    const size_t begin = dealt.size();
    for (size_t i = shard; i < samples.size(); i += shards) dealt.push_back(samples[i]);
    random.shuffle(dealt, begin, dealt.size());
  }
  samples = std::move(dealt);
}

// The same by bytes: each shard gets each class in proportion, to one sample, and as many bytes as any other,
// but for the size of one sample. Returns the ends of the shards in `samples`.
//
// A class is dealt out in rounds, one sample to each shard, the largest to the one that has least so far. Two
// shards then never differ by more than the larger of what they differed by and what the samples of the round
// differ by. Rounds whose samples differ most come first, so that a giant among them is made up for by all
// that follow.
std::vector<uint64_t> stratify_by_bytes(const Plan& plan, BigVector<uint32_t>& samples, uint64_t shards,
                                        Random& random) {
  const auto label = [&](size_t i) { return plan.catalog.samples[samples[i]].label; };
  random.shuffle(samples, 0, samples.size());
  std::stable_sort(samples.begin(), samples.end(), [&](uint32_t a, uint32_t b) {
    return plan.catalog.samples[a].label < plan.catalog.samples[b].label;
  });
  struct Round {
    size_t first, count;
    uint64_t range;
  };
  std::vector<Round> rounds;
  for (size_t i = 0; i < samples.size();) {
    Round round{i, 0, 0};
    uint64_t least = UINT64_MAX, most = 0;
    for (; i < samples.size() && round.count < shards && label(i) == label(round.first); ++i, ++round.count) {
      const uint64_t bytes = packed_bytes(plan, samples[i]);
      least = std::min(least, bytes);
      most = std::max(most, bytes);
    }
    round.range = round.count < shards ? most : most - least;  // the shards that go out empty-handed get 0
    rounds.push_back(round);
  }
  std::stable_sort(rounds.begin(), rounds.end(),
                   [](const Round& a, const Round& b) { return a.range > b.range; });

  using Load = std::pair<uint64_t, uint32_t>;  // bytes, and the shard
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least_first;
  for (uint32_t shard = 0; shard < shards; ++shard) least_first.emplace(0, shard);
  std::vector<Load> taken;
  std::vector<uint64_t> counts(shards);
  BigVector<uint32_t> shard_of(samples.size());
  std::vector<std::pair<uint64_t, size_t>> dealt;  // bytes, and the place in `samples`
  for (const Round& round : rounds) {
    dealt.clear();
    for (size_t i = round.first; i < round.first + round.count; ++i)
      dealt.emplace_back(packed_bytes(plan, samples[i]), i);
    std::stable_sort(dealt.begin(), dealt.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    taken.clear();
    for (const auto& [bytes, place] : dealt) {
      const Load load = least_first.top();
      least_first.pop();
      shard_of[place] = load.second;
      ++counts[load.second];
      taken.emplace_back(load.first + bytes, load.second);
    }
    for (const Load& load : taken) least_first.push(load);
  }
  std::vector<uint64_t> ends(shards), next(shards);
  std::partial_sum(counts.begin(), counts.end(), ends.begin());
  for (uint64_t shard = 0; shard < shards; ++shard) next[shard] = ends[shard] - counts[shard];
  BigVector<uint32_t> ordered(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) ordered[next[shard_of[i]]++] = samples[i];
  for (uint64_t shard = 0; shard < shards; ++shard)
    random.shuffle(ordered, ends[shard] - counts[shard], ends[shard]);
  samples = std::move(ordered);
  return ends;
}

// Ends of the shards in `samples`: counts that differ by one at most, or bytes as even as whole samples
// allow.
std::vector<uint64_t> cut(const Plan& plan, const BigVector<uint32_t>& samples, uint64_t shards,
                          bool by_bytes, uint64_t total_bytes) {
  std::vector<uint64_t> ends;
  if (!by_bytes) {
    // The first shards get one more, as dealing out in turn gives them.
    const uint64_t each = samples.size() / shards, more = samples.size() % shards;
    uint64_t end = 0;
    for (uint64_t shard = 0; shard < shards; ++shard) ends.push_back(end += each + (shard < more ? 1 : 0));
    return ends;
  }
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < samples.size(); ++i) {
    const uint64_t next = bytes + packed_bytes(plan, samples[i]);
    // The cut goes to whichever side of this sample is nearer to where it should be.
    while (ends.size() + 1 < shards) {
      const auto target =
          static_cast<uint64_t>(static_cast<unsigned __int128>(total_bytes) * (ends.size() + 1) / shards);
      if (next < target) break;
      const bool before = target - std::min(target, bytes) < next - target;
      const uint64_t end = before ? i : i + 1;
      // No shard stays empty, and enough samples stay for the rest.
      const uint64_t least = ends.empty() ? 1 : ends.back() + 1,
                     most = samples.size() - (shards - ends.size() - 1);
      ends.push_back(std::clamp(end, least, most));
    }
    bytes = next;
  }
  while (ends.size() + 1 < shards) ends.push_back(samples.size() - (shards - ends.size() - 1));
  ends.push_back(samples.size());
  return ends;
}

// Container fields as pieces of files, so that the plan needs no open dataset any more.
Status resolve_containers(Plan& plan) {
  Catalog& catalog = plan.catalog;
  std::vector<std::vector<uint32_t>> files(catalog.containers.size());      // per container and shard
  std::vector<std::vector<uint16_t>> pipelines(catalog.containers.size());  // per container and pipeline
  for (size_t i = 0; i < catalog.containers.size(); ++i) {
    const Dataset& dataset = *catalog.containers[i];
    for (uint32_t shard = 0; shard < dataset.manifest().shards.size(); ++shard) {
      const ShardSpec& spec = dataset.manifest().shards[shard];
      files[i].push_back(static_cast<uint32_t>(plan.piece_files.size()));
      // Checks tell more than a date, which copies lose.
      plan.piece_files.push_back(
          {dataset.shard_path(shard), spec.bytes, spec.hash.empty() ? spec.mtime_ns : 0});
    }
    for (const Pipeline& pipeline : dataset.manifest().pipelines) {
      auto found = std::find(plan.pipelines.begin(), plan.pipelines.end(), pipeline);
      if (found == plan.pipelines.end()) found = plan.pipelines.insert(found, pipeline);
      pipelines[i].push_back(static_cast<uint16_t>(found - plan.pipelines.begin()));
    }
  }
  std::vector<std::pair<Block, Slice>> slices;
  for (Cell& cell : catalog.cells) {
    if (cell.origin != Origin::container) continue;
    PACKTRAIN_TRY(catalog.containers[cell.source]->slices(cell.where, cell.inner_field, slices));
    cell.where = plan.pieces.size();
    cell.inner_field = static_cast<uint32_t>(slices.size());
    for (const auto& [block, slice] : slices) {
      plan.pieces.push_back({files[cell.source][block.shard], pipelines[cell.source][block.pipeline],
                             block.check_kind, block.hole, block.check, block.offset, block.stored, block.raw,
                             slice.start, slice.length});
    }
  }
  catalog.containers.clear();
  return {};
}

}  // namespace

uint64_t Plan::expected_size(const Cell& cell) const {
  if (!cell.converted || cost.bytes_before == 0) return cell.size;
  return static_cast<uint64_t>(static_cast<unsigned __int128>(cell.size) * cost.bytes_after /
                               cost.bytes_before);
}

Result<std::string> plan_identity(Storage& storage, const PackOptions& options) {
  Json json = Json::object();
  Json sources = Json::array();
  for (const auto& [split, path] : options.sources) sources.push(Json::array().push(split).push(path));
  json.append("sources", std::move(sources)).append("root", options.root).append("format", options.format);
  json.append("shards", options.shards)
      .append("shard_bytes", options.shard_bytes)
      .append("ranks", options.ranks);
  json.append("order", order_name(options.order))
      .append("seed", options.seed)
      .append("compress", options.compress);
  json.append("path_column", options.path_column).append("label_column", options.label_column);
  // Only where it is given, so that a pack that an earlier version began goes on.
  if (!options.split_column.empty()) json.append("split_column", options.split_column);
  Json sidecars = Json::array();
  for (const std::string& sidecar : options.sidecars) sidecars.push(sidecar);
  json.append("sidecars", std::move(sidecars));
  PACKTRAIN_ASSIGN(conversion, parse_conversion(options));
  if (conversion.any())
    json.append("image", options.image)
        .append("max_side", options.max_side)
        .append("baseline", options.baseline);
  if (!options.classes_file.empty()) {
    PACKTRAIN_ASSIGN(text, read_whole(storage, options.classes_file));
    json.append("classes", xxh128_hex(as_bytes(text)));
  }
  return json.dump();
}

Result<Plan> make_plan(Storage& storage, Catalog catalog, const PackOptions& options) {
  if (catalog.samples.empty()) {
    return Status(Code::not_found, "no samples were found in the source; is it the right one?");
  }
  Plan plan;
  plan.format = options.format;
  plan.compress = options.compress == "auto" ? "none" : options.compress;
  PACKTRAIN_ASSIGN(identity, plan_identity(storage, options));
  plan.identity = std::move(identity);
  if (catalog.samples.size() > kMostSamples)
    return Status(Code::unsupported, "the source has " + count_in_words(catalog.samples.size()) +
                                         " samples, and a dataset at most " + count_in_words(kMostSamples) +
                                         "; pack it as several datasets");
  plan.fingerprint = source_fingerprint(catalog);
  plan.pipelines.push_back({});
  plan.catalog = std::move(catalog);
  plan.renamed = make_keys(plan.catalog);
  PACKTRAIN_TRY(resolve_containers(plan));

  PACKTRAIN_ASSIGN(conversion, parse_conversion(options));
  plan.conversion = conversion;
  PACKTRAIN_ASSIGN(cost, measure_conversion(storage, plan, options));
  plan.cost = cost;

  const Format* format = find_format(options.format);
  if (!format)
    return Status(Code::unsupported,
                  "there is no format '" + options.format + "'; packtrain doctor lists them");
  const size_t splits = plan.catalog.splits.size();
  std::vector<BigVector<uint32_t>> of_split(splits);
  std::vector<uint64_t> bytes(splits), counts(splits);
  for (const CatalogSample& sample : plan.catalog.samples) ++counts[sample.split];
  for (size_t split = 0; split < splits; ++split) of_split[split].reserve(counts[split]);
  for (uint32_t i = 0; i < plan.catalog.samples.size(); ++i) {
    const uint32_t split = plan.catalog.samples[i].split;
    of_split[split].push_back(i);
    bytes[split] += packed_bytes(plan, i);
  }
  const uint64_t most_bytes = *std::max_element(bytes.begin(), bytes.end());
  if (options.shards != 0 && options.ranks > options.shards)
    plan.catalog.warnings.push_back("--ranks " + std::to_string(options.ranks) +
                                    " asks for a shard for each rank, which is more than --shards " +
                                    std::to_string(options.shards) + "; the larger number holds");
  for (uint32_t split = 0; split < splits; ++split) {
    BigVector<uint32_t>& samples = of_split[split];
    if (samples.empty()) continue;
    const bool by_bytes = options.shards == 0 && options.shard_bytes != 0;
    const uint64_t shard_bytes = options.shard_bytes != 0 ? options.shard_bytes : kDefaultShardBytes;
    uint64_t shards = (bytes[split] + shard_bytes - 1) / shard_bytes;
    if (format->cut == Cut::one_for_all || (format->cut == Cut::splits && options.shard_bytes == 0))
      shards = 1;
    if (options.shards != 0) {
      // The number is meant for the largest split; the others get theirs in proportion.
      shards = static_cast<uint64_t>(
          (static_cast<unsigned __int128>(options.shards) * bytes[split] + most_bytes - 1) /
          std::max<uint64_t>(most_bytes, 1));
    }
    shards = std::max(shards, options.ranks);
    if (shards > samples.size() && (options.shards != 0 || options.ranks > 1))
      plan.catalog.warnings.push_back(
          "split \"" + plan.catalog.splits[split] + "\" has " + counted(samples.size(), "sample") +
          ", so it gets " + counted(samples.size(), "shard") + " and not " + count_in_words(shards));
    shards = std::clamp<uint64_t>(shards, 1, samples.size());
    if (shards > kMostShards) {
      return Status(Code::invalid, "that would be " + count_in_words(shards) +
                                       " shards, more than six digits can number; "
                                       "choose a larger --shard-size or fewer --shards");
    }
    Random random(xxh64(as_bytes(plan.catalog.splits[split]), options.seed));
    if (options.order == PackOrder::shuffled) random.shuffle(samples, 0, samples.size());
    std::vector<uint64_t> ends;
    if (options.order == PackOrder::stratified) {
      if (by_bytes) {
        ends = stratify_by_bytes(plan, samples, shards, random);
      } else {
        stratify(plan.catalog, samples, shards, random);
      }
    }
    if (ends.empty()) ends = cut(plan, samples, shards, by_bytes, bytes[split]);
    const uint64_t base = plan.order.size();
    plan.order.insert(plan.order.end(), samples.begin(), samples.end());
    uint64_t first = 0;
    for (uint64_t end : ends) {
      plan.shards.push_back({"", split, base + first, end - first});
      first = end;
    }
    give_back(samples);
  }
  if (format->cut == Cut::one_for_all) {
    plan.shards = {{"data" + std::string(format->suffix), 0, 0, plan.order.size()}};
    return plan;
  }
  // Numbered within each split, from 0.
  uint32_t last_split = UINT32_MAX;
  unsigned number = 0;
  for (ShardPlan& shard : plan.shards) {
    number = shard.split == last_split ? number + 1 : 0;
    last_split = shard.split;
    char digits[16];
    std::snprintf(digits, sizeof digits, "-%06u", number);
    shard.name = plan.catalog.splits[shard.split] + digits + std::string(format->suffix);
    if (!format->inner_file.empty()) shard.name += "/" + std::string(format->inner_file);
  }
  return plan;
}

}  // namespace packtrain
