#include "pack/extract_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/hash.h"
#include "base/words.h"
#include "pack/extract_path.h"

namespace packtrain {
namespace {

constexpr uint64_t kDiskBlockBytes = 4096;
constexpr uint64_t kDeflateRatio = 1032;  // DEFLATE cannot make a byte into more

constexpr std::string_view kWayOut =
    "extract with --by-key to name the files KEY.FIELD, or choose some of them with --split, --keys or "
    "--fields";

// Where the names are those of the keys already.
constexpr std::string_view kKeysWayOut =
    "choose some of them with --split, --keys or --fields, or pack the set (packtrain pack SET OUT), which "
    "gives "
    "every sample a key of its own, and extract that";

std::string_view way_out(bool by_key) { return by_key ? kKeysWayOut : kWayOut; }

std::string field_in_words(const Dataset& dataset, uint64_t sample, uint32_t field) {
  const Result<std::string_view> key = dataset.key(sample);
  return fmt::format("{}.{}", key.ok() ? printable(*key) : fmt::format("sample {}", sample),
                     dataset.manifest().fields[field].name);
}

Status at_sample(const Status& status, const Dataset& dataset, uint64_t sample, uint32_t field) {
  return status.at(field_in_words(dataset, sample, field));
}

constexpr size_t kLongestPart = 255;  // NAME_MAX of every filesystem in use

size_t longest_part(std::string_view path) {
  size_t longest = 0;
  for (size_t at = 0; at <= path.size();) {
    const size_t slash = std::min(path.find('/', at), path.size());
    longest = std::max(longest, slash - at);
    at = slash + 1;
  }
  return longest;
}

// A compressed field that claims more than its stored bytes can hold is a bomb or damage, whatever it decodes
// to.
Status check_claim(const Dataset& dataset, uint64_t sample, uint32_t field) {
  std::vector<std::pair<Block, Slice>> slices;
  PACKTRAIN_TRY(dataset.slices(sample, field, slices));
  for (const auto& [block, slice] : slices) {
    const Pipeline& pipeline = dataset.manifest().pipelines[block.pipeline];
    const bool deflate = !pipeline.empty() && (pipeline[0].name == "deflate" || pipeline[0].name == "zlib" ||
                                               pipeline[0].name == "gzip_member");
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
  plan.by_key_ = options.by_key;
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
  PACKTRAIN_ASSIGN(selection, packtrain::select_samples(dataset, options.split, options.class_name));
  if (options.keys.empty()) {
    for (uint64_t sample = selection.first; sample < selection.end; ++sample) {
      if (selection.has(dataset, sample)) samples_.push_back(sample);
    }
    return {};
  }
  for (const std::string& key : options.keys) {
    PACKTRAIN_ASSIGN(sample, dataset.find(key));
    if (selection.has(dataset, sample)) samples_.push_back(sample);
  }
  std::sort(samples_.begin(), samples_.end());
  samples_.erase(std::unique(samples_.begin(), samples_.end()), samples_.end());
  return {};
}

Result<std::string> ExtractPlan::target(const Dataset& dataset, uint64_t sample, uint32_t field) const {
  const bool named = std::find(fields_.begin(), fields_.end(), field) != fields_.end();
  if (!fields_.empty() && !named) return std::string();
  if (std::binary_search(written_by_others_.begin(), written_by_others_.end(), std::pair(sample, field)))
    return std::string();
  PACKTRAIN_ASSIGN(recorded, dataset.path(sample, field));
  if (!recorded.empty() && !by_key_) return path_below_target(recorded);
  if (recorded.empty() && !named) return std::string();  // packtrain made it: it was no file
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
      if (const size_t longest = longest_part(*path); longest > kLongestPart) {
        // Members of an archive, and of an object store, may be called as no file can be.
        return at_sample(
            Status(Code::invalid,
                   fmt::format("a part of its name has {} bytes, and filesystems take {} at most; {}",
                               longest, kLongestPart, way_out(by_key_))),
            dataset, sample, field);
      }
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
  for (const Target& one : targets) {
    PACKTRAIN_ASSIGN(path, target(dataset, one.sample, one.field));
    if (folders_.count(path) > 0) {
      return at_sample(Status(Code::corrupt, fmt::format("its name '{}' is also that of a folder; {}",
                                                         printable(path), way_out(by_key_))),
                       dataset, one.sample, one.field);
    }
  }
  return share_names(dataset, targets);
}

// Fields that have one name are one file if their bytes are equal, as when a list names a file twice.
Status ExtractPlan::share_names(const Dataset& dataset, std::vector<Target>& targets) {
  std::vector<std::byte> bytes, other_bytes;
  std::vector<bool> shared(targets.size());
  std::vector<std::pair<uint64_t, uint32_t>> found;
  for (size_t i = 0; i < targets.size(); ++i) {
    const Target& one = targets[i];
    if (shared[i]) continue;
    std::string path;
    for (size_t j = i + 1; j < targets.size() && targets[j].hash == one.hash; ++j) {
      const Target& other = targets[j];
      if (shared[j]) continue;
      if (path.empty()) {
        PACKTRAIN_ASSIGN(mine, target(dataset, one.sample, one.field));
        path = std::move(mine);
        PACKTRAIN_TRY(dataset.read(one.sample, one.field, bytes));
      }
      PACKTRAIN_ASSIGN(other_path, target(dataset, other.sample, other.field));
      if (other_path != path) continue;
      PACKTRAIN_TRY(dataset.read(other.sample, other.field, other_bytes));
      if (other_bytes != bytes) {
        return Status(Code::invalid, fmt::format("{} and {} differ, and would both become the file '{}'; {}",
                                                 field_in_words(dataset, one.sample, one.field),
                                                 field_in_words(dataset, other.sample, other.field),
                                                 printable(path), way_out(by_key_)));
      }
      shared[j] = true;
      found.emplace_back(other.sample, other.field);
      --files_;
      bytes_ -= bytes.size();
    }
  }
  std::sort(found.begin(), found.end());
  written_by_others_ = std::move(found);
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
