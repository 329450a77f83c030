#include "pack/plan_report.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "pack/look_ahead.h"
#include "pack/publish.h"
#include "pack/sidecars.h"

namespace packtrain {

namespace {

uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// What a value takes in a shard: exactly in a tar, roughly in formats whose pages and tables are laid out
// only while they are written. Those are not rounded up: room that is there must not be refused.
uint64_t planned_bytes_of_value(const std::string& format, uint64_t key_bytes, uint64_t bytes) {
  constexpr uint64_t kTarBlock = 512;
  constexpr uint64_t kZipRecords = 30 + 46;  // before the bytes, and in the directory; both have the name
  constexpr uint64_t kPage = 4096, kPageHeader = 16, kLargestInPage = 2000;
  constexpr uint64_t kOffset = 8;
  if (format == "webdataset") return kTarBlock + round_up(bytes, kTarBlock);
  if (format == "zip") return kZipRecords + 2 * key_bytes + bytes;
  if (format == "lmdb" && bytes > kLargestInPage) return round_up(bytes + kPageHeader, kPage);
  return kOffset + bytes;
}

}  // namespace

uint64_t planned_bytes(const Plan& plan, const std::vector<uint32_t>& shards) {
  const uint64_t tail = plan.format == "webdataset" ? 1024 : 0;  // two empty blocks
  uint64_t bytes = 0;
  for (uint32_t number : shards) {
    bytes += tail;
    const ShardPlan& shard = plan.shards[number];
    for (uint64_t i = shard.first; i < shard.first + shard.count; ++i) {
      look_ahead(plan, i, shard.first + shard.count);
      const uint64_t key_bytes = plan.catalog.samples[plan.order[i]].stem.bytes;
      for (const Cell& cell : SampleCells(plan.catalog, plan.order[i]))
        bytes += planned_bytes_of_value(plan.format, key_bytes, plan.expected_size(cell));
    }
  }
  return bytes;
}

void describe_plan(const Plan& plan, const std::vector<std::string>& sidecars, PackReport& report) {
  report.samples = plan.order.size();
  report.shards = plan.shards.size();
  report.payload_bytes = plan.catalog.bytes;
  report.inodes_before = plan.catalog.files;
  report.renamed = plan.renamed;
  report.warnings = plan.catalog.warnings;
  report.compression = plan.findings;
  for (const CatalogRoot& root : plan.catalog.roots) report.roots.push_back(root.folder);
  const Skipped& skipped = plan.catalog.skipped;
  report.hidden_skipped = skipped.hidden;
  report.temporary_skipped = skipped.temporary;
  report.other_skipped = skipped.special + skipped.broken_links + skipped.loops;
  std::vector<bool> used(plan.catalog.fields.size(), !plan.conversion.any());
  if (plan.conversion.any()) {  // which leaves names behind that no field has any more
    for (const Cell& cell : plan.catalog.cells) used[cell.field] = true;
    for (const CatalogSample& sample : plan.catalog.samples)
      if (sample.label_is_field) used[plan.catalog.label_field] = true;
  }
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i]) report.fields.push_back(plan.catalog.fields[i]);
  std::sort(report.fields.begin(), report.fields.end());
  report.splits = plan.catalog.splits;
  report.classes = plan.catalog.classes.size();
  std::vector<std::pair<std::string, std::string>> shards;
  for (const ShardPlan& shard : plan.shards)
    shards.emplace_back(shard.name, plan.catalog.splits[shard.split]);
  std::vector<std::string> paths = sidecar_paths(sidecars, shards);
  for (const char* name : {"index.npz", "names.npz"}) paths.emplace_back(name);
  for (const ShardPlan& shard : plan.shards) paths.push_back(shard.name);
  report.inodes_after = inodes_of(paths);
  report.conversion = plan.cost;
  std::vector<uint32_t> all(plan.shards.size());
  std::iota(all.begin(), all.end(), 0U);
  report.bytes = planned_bytes(plan, all);
}

}  // namespace packtrain
