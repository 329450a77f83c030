#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "base/threads.h"
#include "base/words.h"
#include "pack/findings.h"
#include "pack/memory_gate.h"
#include "pack/progress_meter.h"
#include "pack/sequential_reader.h"
#include "pack/verify_folder.h"
#include "pack/verify_shard.h"
#include "pack/verify_structure.h"
#include "packtrain/format.h"
#include "packtrain/pack.h"
#include "packtrain/place.h"

namespace packtrain {
namespace {

// What one thread takes of a shard at a time. Small sets are cut finer, so that all threads end together.
constexpr uint64_t kFewestBlocksPerUnit = 4, kMostBlocksPerUnit = 16;  // 16 and 64 MiB
constexpr uint64_t kUnitsPerJob = 8;
constexpr uint64_t kSamplesPerUnit = 8 << 10;  // of work on rows

uint64_t bytes_of(const Manifest& manifest) {
  uint64_t bytes = 0;
  for (const ShardSpec& shard : manifest.shards) bytes += shard.bytes;
  return bytes;
}

// The shards of one dataset, taken apart into units that any thread can do. A shard is opened by the first
// thread that comes to it and closed by the one that does its last unit, so that few are held at a time.
// run() once.
class ShardsCheck {
 public:
  struct Facts {
    const Manifest& manifest;
    std::string folder;
    const Dataset* dataset;  // null: the index is damaged, only hashes can be compared
    bool names_sound = true;
    bool compare_structure = true;  // false: it was indexed just now
  };

  ShardsCheck(Storage& storage, Facts facts, const VerifyOptions& options, Findings& findings,
              ProgressMeter& meter)
      : storage_(storage), facts_(std::move(facts)), options_(options), findings_(findings), meter_(meter) {}

  Status run();
  bool structure_only() const { return structure_only_.load(); }

 private:
  struct Shard {
    uint32_t number = 0;
    std::vector<RowRange> samples;
    std::once_flag opened;
    Status open_status;
    std::unique_ptr<ShardCheck> check;  // null: nothing to look at
    uint64_t findings_before = 0;
    std::atomic<uint64_t> units_left{0};
  };
  enum class Kind : uint8_t { blocks, names, decoded };
  struct Unit {
    Kind kind;
    uint32_t shard = 0;
    uint64_t first = 0, end = 0;  // blocks of the shard, or samples
  };

  void plan(uint32_t jobs);
  void plan_names(uint64_t most);
  Status work(const Unit& unit, SequentialReader& reader);
  void open(Shard& shard);
  Status close(Shard& shard);
  std::string path_of(const ShardSpec& spec) const {
    return spec.path.starts_with('/') ? spec.path : facts_.folder + "/" + spec.path;
  }

  Storage& storage_;
  const Facts facts_;
  const VerifyOptions& options_;
  Findings& findings_;
  ProgressMeter& meter_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<Unit> units_;
  uint64_t names_planned_ = 0;  // samples
  std::atomic<bool> structure_only_{false};
  MemoryGate gate_;
};

// So many units of names at most; the next call goes on behind them.
void ShardsCheck::plan_names(uint64_t most) {
  if (facts_.dataset == nullptr || !facts_.names_sound) return;
  const uint64_t count = facts_.dataset->samples();
  for (; most > 0 && names_planned_ < count; --most) {
    const uint64_t first = std::exchange(names_planned_, std::min(names_planned_ + kSamplesPerUnit, count));
    units_.push_back({Kind::names, 0, first, names_planned_});
  }
}

void ShardsCheck::plan(uint32_t jobs) {
  const uint64_t blocks_per_unit = std::clamp(bytes_of(facts_.manifest) / kBlockBytes / (jobs * kUnitsPerJob),
                                              kFewestBlocksPerUnit, kMostBlocksPerUnit);
  std::vector<std::vector<RowRange>> samples(facts_.manifest.shards.size());
  if (facts_.dataset != nullptr) samples = samples_by_shard(*facts_.dataset);
  // Whoever comes to a shard first collects what lies in it, and who wants another unit of it waits. So the
  // first unit of a shard comes before the last half of the shard in front, and some names after the very
  // first.
  std::vector<Unit> rest;
  for (uint32_t number = 0; number < facts_.manifest.shards.size(); ++number) {
    auto shard = std::make_unique<Shard>();
    shard->number = number;
    shard->samples = std::move(samples[number]);
    const uint64_t blocks = (facts_.manifest.shards[number].bytes + kBlockBytes - 1) / kBlockBytes;
    std::vector<Unit> units;
    for (uint64_t first = 0; first == 0 || first < blocks; first += blocks_per_unit)
      units.push_back({Kind::blocks, number, first, std::min(first + blocks_per_unit, blocks)});
    shard->units_left = units.size();
    shards_.push_back(std::move(shard));
    units_.push_back(units.front());
    if (number == 0) plan_names(jobs);
    units_.insert(units_.end(), rest.begin(), rest.end());
    const auto half = units.begin() + static_cast<ptrdiff_t>((units.size() + 1) / 2);
    units_.insert(units_.end(), units.begin() + 1, half);
    rest.assign(half, units.end());
  }
  units_.insert(units_.end(), rest.begin(), rest.end());
  plan_names(UINT64_MAX);
  if (facts_.dataset == nullptr) return;
  const uint64_t count = facts_.dataset->samples();
  if (facts_.manifest.form == "rows") return;
  constexpr uint64_t kDecodedPerUnit = 256;  // payload is read, so that few are enough to be worth a turn
  for (uint64_t first = 0; first < count; first += kDecodedPerUnit) {
    units_.push_back({Kind::decoded, 0, first, std::min(first + kDecodedPerUnit, count)});
  }
}

Status ShardsCheck::run() {
  const uint32_t jobs = options_.jobs > 0 ? options_.jobs : granted().cores;
  plan(jobs);
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  Mutex mutex;
  Status first_failure;
  run_on("verify", static_cast<uint32_t>(std::min<size_t>(jobs, std::max<size_t>(1, units_.size()))),
         [&](uint32_t) {
           SequentialReader reader(storage_, true);
           for (size_t at = next++; at < units_.size() && !failed; at = next++) {
             const Status status = work(units_[at], reader);
             if (status.ok()) continue;
             Lock lock(mutex);
             if (!failed.exchange(true)) first_failure = status;
           }
         });
  return first_failure;
}

Status ShardsCheck::work(const Unit& unit, SequentialReader& reader) {
  if (meter_.stopped()) return Status(Code::stopped, "stopped; nothing was changed");
  if (unit.kind == Kind::names) return check_names(*facts_.dataset, unit.first, unit.end, findings_);
  if (unit.kind == Kind::decoded)
    return check_decoded(*facts_.dataset, unit.first, unit.end, gate_, findings_);
  Shard& shard = *shards_[unit.shard];
  std::call_once(shard.opened, [&] { open(shard); });
  PACKTRAIN_TRY(shard.open_status);
  if (shard.check != nullptr && shard.check->has_checks()) {
    const uint64_t end = std::min(unit.end, shard.check->blocks());
    if (unit.first < end) PACKTRAIN_TRY(shard.check->check_blocks(unit.first, end, reader));
  }
  return --shard.units_left == 0 ? close(shard) : Status();
}

void ShardsCheck::open(Shard& shard) {
  const ShardSpec& spec = facts_.manifest.shards[shard.number];
  shard.findings_before = findings_.count();
  auto check = std::make_unique<ShardCheck>(storage_, spec, path_of(spec), facts_.dataset, shard.number,
                                            std::move(shard.samples), findings_, meter_);
  const Result<bool> there = check->open();
  if (!there.ok()) {
    shard.open_status = there.status();
  } else if (*there) {
    if (check->lacks_checks()) structure_only_ = true;
    shard.check = std::move(check);
  }
}

Status ShardsCheck::close(Shard& shard) {
  if (shard.check == nullptr) {
    meter_.add(1, 0);
    return {};
  }
  const ShardSpec& spec = facts_.manifest.shards[shard.number];
  PACKTRAIN_ASSIGN(sound, shard.check->finish());
  // Where bytes are known to be damaged, a fresh look would only find the same damage again.
  if (sound && facts_.compare_structure && facts_.dataset != nullptr && !shard.check->structure_proved()) {
    const uint64_t before = findings_.count();
    PACKTRAIN_TRY(check_structure(storage_, *facts_.dataset, shard.number, shard.check->path(),
                                  shard.check->samples(), facts_.names_sound, findings_));
    sound = findings_.count() == before;
  }
  if (!sound && options_.recover) {
    findings_.add_recoverable(recoverable_in_words(storage_, spec.path, shard.check->path(), spec.samples));
  }
  shard.check.reset();
  meter_.add(1, 0);
  return {};
}

void count_in(VerifyReport& report, const Manifest& manifest) {
  report.samples += manifest.samples;
  report.shards += manifest.shards.size();
  report.bytes += bytes_of(manifest);
}

// Without a manifest nothing is known of the folder but what its files themselves say.
Status recover_folder(Storage& storage, const std::string& folder, Findings& findings) {
  std::vector<std::string> names;
  PACKTRAIN_TRY(storage.list(folder, [&](FolderEntry&& entry) {
    if (entry.kind == FileKind::file && !entry.name.ends_with(".npz") && !entry.name.ends_with(".json")) {
      names.push_back(std::move(entry.name));
    }
    return true;
  }));
  for (const std::string& name : names) {
    const std::string path = path_below(folder, name);
    if (recognise_format(storage, path).ok()) {
      findings.add_recoverable(recoverable_in_words(storage, name, path, 0));
    }
  }
  return {};
}

Result<VerifyReport> verify_folder(Storage& storage, const std::string& folder,
                                   const VerifyOptions& options) {
  VerifyReport report;
  Findings findings(options.max_findings);
  const Result<std::string> text = read_whole(storage, folder + "/manifest.json");
  if (!text.ok() && text.status().code() != Code::not_found) return text.status();
  Result<Manifest> manifest =
      text.ok() ? Manifest::decode(*text)
                : Result<Manifest>(Status(
                      Code::corrupt,
                      "the manifest is missing; restore it from another copy, or make the dataset again"));
  if (!manifest.ok()) {
    if (manifest.status().code() != Code::corrupt) return manifest.status().at(folder + "/manifest.json");
    findings.add({"manifest.json", "", "", 0, manifest.status().message()});
    if (options.recover) PACKTRAIN_TRY(recover_folder(storage, folder, findings));
    findings.move_into(report);
    return report;
  }
  count_in(report, *manifest);
  uint64_t bytes = bytes_of(*manifest);
  for (const FileSpec& file : manifest->files) bytes += file.bytes;
  ProgressMeter meter(options.progress, "verify", "shards", manifest->shards.size(), bytes);
  PACKTRAIN_ASSIGN(verdict, check_folder(storage, folder, *manifest, findings, meter));

  std::shared_ptr<Dataset> dataset;
  if (verdict.index_sound) {
    Result<std::shared_ptr<Dataset>> opened = Dataset::open(storage, folder);
    if (opened.ok()) {
      dataset = std::move(*opened);
    } else if (opened.status().code() == Code::corrupt) {
      findings.add(finding_of("index.npz", folder + "/index.npz", opened.status()));
    } else {
      return opened.status();
    }
  }
  if (dataset == nullptr) findings.add_unchecked(manifest->samples);
  ShardsCheck shards(
      storage,
      {.manifest = *manifest, .folder = folder, .dataset = dataset.get(), .names_sound = verdict.names_sound},
      options, findings, meter);
  PACKTRAIN_TRY(shards.run());
  report.structure_only = shards.structure_only();
  findings.move_into(report);
  return report;
}

// Containers that nobody indexed: their own structure, and the checks they carry themselves.
Result<VerifyReport> verify_containers(Storage& storage, const std::vector<std::string>& paths,
                                       const VerifyOptions& options) {
  VerifyReport report;
  Findings findings(options.max_findings);
  for (const std::string& path : paths) {
    OpenOptions open;
    open.cache = false;
    open.progress = options.progress;
    const Result<std::shared_ptr<Dataset>> opened = open_dataset(storage, path, open);
    if (!opened.ok()) {
      if (opened.status().code() != Code::corrupt) return opened.status();
      findings.add(finding_of(path, path, opened.status()));
      if (options.recover) findings.add_recoverable(recoverable_in_words(storage, path, path, 0));
      ++report.shards;
      continue;
    }
    const Dataset& dataset = **opened;
    count_in(report, dataset.manifest());
    ProgressMeter meter(options.progress, "verify", "containers", dataset.manifest().shards.size(),
                        bytes_of(dataset.manifest()));
    ShardsCheck shards(storage,
                       {.manifest = dataset.manifest(),
                        .folder = dataset.folder(),
                        .dataset = &dataset,
                        .compare_structure = false},
                       options, findings, meter);
    PACKTRAIN_TRY(shards.run());
    report.structure_only = report.structure_only || shards.structure_only();
    findings.move_into(report);
  }
  findings.move_into(report);
  if (report.findings.size() > options.max_findings) report.findings.resize(options.max_findings);
  return report;
}

}  // namespace

Result<VerifyReport> verify(Storage& storage, std::string_view dataset, const VerifyOptions& options) {
  std::string path(dataset);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (path.ends_with("/manifest.json")) path.resize(path.rfind('/'));
  for (const std::string& folder : {path, path + ".packtrain"}) {
    // A folder that has lost its manifest is still a dataset to be judged.
    for (const char* file : {"/manifest.json", "/index.npz"}) {
      const Result<FileInfo> info = storage.stat(folder + file);
      if (info.ok()) return verify_folder(storage, folder, options);
      if (info.status().code() != Code::not_found && info.status().code() != Code::io) return info.status();
    }
  }
  PACKTRAIN_ASSIGN(paths, expand_paths(storage, dataset));
  // Several containers that were indexed together have their index beside the first.
  const std::string beside = paths.front() + ".packtrain";
  const Result<std::shared_ptr<Dataset>> indexed = Dataset::open(storage, beside);
  if (indexed.ok() && (*indexed)->manifest().shards.size() == paths.size()) {
    return verify_folder(storage, beside, options);
  }
  return verify_containers(storage, paths, options);
}

}  // namespace packtrain
