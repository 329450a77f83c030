// What was learnt while a shard was written, kept beside it until the index is made of all of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "pack/plan.h"
#include "packtrain/pack.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

inline constexpr size_t kSourceHashBytes = 16;  // XXH3-128, high half first

struct ShardRows {
  uint64_t bytes = 0;            // of the shard
  std::vector<uint32_t> checks;  // crc32c per member, in the order of the shard
  std::vector<uint64_t> sizes;   // per member; empty where the plan knows them
  std::string source_hashes;     // kSourceHashBytes a sample, zeros where it was not converted; or empty
  std::vector<uint32_t> widths, heights;  // per sample; 0 where it is no image
  std::vector<uint32_t> block_checks;
  std::vector<uint64_t> left_out;  // samples of the catalog that could not be read, sorted
  std::vector<BadSample> reasons;  // for each of their bad files
};

Status write_rows(Storage& storage, const std::string& path, const ShardRows& rows,
                  const WriteOptions& options);
Result<ShardRows> decode_rows(Bytes bytes);
// Beside the shards, also of one that lies in a folder of its own.
inline std::string rows_name(const ShardPlan& shard) {
  std::string name = shard.name + ".rows";
  std::replace(name.begin(), name.end(), '/', '+');
  return name;
}

}  // namespace packtrain
