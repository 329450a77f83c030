// pack(): scan, plan, write, publish. What lies on disk on the way:
//
//   OUT.part/plan               everything that is decided, written once and never changed
//   OUT.part/planner            a sign of life of whoever makes the plan
//   OUT.part/SHARD              a whole shard; it appears by rename and has its record beside it
//   OUT.part/SHARD.rows         what was learnt while writing it
//   OUT.part/*.tmp-HOST-PID-N   in work, or left by a process that died; publish.tmp-… is the folder of
//                               index, names and manifest before they move into OUT.part
//   OUT                         OUT.part renamed: the last step
#include "packtrain/pack.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <numeric>
#include <optional>
#include <thread>

#include "base/json.h"
#include "base/process_token.h"
#include "base/version.h"
#include "base/words.h"
#include "format/compress_value.h"
#include "format/own_checks.h"
#include "index/split_name.h"
#include "pack/block_spool.h"
#include "pack/catalog.h"
#include "pack/compression.h"
#include "pack/plan.h"
#include "pack/plan_report.h"
#include "pack/publish.h"
#include "pack/sidecars.h"
#include "pack/source_changes.h"
#include "pack/stream_spool.h"
#include "pack/task.h"
#include "pack/writers.h"
#include "packtrain/place.h"

namespace packtrain {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kPlannerPatienceSeconds = 60;
constexpr uint32_t kFarThreads = 32;      // hides the latency of a shared filesystem's metadata
constexpr uint64_t kUnitBytes = 1 << 20;  // read, checked and written while it is in a core's own cache
constexpr uint32_t kUnitSamples = 1024, kFarUnitSamples = 16;
// A part of the memory granted: shards that take more of it, in all, do not stay in it.
constexpr uint64_t kPartOfMemory = 16;
constexpr size_t kDifferencesNamed = 20;  // how many differences are named
constexpr std::string_view kNeverInPlace =
    "; a dataset is never changed in place: choose another name, or remove it first";

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

class Packer {
 public:
  Packer(Storage& storage, const PackOptions& options) : storage_(storage), options_(options) {
    out_ = options.out;
    while (out_.size() > 1 && out_.back() == '/') out_.pop_back();
    part_ = out_ + ".part";
    token_ = process_token();
  }

  Status run();
  PackReport report;

 private:
  Status check_options();
  Status check_target();
  Json own_log(const std::string& folder);
  bool published_meanwhile();
  Status is_as_packed(const Json& log);
  Status find_published(const Status& target);
  Result<Catalog> scan_sources();
  Result<Plan> make_new_plan();
  bool is_unwritten(const Plan& plan);
  Result<Plan> load_plan();
  Result<Plan> get_plan();
  Status check_room(uint64_t bytes_to_write, uint64_t files_to_write);
  Result<SourceChanges> changes_of_source(Plan& plan, const std::vector<uint64_t>& left_out);
  Status write_again(const Plan& plan, const std::vector<uint64_t>& touched);
  size_t differences_looked_for() const;
  Status source_has_changed(const std::vector<std::string>& changed, const std::string& way_on);
  Status compare_source(Plan& plan);
  Status check_bad(const Plan& plan, uint64_t bad_samples, uint64_t left_out);
  std::optional<uint64_t> bytes_of(const Plan& plan, const std::vector<uint32_t>& shards);
  Status write(const Plan& plan);
  Status finish(Plan& plan);
  Status dry_run();
  Status give_name();
  Status check_part();
  Status work();
  void estimate(const Plan& plan);
  void announce(const Plan& plan) const;
  // Whether every byte's place is known before it is read.
  bool is_planned(const Plan& plan) const {
    return plan.compress == "none" && format_->layout && !plan.conversion.any();
  }
  bool source_is_far(const Plan& plan) const;

  Storage& storage_;
  const PackOptions& options_;
  const Format* format_ = nullptr;
  std::string out_, part_, token_;
  bool resumed_ = false;
  bool compare_at_end_ = false;  // the source, with the plan, before it is published
  ImageConversion conversion_;
};

Status Packer::check_options() {
  if (options_.sources.empty()) return Status(Code::invalid, "name at least one source");
  if (out_.empty()) return Status(Code::invalid, "name the folder to make");
  for (const auto& [split, source] : options_.sources)
    if (!split.empty()) PACKTRAIN_TRY(check_split_name(split));
  if (options_.tasks == 0 || options_.task >= options_.tasks) {
    return Status(Code::invalid, "the task must be from 0 to " + std::to_string(options_.tasks - 1) + " of " +
                                     std::to_string(options_.tasks));
  }
  if (options_.ranks == 0) return Status(Code::invalid, "--ranks must be at least 1");
  if (options_.shards != 0 && options_.shard_bytes != 0) {
    return Status(Code::invalid, "choose --shards or --shard-size, not both");
  }
  format_ = find_format(options_.format);
  if (!format_ || (!format_->layout && !format_->create)) {
    std::string names;
    for (const Format* format : formats()) {
      if (format->layout || format->create) names.append(names.empty() ? "" : ", ").append(format->name);
    }
    return Status(Code::unsupported,
                  "cannot write the format '" + options_.format + "'; choose from " + names);
  }
  PACKTRAIN_ASSIGN(conversion, parse_conversion(options_));
  conversion_ = conversion;
  PACKTRAIN_TRY(check_codec(format_->name, format_->codecs, options_.compress));
  if (format_->cut == Cut::one_for_all &&
      (options_.shards > 1 || options_.shard_bytes != 0 || options_.ranks > 1)) {
    return Status(Code::invalid, std::string(format_->name) +
                                     " is one file in all, so that its readers find every split in it; leave "
                                     "--shards, --shard-size and --ranks away, or choose another format");
  }
  return check_sidecars(options_.sidecars, options_.format);
}

// The log of a folder that this pack, with these options, has made; null if it is another's or none.
Json Packer::own_log(const std::string& folder) {
  auto log = read_whole(storage_, folder + "/pack.log.json");
  auto json = log.ok() ? Json::parse(*log) : Result<Json>(log.status());
  auto identity = plan_identity(storage_, options_);
  if (!json.ok() || !identity.ok() || (*json)["identity"].as_string() != *identity) return {};
  return std::move(*json);
}

// Whether OUT is there and is what this pack makes: another task, or another process, has finished it.
bool Packer::published_meanwhile() {
  const Json log = own_log(out_);
  if (log.is_null()) return false;
  report.published = true;
  report.shards = log["shards"].as_uint();
  report.samples = log["samples"].as_uint();
  report.inodes_before = log["source_inodes"].as_uint();
  if (const auto dataset = Dataset::open(storage_, out_); dataset.ok()) {
    report.inodes_after = inodes_of((*dataset)->manifest());
    report.bytes = 0;
    for (const ShardSpec& shard : (*dataset)->manifest().shards) report.bytes += shard.bytes;
  }
  report.shards_missing = 0;
  report.bad.clear();
  if (options_.dry_run) return true;
  // A part that was begun again after OUT had its name is of no use to anyone.
  (void)remove_tree(storage_, part_);
  // What was being made in OUT.part at the moment of its renaming came along into OUT, unseen by whoever
  // renamed it.
  (void)remove_dead_parts(storage_, out_, token_);
  return true;
}

Status Packer::check_target() {
  auto info = storage_.stat(out_);
  if (!info.ok() && info.status().code() == Code::not_found) {
    if (!storage_.stat(out_, false).ok()) return {};
    return Status(Code::invalid,
                  "is a symbolic link to nothing; remove it, or choose another name for the dataset")
        .at(printable(out_));
  }
  if (!info.ok()) return info.status();
  return Status(Code::invalid, "exists already" + std::string(kNeverInPlace)).at(printable(out_));
}

Result<Catalog> Packer::scan_sources() {
  ScanOptions scan_options;
  for (const auto& [split, path] : options_.sources) scan_options.sources.push_back({split, path});
  scan_options.root = options_.root;
  scan_options.classes_file = options_.classes_file;
  scan_options.path_column = options_.path_column;
  scan_options.label_column = options_.label_column;
  scan_options.split_column = options_.split_column;
  scan_options.skip_missing = options_.skip_bad > 0;
  if (options_.reads != 0) scan_options.stats_in_flight = options_.reads;
  scan_options.progress = options_.progress;
  const auto start = Clock::now();
  PACKTRAIN_ASSIGN(catalog, scan(storage_, scan_options));
  report.seconds_scan += since(start);
  if (catalog.missing_count > options_.skip_bad || catalog.samples.empty()) {
    report.bad = bad_of_scan(catalog);
    report.bad_samples = catalog.missing_count + catalog.unreadable_count;
  }
  if (catalog.missing_count > options_.skip_bad) {
    return Status(Code::corrupt, "no file is there for " + count_in_words(catalog.missing_count) +
                                     " of the paths that the list names, the first is " +
                                     printable(catalog.missing.empty() ? "" : catalog.missing.front()) +
                                     "; check --root, or leave them out with --skip-bad " +
                                     std::to_string(catalog.missing_count));
  }
  if (catalog.samples.empty() && !report.bad.empty())
    return Status(Code::corrupt, "no sample of the source can be read (" + bad_in_words(report.bad.front()) +
                                     "); make them readable and run it again");
  PACKTRAIN_TRY(mark_images(catalog, conversion_));
  return catalog;
}

Result<Plan> Packer::make_new_plan() {
  PACKTRAIN_ASSIGN(catalog, scan_sources());
  // Values are read one by one later, in another order, where checks of whole arrays and pages tell nothing.
  if (!options_.dry_run) {
    for (const auto& container : catalog.containers)
      PACKTRAIN_TRY(compare_own_checks(storage_, *container, options_.progress));
  }
  PACKTRAIN_ASSIGN(plan, make_plan(storage_, std::move(catalog), options_));
  PACKTRAIN_TRY(decide_compression(storage_, *format_, options_.compress, plan));
  return plan;
}

// Whether none of the plan's shards is there, whole or of another run.
bool Packer::is_unwritten(const Plan& plan) {
  return std::all_of(plan.shards.begin(), plan.shards.end(), [&](const ShardPlan& shard) {
    return storage_.stat(path_below(part_, shard.name)).status().code() == Code::not_found;
  });
}

Result<Plan> Packer::load_plan() {
  auto read = [&]() -> Result<Plan> {
    PACKTRAIN_ASSIGN(file, storage_.map(part_ + "/plan"));
    return decode_plan(file->bytes());
  };
  auto plan = read();
  if (!plan.ok()) {
    if (plan.status().code() == Code::not_found) return plan;
    return Status(plan.status().code(),
                  plan.status().text() + "; remove " + printable(part_) + " and pack again");
  }
  PACKTRAIN_ASSIGN(identity, plan_identity(storage_, options_));
  if (plan->identity != identity) {
    if (const std::string worker = process_at_work(storage_, part_); !worker.empty()) {
      return Status(Code::invalid, "another pack, with other sources or options, is being made there by " +
                                       worker + "; wait until it is done, or choose another name")
          .at(printable(part_));
    }
    return Status(Code::invalid,
                  "belongs to an unfinished pack with other sources or options; finish that one with its own "
                  "options, or remove the folder")
        .at(printable(part_));
  }
  return plan;
}

// One process makes the plan and links it into place; all others load it.
Result<Plan> Packer::get_plan() {
  const std::string path = part_ + "/plan", life = part_ + "/planner";
  auto known = load_plan();
  if (known.ok() || known.status().code() != Code::not_found) {
    resumed_ = known.ok();
    return known;
  }
  if (options_.task != 0) {
    const auto go_on = [&] {
      return !options_.progress || options_.progress({.phase = "wait for the plan"});
    };
    PACKTRAIN_ASSIGN(there, wait_for_file(storage_, path, life, kPlannerPatienceSeconds, go_on));
    if (there) return load_plan();
    // Nobody is at it: this task plans instead. Should two do so, the first link wins and both plans are
    // equal.
  }
  PACKTRAIN_TRY(storage_.make_folder(part_));
  const Heartbeat heartbeat(storage_, life);
  PACKTRAIN_TRY(heartbeat.started());
  PACKTRAIN_ASSIGN(plan, make_new_plan());
  WriteOptions write_options;
  write_options.token = token_;
  write_options.durable = false;
  Status status = write_plan(storage_, path, plan, write_options);
  if (!status.ok()) {
    auto theirs = load_plan();
    // Another pack was quicker: that its options differ says more than that its file is there.
    if (!theirs.ok()) return theirs.status().code() == Code::not_found ? status : theirs.status();
    return theirs;
  }
  return plan;
}

Status Packer::check_room(uint64_t bytes_to_write, uint64_t files_to_write) {
  auto place = place_of(out_);
  if (!place.ok()) return {};  // what cannot be asked cannot be checked; writing will tell
  if (place->read_only)
    return Status(Code::io, "lies on a filesystem that is mounted read-only; choose another target")
        .at(printable(out_));
  if (place->bytes_total != 0 && place->bytes_free < bytes_to_write)
    report.shortfall_bytes = bytes_to_write - place->bytes_free;
  if (place->inodes_total != 0 && place->inodes_free < files_to_write)
    report.shortfall_inodes = files_to_write - place->inodes_free;
  if (report.shortfall_bytes > 0) {
    return Status(Code::no_room, "needs " + bytes_in_words(bytes_to_write) + ", but only " +
                                     bytes_in_words(place->bytes_free) + " are free on " + place->mount +
                                     "; free some or choose another target")
        .at(printable(out_));
  }
  if (report.shortfall_inodes > 0) {
    return Status(Code::no_room, "needs " + count_in_words(files_to_write) + " files, but only " +
                                     count_in_words(place->inodes_free) + " inodes are free on " +
                                     place->mount + "; choose fewer shards or another target")
        .at(printable(out_));
  }
  return {};
}

bool Packer::source_is_far(const Plan& plan) const {
  const auto far = [](const std::string& path) {
    auto place = place_of(path);
    return place.ok() && place->far();
  };
  for (const CatalogRoot& root : plan.catalog.roots) {
    if (far(root.folder)) return true;
  }
  for (const PieceFile& file : plan.piece_files) {
    if (far(file.path)) return true;
  }
  return false;
}

// What of the source is no longer as the plan has it. One look at all of it, but for compressed archives
// alone: those only tell what is in them front to back, and size and date say as much.
Result<SourceChanges> Packer::changes_of_source(Plan& plan, const std::vector<uint64_t>& left_out) {
  Catalog& catalog = plan.catalog;
  if (catalog.streams.size() == options_.sources.size()) {
    SourceChanges changed;
    for (const PieceFile& file : catalog.streams) {
      PACKTRAIN_ASSIGN(info, storage_.stat(file.path));
      if (info.size != file.bytes || info.mtime_ns != file.mtime_ns)
        changed.found.push_back(printable(file.path) + " has changed");
    }
    changed.only_touched = changed.found.empty();
    return changed;
  }
  PACKTRAIN_ASSIGN(now, scan_sources());
  SourceChanges changed = differences(plan, now, left_out, differences_looked_for());
  if (changed.found.empty()) {
    // What could not be read then may be gone by now, and nobody's loss any more.
    catalog.unreadable = std::move(now.unreadable);
    catalog.unreadable_count = now.unreadable_count;
  }
  return changed;
}

// Shards that have samples whose files are gone or have changed since: without them, as if it had been
// before.
Status Packer::write_again(const Plan& plan, const std::vector<uint64_t>& touched) {
  const auto is_touched = [&](uint64_t sample) {
    return std::binary_search(touched.begin(), touched.end(), sample);
  };
  if (touched.empty()) return {};
  for (const ShardPlan& shard : plan.shards) {
    const auto first = plan.order.begin() + static_cast<ptrdiff_t>(shard.first);
    if (!std::any_of(first, first + static_cast<ptrdiff_t>(shard.count), is_touched)) continue;
    if (!finished_shard(storage_, part_, shard).ok()) continue;
    PACKTRAIN_TRY(storage_.remove(part_ + "/" + rows_name(shard)));
  }
  return {};
}

// One more than may be left out at least, so that it is known whether there are more.
size_t Packer::differences_looked_for() const {
  constexpr uint64_t kUsual = 1 << 16, kMost = 1 << 20;
  return static_cast<size_t>(std::clamp(options_.skip_bad + 1, kUsual, kMost));
}

Status Packer::source_has_changed(const std::vector<std::string>& changed, const std::string& way_on) {
  report.bad.clear();
  for (size_t i = 0; i < std::min(changed.size(), kDifferencesNamed); ++i)
    report.bad.push_back({changed[i], "", ""});
  report.bad_samples = changed.size();
  return Status(Code::corrupt, "the source has changed since this pack began (" + changed.front() +
                                   (changed.size() > 1 ? " and others" : "") + "); remove " +
                                   printable(part_) + " to start over" + way_on);
}

// Shards that other tasks wrote, or an earlier run, may be of files as they were then: whoever publishes
// looks once more.
Status Packer::compare_source(Plan& plan) {
  std::vector<uint64_t> left_out;
  for (const ShardPlan& shard : plan.shards) {
    PACKTRAIN_ASSIGN(rows, finished_shard(storage_, part_, shard));
    left_out.insert(left_out.end(), rows.left_out.begin(), rows.left_out.end());
  }
  std::sort(left_out.begin(), left_out.end());
  PACKTRAIN_ASSIGN(changed, changes_of_source(plan, left_out));
  return changed.found.empty() ? Status() : source_has_changed(changed.found, "");
}

// What cannot be packed, if it is more than may be left out: `bad_samples` of the shards just written, whose
// files are in the report, and what the scan found among the `left_out`.
Status Packer::check_bad(const Plan& plan, uint64_t bad_samples, uint64_t left_out) {
  const uint64_t of_scan = plan.catalog.unreadable_count;
  if (bad_samples == 0 && (of_scan == 0 || left_out <= options_.skip_bad)) return {};
  report.bad.insert(report.bad.end(), plan.catalog.unreadable.begin(), plan.catalog.unreadable.end());
  report.bad_samples = bad_samples + of_scan;
  std::stable_sort(report.bad.begin(), report.bad.end(),
                   [](const BadSample& a, const BadSample& b) { return a.path < b.path; });
  return Status(Code::corrupt,
                counted(report.bad_samples, "sample") + " cannot be packed (" +
                    bad_in_words(report.bad.front()) +
                    "); everything else is, nothing is published: mend them and run the same "
                    "command again (remove " +
                    printable(part_) +
                    " first if their bytes have changed, or if they could not even be listed), "
                    "or leave them out with --skip-bad " +
                    std::to_string(bad_samples + left_out));
}

// As they were written; nothing where another task has published them meanwhile, under another name.
std::optional<uint64_t> Packer::bytes_of(const Plan& plan, const std::vector<uint32_t>& shards) {
  uint64_t bytes = 0;
  for (const uint32_t number : shards) {
    const auto info = storage_.stat(path_below(part_, plan.shards[number].name));
    if (!info.ok()) return {};
    bytes += info->size;
  }
  return bytes;
}

Status Packer::write(const Plan& plan) {
  const auto start = Clock::now();
  const bool planned = is_planned(plan);
  std::vector<uint32_t> to_write, to_scatter, all;
  uint64_t samples = 0, left_out = plan.catalog.missing_count + plan.catalog.unreadable_count;
  for (uint32_t number = 0; number < plan.shards.size(); ++number) {
    const ShardPlan& shard = plan.shards[number];
    auto rows = finished_shard(storage_, part_, shard);
    const bool is_ours = number % options_.tasks == options_.task;
    if (rows.ok() && rows->left_out.size() <= options_.skip_bad) {
      report.shards_kept += is_ours ? 1 : 0;
      left_out += rows->left_out.size();
      continue;
    }
    if (!is_ours) continue;
    bool streamed = false;
    for (uint64_t i = shard.first;
         i < shard.first + shard.count && !streamed && !plan.catalog.streams.empty(); ++i) {
      for (const Cell& cell : SampleCells(plan.catalog, plan.order[i]))
        streamed |= cell.origin == Origin::stream;
    }
    (streamed ? to_scatter : to_write).push_back(number);
    all.push_back(number);
    samples += shard.count;
  }
  if (all.empty()) return check_bad(plan, 0, left_out);
  // Of all of them the report says it already: a walk over a large plan waits for memory at every step.
  const uint64_t bytes = all.size() == plan.shards.size() ? report.bytes : planned_bytes(plan, all);
  const WrittenFields fields = planned ? WrittenFields() : written_fields(plan, *format_);
  const BlocksToSpool blocks = blocks_to_spool(plan, all, fields);
  PACKTRAIN_TRY(
      check_room(bytes + blocks.bytes + (planned ? 0 : stream_bytes(plan, all, fields)), all.size() * 2 + 8));
  std::unique_ptr<StreamSpool> spool;
  if (!planned && !to_scatter.empty()) {
    PACKTRAIN_ASSIGN(made, StreamSpool::make(storage_, plan, all, fields, part_, token_, options_.progress));
    spool = std::move(made);
  }
  const bool far = source_is_far(plan);
  const uint32_t jobs = options_.jobs != 0 ? options_.jobs : granted().cores;
  PACKTRAIN_ASSIGN(block_spool,
                   BlockSpool::make(storage_, plan, blocks, part_, token_, jobs, options_.progress));
  Fetcher fetcher(storage_, plan);
  fetcher.use(spool.get());
  fetcher.use(block_spool.get());
  ProgressMeter meter(options_.progress, "write", "samples", samples, bytes);
  WriteContext context{storage_, plan, *format_, fetcher, meter, part_, token_};
  context.fields = fields;
  context.durable = options_.sync;
  context.stays_in_memory = bytes <= granted().memory / kPartOfMemory;
  context.skip_bad = options_.skip_bad - std::min(options_.skip_bad, left_out);
  context.threads = std::max(jobs, options_.reads != 0 ? options_.reads : far ? kFarThreads : jobs);
  context.unit_samples = far ? kFarUnitSamples : kUnitSamples;
  // Small sets are cut finer, so that every thread has something to do.
  context.unit_bytes = std::clamp<uint64_t>(bytes / (uint64_t{4} * context.threads), 64 << 10, kUnitBytes);
  Status status = planned ? write_planned(context, to_write) : write_serial(context, all);
  if (planned && status.ok()) status = write_scattered(context, to_scatter);
  report.seconds_write = since(start);
  uint64_t bad_samples = 0;
  {
    Lock lock(context.mutex);
    report.bad = std::move(context.bad);
    bad_samples = context.bad_samples;
    left_out += context.left_out;
    samples -= std::min(samples, context.left_out);
  }
  PACKTRAIN_TRY(status);
  PACKTRAIN_TRY(check_bad(plan, bad_samples, left_out));
  if (!meter.finish()) return Status(Code::stopped, "stopped; run the same command again to go on");
  report.shards_written = all.size();
  report.samples_written = samples;
  report.bytes_written = bytes_of(plan, all).value_or(bytes);
  return {};
}

Status Packer::finish(Plan& plan) {
  const auto start = Clock::now();
  const auto count_missing = [&] {
    uint64_t missing = 0;
    for (const ShardPlan& shard : plan.shards) missing += finished_shard(storage_, part_, shard).ok() ? 0 : 1;
    return missing;
  };
  report.shards_missing = count_missing();
  // Other tasks may be about to finish; whoever comes last publishes.
  while (report.shards_missing > 0 && since(start) < options_.publish_wait_seconds) {
    if (options_.progress && !options_.progress({.phase = "wait for other tasks",
                                                 .items = plan.shards.size() - report.shards_missing,
                                                 .items_total = plan.shards.size(),
                                                 .unit = "shards"})) {
      return Status(Code::stopped, "stopped; run the same command again to go on");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    if (storage_.stat(out_).ok()) break;
    report.shards_missing = count_missing();
  }
  if (storage_.stat(out_).ok()) return published_meanwhile() ? Status() : check_target();
  if (report.shards_missing > 0) return {};
  if (options_.tasks > 1 || compare_at_end_) PACKTRAIN_TRY(compare_source(plan));

  PublishRequest request;
  request.out = out_;
  request.part = part_;
  request.token = token_;
  request.sidecars = options_.sidecars;
  request.skip_bad = options_.skip_bad;
  request.durable = options_.sync;
  Json log = Json::object();
  log.append("packed_at", now_text()).append("packtrain", version()).append("command", options_.command);
  log.append("identity", plan.identity).append("shards", uint64_t{plan.shards.size()});
  log.append("samples", uint64_t{plan.order.size()}).append("resumed", resumed_);
  log.append("seconds_scan", report.seconds_scan).append("seconds_write", report.seconds_write);
  log.append("source_inodes", plan.catalog.files).append("source_fingerprint", plan.fingerprint);
  Json roots = Json::array(), warnings = Json::array();
  for (const std::string& root : report.roots) roots.push(printable(root));
  for (const std::string& warning : report.warnings) warnings.push(warning);
  log.append("roots", std::move(roots)).append("warnings", std::move(warnings));
  request.log_json = log.dump(1) + "\n";
  PACKTRAIN_TRY(publish(storage_, plan, *format_, request, report));
  report.published = true;
  report.seconds_publish = since(start);
  return {};
}

// A plan says what will be; a short read of the source says how long it may take.
void Packer::estimate(const Plan& plan) {
  constexpr double kProbeSeconds = 0.5;
  constexpr uint64_t kProbes = 64;
  Fetcher fetcher(storage_, plan);
  const auto start = Clock::now();
  uint64_t cells = 0;
  std::vector<std::byte> buffer;
  const uint64_t step = std::max<uint64_t>(1, plan.catalog.cells.size() / kProbes);
  for (uint64_t i = 0; i < plan.catalog.cells.size() && since(start) < kProbeSeconds; i += step) {
    const Cell& cell = plan.catalog.cells[i];
    if (cell.origin == Origin::stream || cell.size > kUnitBytes) continue;
    buffer.resize(cell.size);
    if (fetcher.fetch(cell, buffer).ok()) ++cells;
  }
  if (cells == 0) return;
  const uint32_t jobs = options_.jobs != 0 ? options_.jobs : granted().cores;
  const uint32_t threads = source_is_far(plan) ? std::max(jobs, kFarThreads) : jobs;
  const double each = since(start) / static_cast<double>(cells);
  report.estimated_seconds = each * static_cast<double>(plan.catalog.cells.size()) / threads;
  if (plan.cost.tried > 0)
    report.estimated_seconds += plan.cost.seconds / static_cast<double>(plan.cost.tried) *
                                static_cast<double>(plan.cost.images) / jobs;
}

void Packer::announce(const Plan& plan) const {
  if (options_.announce) {
    if (plan.conversion.any() && !options_.dry_run) options_.announce(cost_in_words(plan.cost));
    for (const FieldCompression& finding : report.compression)
      options_.announce(printable(finding.field) + ": " + finding.reason);
  }
  const Catalog& catalog = plan.catalog;
  if (const uint64_t bad = catalog.missing_count + catalog.unreadable_count;
      options_.warn && catalog.unreadable_count > 0 && bad > options_.skip_bad)
    options_.warn(bad_in_words(catalog.unreadable.front()) +
                  (catalog.unreadable_count == 1
                       ? ""
                       : ", and " + count_in_words(catalog.unreadable_count - 1) + " more") +
                  ". Everything else is packed, but published only with --skip-bad " + std::to_string(bad) +
                  ", or more should further samples turn out to be bad");
}

Status Packer::dry_run() {
  PACKTRAIN_ASSIGN(plan, make_new_plan());
  describe_plan(plan, options_.sidecars, report);
  report.bad = bad_of_scan(plan.catalog);
  report.bad_samples = plan.catalog.missing_count + plan.catalog.unreadable_count;
  // A dry run tells what would stop the pack; it does not fail by it. What is lacking is in the report.
  announce(plan);
  std::vector<uint32_t> all(plan.shards.size());
  std::iota(all.begin(), all.end(), 0U);
  const WrittenFields fields = is_planned(plan) ? WrittenFields() : written_fields(plan, *format_);
  if (format_->arrays_only && fields.names.size() > 1)
    return Status(Code::invalid,
                  std::string(format_->name) + " holds one field of every sample, these have " +
                      names_in_words(fields.names, fields.names.size()) + "; use --format npz, zarr or hdf5");
  const uint64_t spooled =
      blocks_to_spool(plan, all, fields).bytes + (is_planned(plan) ? 0 : stream_bytes(plan, all, fields));
  const Status room = check_room(report.bytes + spooled, plan.shards.size() * 2 + 8);
  if (!room.ok() && room.code() != Code::no_room) report.warnings.push_back(room.text());
  estimate(plan);
  return {};
}

// The part is whole, a run was killed in the very last steps: only the name is missing.
Status Packer::give_name() {
  PACKTRAIN_TRY(publish_folder(storage_, part_, out_));
  PACKTRAIN_ASSIGN(dataset, Dataset::open(storage_, out_));
  report.published = true;
  report.samples = dataset->samples();
  report.shards = dataset->manifest().shards.size();
  const uint64_t ours = (report.shards + options_.tasks - 1 - options_.task) / options_.tasks;
  report.shards_kept = ours - std::min(ours, report.shards_written);
  report.bytes = 0;
  report.inodes_after = inodes_of(dataset->manifest());
  for (const ShardSpec& shard : dataset->manifest().shards) report.bytes += shard.bytes;
  return {};
}

// OUT.part must be what an earlier run left, or not be there: what people keep in it is not ours to take.
Status Packer::check_part() {
  if (!storage_.stat(part_).ok()) return {};
  PACKTRAIN_TRY(remove_dead_parts(storage_, part_));
  const bool ours = storage_.stat(part_ + "/plan").ok() || is_whole_part(storage_, part_);
  bool foreign = false;
  Status status = storage_.list(part_, [&](FolderEntry&& entry) {
    foreign |= !is_work_file(entry.name);
    return true;
  });
  if (!status.ok() && status.code() != Code::not_found) return status;
  if (ours || !foreign) return {};
  return Status(Code::invalid,
                "exists, and is not what an unfinished pack leaves; move it away or choose another name for "
                "the dataset")
      .at(printable(part_));
}

Status Packer::work() {
  PACKTRAIN_TRY(check_part());
  if (is_whole_part(storage_, part_) && !own_log(part_).is_null()) return give_name();
  auto plan = get_plan();
  if (!plan.ok()) {
    (void)storage_.remove(part_);  // goes only if it is empty
    return plan.status();
  }
  describe_plan(*plan, options_.sidecars, report);
  if (options_.task == 0) announce(*plan);
  if (resumed_ && options_.tasks == 1) {
    // An unfinished pack goes on only if its source is still what it was.
    PACKTRAIN_ASSIGN(changed, changes_of_source(*plan, {}));
    // With --skip-bad, files that are gone or changed are left out when they are read; new ones cannot be.
    const size_t samples = changed.touched.size();
    if (!changed.found.empty() && (!changed.only_touched || samples > options_.skip_bad)) {
      const std::string way_on = ", or go on without them: --skip-bad " + std::to_string(samples);
      return source_has_changed(changed.found, changed.only_touched ? way_on : "");
    }
    compare_at_end_ = !changed.found.empty();  // some may have been read before they changed
    PACKTRAIN_TRY(write_again(*plan, changed.touched));
  }
  if (options_.plan_only) return {};
  Status written = write(*plan);
  if (written.ok()) return finish(*plan);
  // What these options cannot do, no later run can either: its plan would only be in the way of others.
  const bool hopeless = written.code() == Code::invalid || written.code() == Code::unsupported;
  if (hopeless && !resumed_ && options_.tasks == 1 && is_unwritten(*plan)) (void)remove_tree(storage_, part_);
  return written;
}

// Whether OUT, packed with these options, is still what they make; else why not.
Status Packer::is_as_packed(const Json& log) {
  const auto differs = [&](const std::string& how) {
    return Status(Code::invalid, "exists already, and " + how + std::string(kNeverInPlace))
        .at(printable(out_));
  };
  const auto dataset = Dataset::open(storage_, out_);
  if (!dataset.ok()) return differs("cannot be opened, see packtrain verify");
  const Manifest& manifest = (*dataset)->manifest();
  for (uint32_t shard = 0; shard < manifest.shards.size(); ++shard) {
    const auto info = storage_.stat((*dataset)->shard_path(shard));
    if (!info.ok() || info->size != manifest.shards[shard].bytes)
      return differs("is not whole any more, see packtrain verify");
  }
  if (!log.has("source_fingerprint")) return options_.tasks > 1 ? Status() : check_target();  // an older one
  const auto now = scan_sources();
  if (!now.ok() && now.status().code() == Code::stopped) return now.status();
  if (!now.ok()) return differs("its source cannot be compared with it: " + now.status().text());
  if (source_fingerprint(*now) != log["source_fingerprint"].as_string())
    return differs("the source has changed since it was packed");
  const auto facts = Json::parse(manifest.source_json);
  if (facts.ok() && (*facts)["left_out_samples"].as_uint() > options_.skip_bad)
    return differs("leaves out more samples than --skip-bad " + std::to_string(options_.skip_bad) +
                   " allows");
  return {};
}

// OUT is there before this begins: a run of the same command, or other tasks, have finished it, or it is
// another's.
Status Packer::find_published(const Status& target) {
  const Json log = own_log(out_);
  if (log.is_null()) return target;
  // One of the tasks looks, for all: a source of millions of files is not scanned by each.
  if (options_.task == 0) PACKTRAIN_TRY(is_as_packed(log));
  report.bad.clear();
  report.bad_samples = 0;
  if (!published_meanwhile()) return target;
  report.found = true;
  return {};
}

Status Packer::run() {
  report.out = out_;
  PACKTRAIN_TRY(check_options());
  if (Status target = check_target(); !target.ok()) return find_published(target);
  if (options_.dry_run) return dry_run();
  Status status = work();
  if (status.ok() || status.code() == Code::stopped) return status;
  // Several processes may pack the same. When one of them publishes, records, plan and then the folder go
  // away under the others; should it die on the way, they take the last step.
  if (published_meanwhile()) return {};
  if (is_whole_part(storage_, part_) && !own_log(part_).is_null() && give_name().ok()) return {};
  return published_meanwhile() ? Status() : status;
}

}  // namespace

std::string bad_in_words(const BadSample& bad) {
  return printable(bad.path) + (bad.what.empty() ? "" : ": " + bad.what) +
         (bad.key.empty() ? "" : " (sample " + bad.key + ")");
}

Result<PackReport> pack(Storage& storage, const PackOptions& options, PackReport* on_failure) {
  Packer packer(storage, options);
  Status status = packer.run();
  if (!status.ok()) {
    if (on_failure) *on_failure = std::move(packer.report);
    return status;
  }
  return std::move(packer.report);
}

}  // namespace packtrain
