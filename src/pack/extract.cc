// Samples back to files. A new target is filled in TARGET.extract-part and gets its name when all is there;
// into an existing one (--overwrite) each file comes whole or not at all.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/give_back.h"
#include "base/mutex.h"
#include "base/threads.h"
#include "base/words.h"
#include "format/index_containers.h"
#include "format/own_checks.h"
#include "pack/extract_part.h"
#include "pack/extract_plan.h"
#include "pack/memory_gate.h"
#include "pack/progress_meter.h"
#include "packtrain/format.h"
#include "packtrain/pack.h"
#include "packtrain/place.h"

namespace packtrain {
namespace {

constexpr size_t kSamplesPerTurn = 128;

// What lies under the target's name.
enum class TargetState : uint8_t { absent, empty_folder, folder };

Result<TargetState> look_at(Storage& storage, const std::string& to) {
  const Result<FileInfo> info = storage.stat(to);
  if (!info.ok()) {
    if (info.status().code() == Code::not_found) return TargetState::absent;
    return info.status();
  }
  if (info->kind != FileKind::folder)
    return Status(Code::invalid, "exists and is no folder; choose another").at(printable(to));
  bool empty = true;
  PACKTRAIN_TRY(storage.list(to, [&](FolderEntry&&) { return empty = false; }));
  return empty ? TargetState::empty_folder : TargetState::folder;
}

// Whether `path` is `folder` or lies below it, by name or behind links.
bool lies_in(Storage& storage, const std::string& path, const std::string& folder) {
  const auto outer = storage.stat(folder);
  std::string at = absolute_path(path);
  for (const std::string wanted = absolute_path(folder);;) {
    if (at == wanted) return true;
    const auto info = storage.stat(at);
    if (info.ok() && outer.ok() && info->inode != 0 && info->inode == outer->inode &&
        info->device == outer->device)
      return true;
    const size_t slash = at.rfind('/');
    if (slash == std::string::npos || at == "/") return false;
    at.resize(std::max<size_t>(slash, 1));
  }
}

// Files among the shards would make verify call the dataset damaged.
Status check_outside(Storage& storage, const std::string& to, const Dataset& dataset) {
  const std::string& folder = dataset.folder();
  if (folder.empty() || !lies_in(storage, to, folder)) return {};
  return Status(Code::invalid, "lies in the dataset itself; choose a folder outside of " + printable(folder))
      .at(printable(to));
}

Status check_room(const ExtractPlan& plan, const std::string& to) {
  PACKTRAIN_ASSIGN(place, place_of(to));
  if (place.read_only) {
    return Status(Code::io, "lies on a filesystem that is mounted read-only; choose another target")
        .at(printable(to));
  }
  if (plan.bytes_on_disk() > place.bytes_free) {
    return Status(Code::no_room,
                  fmt::format("the files take {}, and {} has {} free; choose another target or fewer samples",
                              bytes_in_words(plan.bytes_on_disk()), place.mount,
                              bytes_in_words(place.bytes_free)))
        .at(printable(to));
  }
  const uint64_t inodes = plan.files() + plan.folders().size() + 1;
  if (place.inodes_total > 0 && inodes > place.inodes_free) {
    return Status(Code::no_room,
                  fmt::format("{} files and folders are to be made, and {} has inodes for {}; choose "
                              "another target or fewer samples",
                              count_in_words(inodes), place.mount, count_in_words(place.inodes_free)))
        .at(printable(to));
  }
  const uint64_t memory = granted().memory_available;
  if (memory > 0 && plan.largest_field() > memory) {
    return Status(Code::no_room,
                  fmt::format("the largest field takes {} of memory, and {} are left; give the job more, or "
                              "leave the field out with --fields",
                              bytes_in_words(plan.largest_field()), bytes_in_words(memory)));
  }
  return {};
}

// Folders are made before the first file, so that threads never race for one. In an existing target nothing
// that was there may lead elsewhere.
Status make_folders(Storage& storage, const ExtractPlan& plan, const std::string& base, bool existing) {
  PACKTRAIN_TRY(storage.make_folder(base));
  for (const std::string& folder : plan.folders()) {
    const std::string path = path_below(base, folder);
    if (existing) {
      const Result<FileInfo> info = storage.stat(path, false);
      if (info.ok() && info->kind == FileKind::folder) continue;
      if (info.ok()) {
        return Status(Code::invalid,
                      info->kind == FileKind::symlink
                          ? "is a symbolic link, and extract writes only below its target; remove it"
                          : "is in the way of a folder; remove it")
            .at(printable(path));
      }
      if (info.status().code() != Code::not_found) return info.status();
    }
    PACKTRAIN_TRY(storage.make_folder(path));
  }
  return {};
}

// Reads and writes on several threads; stops at the first failure, but leaves out as many damaged samples as
// it may. A sample is written whole or not at all. run() once.
class FileMaker {
 public:
  FileMaker(Storage& storage, const Dataset& dataset, const ExtractPlan& plan, std::string base, bool replace,
            const ExtractOptions& options)
      : storage_(storage),
        dataset_(dataset),
        plan_(plan),
        base_(std::move(base)),
        skip_bad_(options.skip_bad),
        meter_(options.progress, "extract", "files", plan.files(), plan.bytes()) {
    write_.token = "extract";
    write_.durable = false;  // an interrupted extract is run again, not relied upon
    write_.replace = replace;
  }

  Status run(uint32_t jobs) {
    const size_t turns = (plan_.samples().size() + kSamplesPerTurn - 1) / kSamplesPerTurn;
    run_on("extract", static_cast<uint32_t>(std::clamp<size_t>(turns, 1, jobs)), [&](uint32_t) {
      for (size_t turn = next_turn_++; turn < turns && !failed_; turn = next_turn_++) {
        const size_t first = turn * kSamplesPerTurn;
        const std::span<const uint64_t> samples(plan_.samples());
        fail_if(make_files(samples.subspan(first, std::min(kSamplesPerTurn, samples.size() - first))));
      }
    });
    Lock lock(mutex_);
    return failure_;
  }
  // What was written and what was left out; call after run().
  void report_into(ExtractReport& report) {
    Lock lock(mutex_);
    std::sort(left_out_.begin(), left_out_.end());
    for (auto& [sample, what] : left_out_)
      report.bad.push_back({name_of(sample), std::move(what), name_of(sample)});
    report.samples = plan_.samples().size() - left_out_.size();
    report.files = files_;
    report.bytes = bytes_;
  }

 private:
  Status make_files(std::span<const uint64_t> samples) {
    if (!plan_.all_fields()) {
      std::vector<std::vector<std::byte>> bytes(plan_.fields().size());
      for (uint64_t sample : samples) {
        if (failed_) break;
        PACKTRAIN_TRY(make_chosen_files(sample, bytes));
      }
      return {};
    }
    for (size_t i = 0; i < samples.size() && !failed_;) {
      if (const uint64_t bytes = bytes_of_all(samples[i]); bytes >= MemoryGate::kSmall) {
        PACKTRAIN_TRY(make_large(samples.subspan(i++, 1), bytes));
        continue;
      }
      const size_t first = i++;
      while (i < samples.size() && bytes_of_all(samples[i]) < MemoryGate::kSmall) ++i;
      PACKTRAIN_TRY(make_run(samples.subspan(first, i - first)));
    }
    return {};
  }

  // As many bytes as the sample takes in memory.
  uint64_t bytes_of_all(uint64_t sample) const {
    uint64_t bytes = 0;
    for (uint32_t field = 0; field < dataset_.manifest().fields.size(); ++field)
      bytes += dataset_.locate(sample, field).length;
    return bytes;
  }

  Status make_large(std::span<const uint64_t> sample, uint64_t bytes) {
    PACKTRAIN_ASSIGN(hold, gate_.hold(bytes));
    return make_run(sample);
  }

  Status make_run(std::span<const uint64_t> samples) {
    Status status;
    const Status done = dataset_.read_many(
        samples, true, [&](size_t position, const Status& read, const SampleBytes& sample_bytes) {
          status = read.ok() ? read : leave_out(samples[position], read);
          if (!read.ok()) return status.ok() && !failed_;
          for (const SampleBytes::Field& field : sample_bytes.fields) {
            if (!status.ok()) break;
            status = make_file(samples[position], field.field, field.bytes);
          }
          return status.ok() && !failed_;
        });
    return status.ok() ? done : status;  // `done` only says that it was stopped where `status` says why
  }

  Status make_chosen_files(uint64_t sample, std::vector<std::vector<std::byte>>& bytes) {
    const std::vector<uint32_t>& fields = plan_.fields();
    uint64_t chosen_bytes = 0;
    for (const uint32_t field : fields) chosen_bytes += dataset_.locate(sample, field).length;
    PACKTRAIN_ASSIGN(hold, gate_.hold(chosen_bytes));
    for (size_t i = 0; i < fields.size(); ++i) {
      if (!dataset_.locate(sample, fields[i]).present) continue;
      const Status read = dataset_.read(sample, fields[i], bytes[i]);
      if (!read.ok()) return leave_out(sample, read);
    }
    for (size_t i = 0; i < fields.size(); ++i) {
      if (dataset_.locate(sample, fields[i]).present) PACKTRAIN_TRY(make_file(sample, fields[i], bytes[i]));
      if (chosen_bytes >= MemoryGate::kSmall) give_back(bytes[i]);
    }
    return {};
  }

  // Ok if the sample may be left out; otherwise why not, and what would help.
  Status leave_out(uint64_t sample, const Status& why) {
    if (why.code() != Code::corrupt) return why;
    const auto advise = [&](std::string_view advice) {
      return Status(why.code(), fmt::format("{}; {}", why.message(), advice)).at(why.where());
    };
    if (skip_bad_ == 0)
      return advise("leave damaged samples out with --skip-bad N (packtrain verify counts them)");
    // Another sample's file might be the one that would not be written.
    if (plan_.shared() > 0) return advise("samples share files here: use --skip-bad together with --by-key");
    Lock lock(mutex_);
    if (left_out_.size() >= skip_bad_) {
      return advise(
          fmt::format("{} damaged before it, and --skip-bad allows no more; packtrain verify counts them all",
                      left_out_.size() == 1 ? "1 was" : count_in_words(left_out_.size()) + " were"));
    }
    left_out_.emplace_back(sample, why.message());
    return {};
  }

  std::string name_of(uint64_t sample) const {
    const Result<std::string_view> key = dataset_.key(sample);
    return key.ok() ? std::string(*key) : fmt::format("#{}", sample);
  }

  Status make_file(uint64_t sample, uint32_t field, Bytes bytes) {
    PACKTRAIN_ASSIGN(path, plan_.target(dataset_, sample, field));
    if (path.empty()) return {};
    PACKTRAIN_TRY(write_whole(storage_, base_ + "/" + path, bytes, write_));
    ++files_;
    bytes_ += bytes.size();
    return meter_.add(1, bytes.size()) ? Status()
                                       : Status(Code::stopped, "stopped; nothing is left half done");
  }

  void fail_if(const Status& status) {
    if (status.ok()) return;
    Lock lock(mutex_);
    if (!failed_.exchange(true)) failure_ = status;
  }

  Storage& storage_;
  const Dataset& dataset_;
  const ExtractPlan& plan_;
  const std::string base_;
  const uint64_t skip_bad_;
  WriteOptions write_;
  ProgressMeter meter_;
  MemoryGate gate_;
  std::atomic<uint64_t> files_{0}, bytes_{0};
  std::atomic<size_t> next_turn_{0};
  std::atomic<bool> failed_{false};
  Mutex mutex_;
  Status failure_ GUARDED_BY(mutex_);
  std::vector<std::pair<uint64_t, std::string>> left_out_ GUARDED_BY(mutex_);  // sample, and what is wrong
};

Status fill(Storage& storage, const Dataset& dataset, const ExtractPlan& plan, const std::string& base,
            bool existing, const ExtractOptions& options, ExtractReport& report) {
  PACKTRAIN_TRY(make_folders(storage, plan, base, existing));
  FileMaker maker(storage, dataset, plan, base, existing, options);
  PACKTRAIN_TRY(maker.run(options.jobs > 0 ? options.jobs : granted().cores));
  maker.report_into(report);
  return {};
}

}  // namespace

Result<ExtractReport> extract(Storage& storage, std::string_view dataset_path,
                              const ExtractOptions& options) {
  std::string to = options.to;
  while (to.size() > 1 && to.ends_with('/')) to.pop_back();
  if (to.empty())
    return Status(Code::invalid, "the folder to extract to is missing; name it behind the dataset");
  PACKTRAIN_ASSIGN(state, look_at(storage, to));
  if (state == TargetState::folder && !options.overwrite) {
    return Status(Code::invalid,
                  "exists and is not empty; choose a new folder, or --overwrite to write into it")
        .at(printable(to));
  }
  OpenOptions open;
  open.progress = options.progress;
  PACKTRAIN_ASSIGN(dataset, open_dataset(storage, dataset_path, open));
  if (options.skip_bad > 0) dataset->salvage();
  PACKTRAIN_TRY(dataset->sound(IndexPart::index));  // bytes have checks of their own, names and labels do not
  PACKTRAIN_TRY(dataset->sound(IndexPart::names));
  PACKTRAIN_TRY(check_outside(storage, to, *dataset));
  PACKTRAIN_ASSIGN(plan, ExtractPlan::make(*dataset, options));
  PACKTRAIN_TRY(check_room(plan, to));

  ExtractReport report;
  report.samples = plan.samples().size();
  report.files = plan.files();
  report.bytes = plan.bytes();
  report.shared = plan.shared();
  report.folders = plan.folders().size();
  if (options.dry_run) return report;
  // Whoever takes some samples does not wait for a look at all, and who takes damaged ones knows of damage.
  if (report.samples == dataset->samples() && options.skip_bad == 0)
    PACKTRAIN_TRY(compare_own_checks(storage, *dataset, options.progress));

  if (state == TargetState::folder) {
    PACKTRAIN_TRY(fill(storage, *dataset, plan, to, true, options, report));
    return report;
  }
  PACKTRAIN_ASSIGN(part, ExtractPart::claim(storage, to));
  Status filled = fill(storage, *dataset, plan, part.files(), false, options, report);
  if (filled.ok()) filled = part.publish();
  if (!filled.ok()) {
    const Status removed = part.discard();
    (void)removed;  // the failure that led here says more; the next run removes the part first
    return filled;
  }
  return report;
}

}  // namespace packtrain
