// Publishing: all shards are there; the index is made of their records, and the folder gets its name.
#pragma once

#include <string>

#include "pack/plan.h"
#include "pack/shard_rows.h"
#include "packtrain/pack.h"
#include "packtrain/status.h"

namespace packtrain {

struct PublishRequest {
  std::string out, part;  // OUT and OUT.part
  std::string token;      // unique to this process
  std::vector<std::string> sidecars;
  std::string log_json;  // what becomes pack.log.json
  uint64_t skip_bad = 0;
  bool durable = true;
};

// The record of a shard that is whole: visible, with a sound record, and of the size recorded.
Result<ShardRows> finished_shard(Storage& storage, const std::string& part, const ShardPlan& shard);

// How many files and folders a dataset is, whose shards and files have these paths: with its manifest, its
// log and its own folder.
uint64_t inodes_of(const std::vector<std::string>& paths);
uint64_t inodes_of(const Manifest& manifest);

// What a scan took out, as far as it is named.
std::vector<BadSample> bad_of_scan(const Catalog& catalog);

// Every shard of the plan must be finished. Bytes are deterministic, so several processes may do this at
// once: whoever renames the folder first has done it for all, and the others fail. Fills the report's counts.
// Gives the plan's samples up on the way, to save memory.
Status publish(Storage& storage, Plan& plan, const Format& format, const PublishRequest& request,
               PackReport& report);
// The last steps alone, for a run that was killed between them: OUT.part already has its manifest.
Status publish_folder(Storage& storage, const std::string& part, const std::string& out);
// Whether a file of OUT.part is of the making only, and goes away when it is published.
bool is_work_file(std::string_view name);
bool is_whole_part(Storage& storage, const std::string& part);

}  // namespace packtrain
