// Containers that cannot be planned (their layout depends on compressed sizes, or their own writer decides)
// are written front to back, several shards at a time.
#include <algorithm>

#include "base/hash.h"
#include "base/threads.h"
#include "base/words.h"
#include "pack/writers.h"
#include "packtrain/decode.h"

namespace packtrain {
namespace {

Status write_shard(WriteContext& context, const ShardPlan& shard) {
  const Catalog& catalog = context.plan.catalog;
  WriteSpec spec;
  spec.compress = context.plan.compress;
  spec.compressed = context.plan.compressed;
  spec.write = shard_write_options(context);
  spec.samples = shard.count;
  spec.fields = context.fields.names;
  spec.labels = context.fields.labels;
  for (uint64_t i = shard.first; i < shard.first + shard.count; ++i) {
    const uint64_t sample = context.plan.order[i];
    for (uint64_t cell = catalog.samples[sample].first_cell; cell < catalog.end_cell(sample); ++cell) {
      spec.expected_bytes += catalog.cells[cell].size + 256;
    }
  }
  const std::string path = context.shard_path(shard);
  if (!context.format.inner_file.empty()) {
    // Making a folder would make OUT.part again, should another task have published it meanwhile.
    PACKTRAIN_TRY(context.storage.stat(context.folder).status());
    PACKTRAIN_TRY(context.storage.make_folder(path.substr(0, path.rfind('/'))));
  }
  PACKTRAIN_ASSIGN(writer, context.format.create(context.storage, path, spec));
  ShardRows rows;
  std::vector<SampleToWrite::Field> fields;
  std::vector<std::vector<std::byte>> bytes;
  std::vector<uint32_t> checks;
  uint32_t split = UINT32_MAX;
  for (uint64_t i = shard.first; i < shard.first + shard.count; ++i) {
    const uint64_t sample = context.plan.order[i];
    const uint64_t first = catalog.samples[sample].first_cell, end = catalog.end_cell(sample);
    fields.clear();
    checks.clear();
    bytes.resize(std::max<size_t>(bytes.size(), end - first));
    uint32_t width = 0, height = 0;
    uint64_t total = 0;
    bool sound = true;
    for (uint64_t at = first; at < end; ++at) {
      const Cell& cell = catalog.cells[at];
      if (!context.fields.has(catalog.fields[cell.field])) continue;
      std::vector<std::byte>& data = bytes[at - first];
      data.resize(cell.size);
      if (Status status = context.fetcher.fetch(cell, data); !status.ok()) {
        if (!is_bad_sample(status)) return status.at(printable(context.fetcher.source_path(cell)));
        rows.left_out.push_back(sample);
        rows.reasons.push_back(bad_sample(context, cell, status));
        sound = false;
        break;
      }
      checks.push_back(crc32c(data));
      fields.push_back({catalog.fields[cell.field], data});
      total += cell.size;
      if (width == 0) {
        if (const auto shape = image_shape(data))
          std::tie(width, height) = std::pair(shape->width, shape->height);
      }
    }
    if (!context.meter.add(1, total))
      return Status(Code::stopped, "stopped; run the same command again to go on");
    if (!sound) continue;
    if (catalog.samples[sample].split != split) {
      split = catalog.samples[sample].split;
      PACKTRAIN_TRY(writer->begin_split(catalog.splits[split]));
    }
    PACKTRAIN_TRY(writer->add(
        {.key = context.plan.key(sample), .label = catalog.samples[sample].label, .fields = fields}));
    rows.checks.insert(rows.checks.end(), checks.begin(), checks.end());
    rows.widths.push_back(width);
    rows.heights.push_back(height);
  }
  std::sort(rows.left_out.begin(), rows.left_out.end());
  if (!rows.left_out.empty() && !context.give_up(rows.left_out.size())) {
    context.report_bad(rows.reasons);
    return {};
  }
  // The block checks can only be taken from the finished container, so here the record comes second; a shard
  // without one is written again.
  PACKTRAIN_TRY(writer->finish());
  PACKTRAIN_ASSIGN(block_checks, read_block_checks(context.storage, path));
  PACKTRAIN_ASSIGN(info, context.storage.stat(path));
  rows.block_checks = std::move(block_checks);
  rows.bytes = info.size;
  return write_rows(context, shard, rows);
}

}  // namespace

Status write_serial(WriteContext& context, const std::vector<uint32_t>& shards) {
  std::atomic<size_t> next = 0;
  Mutex mutex;
  Status failure;
  const auto failed = [&] {
    Lock lock(mutex);
    return !failure.ok();
  };
  run_on("pack-write", std::min<uint32_t>(context.threads, static_cast<uint32_t>(shards.size())),
         [&](uint32_t) {
           for (size_t i = next++; i < shards.size() && !failed(); i = next++) {
             Status status = write_shard(context, context.plan.shards[shards[i]]);
             Lock lock(mutex);
             if (!status.ok() && failure.ok()) failure = status;
           }
         });
  return failure;
}

}  // namespace packtrain
