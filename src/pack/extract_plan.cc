#include "pack/extract_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/hash.h"
#include "base/words.h"
#include "pack/extract_path.h"

namespace packtrain {
namespace {

constexpr uint64_t kDiskBlockBytes = 4096;
constexpr uint64_t kDeflateRatio = 1032;  // DEFLATE cannot make a byte into more

struct Target {
  uint64_t hash, sample;
  uint32_t field;
  bool operator<(const Target& other) const { return hash < other.hash; }
};

Result<int64_t> label_of(const Manifest& manifest, const std::string& name) {
  const auto at = std::find(manifest.classes.begin(), manifest.classes.end(), name);
  if (at != manifest.classes.end()) return at - manifest.classes.begin();
  int64_t label = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), label);
  if (error == std::errc() && end == name.data() + name.size()) return label;
  return Status(Code::not_found,
                fmt::format("there is no class '{}'; packtrain info lists them", printable(name)));
}

Status at_sample(const Status& status, const Dataset& dataset, uint64_t sample, uint32_t field) {
  const Result<std::string_view> key = dataset.key(sample);
  return status.at(fmt::format("{}.{}", key.ok() ? printable(*key) : fmt::format("sample {}", sample),
                               dataset.manifest().fields[field].name));
}

// A compressed field that claims more than its stored bytes can hold is a bomb or damage, whatever it decodes
// to.
Status check_claim(const Dataset& dataset, uint64_t sample, uint32_t field) {
  std::vector<std::pair<Block, Slice>> slices;
  PACKTRAIN_TRY(dataset.slices(sample, field, slices));
  for (const auto& [block, slice] : slices) {
    const Pipeline& pipeline = dataset.manifest().pipelines[block.pipeline];
    const bool deflate = pipeline.size() == 1 && pipeline[0].name == "deflate";
    if (deflate && !block.hole && block.raw / kDeflateRatio > block.stored) {
      return Status(Code::corrupt,
                    fmt::format("it claims to unpack {} bytes into {}, which DEFLATE cannot hold",
                                block.stored, block.raw));
    }
  }
  return {};
}

}  // namespace

Result<ExtractPlan> ExtractPlan::make(const Dataset& dataset, const ExtractOptions& options) {
  ExtractPlan plan;
  for (const std::string& name : options.fields) {
    const uint32_t field = dataset.manifest().field_id(name);
    if (field == UINT32_MAX) {
      return Status(Code::not_found,
                    fmt::format("there is no field '{}'; packtrain info lists them", printable(name)));
    }
    plan.fields_.push_back(field);
  }
  PACKTRAIN_TRY(plan.select_samples(dataset, options));
  PACKTRAIN_TRY(plan.add_samples(dataset));
  if (plan.files_ == 0 && !plan.samples_.empty()) {
    return Status(
        Code::invalid,
        "none of the fields has a name of its own to be extracted under; name fields with --fields");
  }
  return plan;
}

Status ExtractPlan::select_samples(const Dataset& dataset, const ExtractOptions& options) {
  uint64_t first = 0, end = dataset.samples();
  if (!options.split.empty()) {
    const auto& splits = dataset.manifest().splits;
    const auto split = std::find_if(splits.begin(), splits.end(),
                                    [&](const SplitSpec& each) { return each.name == options.split; });
    if (split == splits.end()) {
      return Status(Code::not_found, fmt::format("there is no split '{}'; packtrain info lists them",
                                                 printable(options.split)));
    }
    first = split->first;
    end = first + split->count;
  }
  int64_t label = kNoLabel;
  if (!options.class_name.empty()) {
    PACKTRAIN_ASSIGN(found, label_of(dataset.manifest(), options.class_name));
    label = found;
  }
  const auto wanted = [&](uint64_t sample) {
    return sample >= first && sample < end && (label == kNoLabel || dataset.label(sample) == label);
  };
  if (options.keys.empty()) {
    for (uint64_t sample = first; sample < end; ++sample) {
      if (wanted(sample)) samples_.push_back(sample);
    }
    return {};
  }
  for (const std::string& key : options.keys) {
    PACKTRAIN_ASSIGN(sample, dataset.find(key));
    if (wanted(sample)) samples_.push_back(sample);
  }
  std::sort(samples_.begin(), samples_.end());
  samples_.erase(std::unique(samples_.begin(), samples_.end()), samples_.end());
  return {};
}

Result<std::string> ExtractPlan::target(const Dataset& dataset, uint64_t sample, uint32_t field) const {
  const bool named = std::find(fields_.begin(), fields_.end(), field) != fields_.end();
  if (!fields_.empty() && !named) return std::string();
  PACKTRAIN_ASSIGN(recorded, dataset.path(sample, field));
  if (!recorded.empty()) return path_below_target(recorded);
  if (!named) return std::string();  // packtrain made it: it was no file
  PACKTRAIN_ASSIGN(key, dataset.key(sample));
  return path_below_target(std::string(key) + "." + dataset.manifest().fields[field].name);
}

Status ExtractPlan::add_samples(const Dataset& dataset) {
  std::vector<Target> targets;
  const auto field_count = static_cast<uint32_t>(dataset.manifest().fields.size());
  for (uint64_t sample : samples_) {
    for (uint32_t field = 0; field < field_count; ++field) {
      const FieldLocation at = dataset.locate(sample, field);
      if (!at.present) continue;
      Result<std::string> path = target(dataset, sample, field);
      if (!path.ok()) return at_sample(path.status(), dataset, sample, field);
      if (path->empty()) continue;
      if (!at.plain) {
        if (Status claim = check_claim(dataset, sample, field); !claim.ok()) {
          return at_sample(claim, dataset, sample, field);
        }
      }
      targets.push_back({xxh64(as_bytes(*path)), sample, field});
      add_folders_of(*path);
      ++files_;
      bytes_ += at.length;
      bytes_on_disk_ += (at.length + kDiskBlockBytes - 1) / kDiskBlockBytes * kDiskBlockBytes;
      largest_field_ = std::max(largest_field_, at.length);
    }
  }
  bytes_on_disk_ += folders_.size() * kDiskBlockBytes;
  std::sort(targets.begin(), targets.end());
  for (size_t i = 0; i < targets.size(); ++i) {
    const Target& one = targets[i];
    PACKTRAIN_ASSIGN(path, target(dataset, one.sample, one.field));
    if (folders_.count(path) > 0) {
      return at_sample(
          Status(Code::corrupt, fmt::format("its name '{}' is also that of a folder", printable(path))),
          dataset, one.sample, one.field);
    }
    for (size_t j = i + 1; j < targets.size() && targets[j].hash == one.hash; ++j) {
      PACKTRAIN_ASSIGN(other, target(dataset, targets[j].sample, targets[j].field));
      if (other != path) continue;
      const Status same(Code::corrupt,
                        fmt::format("would become the same file, '{}'; extract one of them with "
                                    "--keys or --fields",
                                    printable(path)));
      return at_sample(same.at("and"), dataset, one.sample, one.field)
          .at(at_sample(same, dataset, targets[j].sample, targets[j].field).where());
    }
  }
  return {};
}

void ExtractPlan::add_folders_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return;
  const std::string folder = path.substr(0, slash);
  if (folder == last_folder_) return;
  last_folder_ = folder;
  for (size_t at = 0; at < folder.size();) {
    at = std::min(folder.find('/', at), folder.size());
    folders_.insert(folder.substr(0, at));
    ++at;
  }
}

}  // namespace packtrain
