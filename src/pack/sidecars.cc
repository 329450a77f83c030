#include "pack/sidecars.h"

#include <algorithm>

#include "base/json.h"
#include "base/little_endian.h"

namespace packtrain {
namespace {

constexpr std::string_view kEnergonVersion = "7.0.0";  // whose layout of .nv-meta this is

// Of "v1.0-000000.tar" only the last part: a split's name may have dots.
std::string without_suffix(const std::string& shard) { return shard.substr(0, shard.rfind(".tar")); }

std::string yaml_quoted(const std::string& text) {
  // A double-quoted YAML scalar takes JSON's escapes.
  return Json(text).dump();
}

}  // namespace

Status check_sidecars(const std::vector<std::string>& names, std::string_view format) {
  for (const std::string& name : names) {
    if (name != "wids" && name != "dali" && name != "energon") {
      return Status(Code::invalid, "there is no sidecar '" + name + "'; choose from wids, dali, energon");
    }
  }
  if (!names.empty() && format != "webdataset") {
    return Status(Code::invalid, "sidecars belong to tar shards; use them with --format webdataset");
  }
  return {};
}

bool is_made_by_other_tools(std::string_view path) {
  // `energon prepare --tar-index-only` makes them, for datasets that are joined or read by name.
  return path == ".nv-meta/index.sqlite" || path == ".nv-meta/index.uuid";
}

void SidecarShard::begin_sample(uint64_t head_offset) {
  ++samples_;
  if (dali_ && samples_ > 1) dali_lines_ += '\n';
  if (energon_) {
    char bytes[8];
    store_le(bytes, head_offset);
    energon_offsets_.append(bytes, sizeof bytes);
  }
}

void SidecarShard::add_member(std::string_view extension, std::string_view name, uint64_t data_offset,
                              uint64_t size) {
  if (!dali_) return;
  if (!dali_lines_.empty() && dali_lines_.back() != '\n') dali_lines_ += ' ';
  dali_lines_.append(extension).append(1, ' ').append(std::to_string(data_offset)).append(1, ' ');
  dali_lines_.append(std::to_string(size)).append(1, ' ').append(name);
}

void SidecarShard::end(uint64_t tail_offset) {
  if (dali_ && samples_ > 0) dali_lines_ += '\n';
  if (energon_) {
    char bytes[8];
    store_le(bytes, tail_offset);
    energon_offsets_.append(bytes, sizeof bytes);
  }
}

Sidecars::Sidecars(const std::vector<std::string>& names) {
  const auto wanted = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  wids_ = wanted("wids");
  dali_ = wanted("dali");
  energon_ = wanted("energon");
}

SidecarShard& Sidecars::add_shard(std::string_view name, std::string_view split, uint64_t bytes) {
  SidecarShard& shard = shards_.emplace_back(dali_, energon_);
  shard.name_ = name;
  shard.split_ = split;
  shard.bytes_ = bytes;
  return shard;
}

std::vector<std::string> sidecar_paths(const std::vector<std::string>& names,
                                       const std::vector<std::pair<std::string, std::string>>& shards) {
  Sidecars sidecars(names);
  for (const auto& [shard, split] : shards) sidecars.add_shard(shard, split, 0);
  std::vector<std::string> paths;
  for (auto& [path, bytes] : sidecars.finish()) paths.push_back(std::move(path));
  return paths;
}

std::vector<std::pair<std::string, std::string>> Sidecars::finish() const {
  std::vector<std::pair<std::string, std::string>> files;
  std::vector<std::string> splits;
  for (const SidecarShard& shard : shards_) {
    if (splits.empty() || splits.back() != shard.split_) splits.push_back(shard.split_);
    if (dali_) {
      files.emplace_back(without_suffix(shard.name_) + ".idx",
                         "v1.2 " + std::to_string(shard.samples_) + "\n" + shard.dali_lines_);
    }
    if (energon_) files.emplace_back(shard.name_ + ".idx", shard.energon_offsets_);
  }
  if (wids_) {
    for (const std::string& split : splits) {
      Json list = Json::array();
      for (const SidecarShard& shard : shards_) {
        if (shard.split_ != split) continue;
        list.push(Json::object()
                      .append("url", shard.name_)
                      .append("nsamples", shard.samples_)
                      .append("filesize", shard.bytes_));
      }
      Json json = Json::object();
      json.append("__kind__", "wids-shard-index-v1").append("wids_version", 1).append("name", split);
      json.append("shardlist", std::move(list));
      files.emplace_back(split + ".wids.json", json.dump(1) + "\n");
    }
  }
  if (energon_) {
    Json counts = Json::object();
    for (const SidecarShard& shard : shards_) counts.append(shard.name_, shard.samples_);
    Json info = Json::object();
    info.append("energon_version", kEnergonVersion).append("shard_counts", std::move(counts));
    files.emplace_back(".nv-meta/.info.json", info.dump(1) + "\n");
    files.emplace_back(".nv-meta/dataset.yaml", "__class__: CrudeWebdataset\n__module__: megatron.energon\n");
    std::string yaml = "exclude: []\nsplit_parts:\n";
    for (const std::string& split : splits) {
      yaml += "  " + yaml_quoted(split) + ":\n";
      for (const SidecarShard& shard : shards_) {
        if (shard.split_ == split) yaml += "  - " + yaml_quoted(shard.name_) + "\n";
      }
    }
    files.emplace_back(".nv-meta/split.yaml", std::move(yaml));
  }
  return files;
}

}  // namespace packtrain
