// Sidecars: the indexes that other tools want beside tar shards.
//
//   wids     SPLIT.wids.json   one per split: shards with their sample counts
//   dali     SHARD.idx         "v1.2 N", then a line per sample: for each member its extension, the offset of
//                              its data, its size and its name
//   energon  SHARD.tar.idx     u64 per sample: offset of its first head; then the offset behind the last
//            .nv-meta/         .info.json (shard counts), split.yaml, dataset.yaml
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "packtrain/status.h"

namespace packtrain {

// Names of the sidecars there are; a wrong one is Code::invalid.
Status check_sidecars(const std::vector<std::string>& names, std::string_view format);

// Whether `path`, relative to a dataset's folder, is a file that a tool makes by itself beside our sidecars:
// it may be there, and nothing is known of its bytes.
bool is_made_by_other_tools(std::string_view path);

// What one shard adds. One thread at a time.
class SidecarShard {
 public:
  SidecarShard(bool dali, bool energon) : dali_(dali), energon_(energon) {}
  void begin_sample(uint64_t head_offset);
  void add_member(std::string_view extension, std::string_view name, uint64_t data_offset, uint64_t size);
  void end(uint64_t tail_offset);

 private:
  friend class Sidecars;
  bool dali_, energon_;
  std::string name_, split_;
  uint64_t bytes_ = 0, samples_ = 0;
  std::string dali_lines_, energon_offsets_;
};

class Sidecars {
 public:
  explicit Sidecars(const std::vector<std::string>& names);
  SidecarShard& add_shard(std::string_view name, std::string_view split,
                          uint64_t bytes);                          // valid until finish
  std::vector<std::pair<std::string, std::string>> finish() const;  // (path in the folder, bytes)

 private:
  bool wids_ = false, dali_ = false, energon_ = false;
  std::deque<SidecarShard> shards_;
};

// The paths of the sidecars that shards, of these names and splits, will have.
std::vector<std::string> sidecar_paths(const std::vector<std::string>& names,
                                       const std::vector<std::pair<std::string, std::string>>& shards);

}  // namespace packtrain
