// synth: a synthetic data set as loose files, the way a user would have them.
#include "packtrain/pack.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <set>

#include "base/mutex.h"
#include "base/threads.h"
#include "base/words.h"
#include "pack/synth_sample.h"
#include "packtrain/place.h"

namespace packtrain {

namespace {

// Says that a folder is the unfinished work of synth, and may be thrown away by the next run.
constexpr std::string_view kMarker = ".packtrain-synth";

struct KindFacts {
  std::string_view suffix;
  uint64_t mean_bytes;  // for the check of room and for --dry-run
};
KindFacts facts_of(SynthKind kind) {
  switch (kind) {
    case SynthKind::photos:
      return {".jpg", 110'000};
    case SynthKind::audio:
      return {".wav", 6'924};
    case SynthKind::text:
      return {".txt", 2'340};
    case SynthKind::fields:
      break;
  }
  return {".npy", 128 + 3 * 64 * 64 * 4};
}

Result<std::vector<std::byte>> make_sample(SynthKind kind, const SynthKeys& keys) {
  switch (kind) {
    case SynthKind::photos:
      return synth_photo(keys);
    case SynthKind::audio:
      return synth_recording(keys);
    case SynthKind::text:
      return synth_document(keys);
    case SynthKind::fields:
      break;
  }
  return synth_field(keys);
}

// Which sample is called what. Labels go round, so that classes are even and a longer set begins like a
// shorter.
class Naming {
 public:
  explicit Naming(const SynthOptions& options) : options_(options) {
    if (options.splits) first_val_ = options.samples - std::max<uint64_t>(options.samples / 10, 1);
    for (uint32_t label = 0; label < options.classes; ++label)
      classes_.push_back(synth_class_name(options.kind, label));
  }

  uint32_t label(uint64_t index) const { return static_cast<uint32_t>(index % options_.classes); }
  std::string folder(uint64_t index) const {
    const std::string& name = classes_[label(index)];
    if (!options_.splits) return name;
    return (index < first_val_ ? "train/" : "val/") + name;
  }
  std::string file(uint64_t index) const {
    char number[24];
    std::snprintf(number, sizeof number, "_%05llu",
                  static_cast<unsigned long long>(index / options_.classes));
    return folder(index) + "/" + classes_[label(index)] + number +
           std::string(facts_of(options_.kind).suffix);
  }
  std::set<std::string> folders() const {
    std::set<std::string> all;
    // A class comes up within `classes` samples of the start of each split.
    for (const uint64_t start : {uint64_t{0}, options_.splits ? first_val_ : uint64_t{0}})
      for (uint64_t i = start; i < std::min(start + options_.classes, options_.samples); ++i)
        if (start > 0 || !options_.splits || i < first_val_) all.insert(folder(i));
    return all;
  }

 private:
  const SynthOptions& options_;
  uint64_t first_val_ = UINT64_MAX;
  std::vector<std::string> classes_;
};

Status check_options(const SynthOptions& options) {
  if (options.out.empty()) return Status(Code::invalid, "synth needs a folder to write to");
  if (options.classes == 0) return Status(Code::invalid, "synth needs at least one class");
  if (options.samples < (options.splits ? 2 : 1))
    return Status(Code::invalid, "synth needs at least one sample, and two for splits");
  return {};
}

Status check_room(const SynthOptions& options, const SynthReport& plan) {
  PACKTRAIN_ASSIGN(place, place_of(options.out));
  if (place.read_only) return Status(Code::io, "the filesystem is read-only; choose another").at(options.out);
  // Sizes vary, and a file takes whole blocks of the disk.
  const uint64_t bytes = plan.bytes + plan.bytes / 20 + plan.files * 2048;
  if (place.bytes_total > 0 && place.bytes_free < bytes)
    return Status(Code::no_room, bytes_in_words(bytes) + " are needed and " +
                                     bytes_in_words(place.bytes_free) + " are free on " + place.mount +
                                     "; ask for fewer samples or choose another")
        .at(options.out);
  const uint64_t inodes = plan.files + plan.folders;
  if (place.inodes_total > 0 && place.inodes_free < inodes)
    return Status(Code::no_room, count_in_words(inodes) + " inodes are needed and " +
                                     count_in_words(place.inodes_free) + " are free on " + place.mount +
                                     "; ask for fewer samples or choose another")
        .at(options.out);
  return {};
}

// An empty OUT.part with the marker in it. What a killed run left is thrown away; anything else is not
// touched.
Status make_part(Storage& storage, const std::string& part) {
  const std::string marker = part + "/" + std::string(kMarker);
  if (storage.stat(part).ok()) {
    if (!storage.stat(marker).ok())
      return Status(Code::invalid, "exists, and is not what an earlier synth left; remove it").at(part);
    PACKTRAIN_TRY(remove_tree(storage, part));
  }
  PACKTRAIN_TRY(storage.make_folder(part));
  return write_whole(storage, marker, {}, {.durable = false});
}

// What the workers share: the next index, the first failure, and the caller's progress. Thread-safe.
class Work {
 public:
  explicit Work(const SynthOptions& options) : options_(options) {}

  // The next index to make; nothing at the end, or after a failure.
  std::optional<uint64_t> next() {
    if (failed_.load(std::memory_order_relaxed)) return std::nullopt;
    const uint64_t index = next_.fetch_add(1, std::memory_order_relaxed);
    return index < options_.samples ? std::optional(index) : std::nullopt;
  }

  void fail(Status status) EXCLUDES(mutex_) {
    Lock lock(mutex_);
    note_failure(std::move(status));
  }

  void done(uint64_t bytes) EXCLUDES(mutex_) {
    Lock lock(mutex_);
    ++files_;
    bytes_ += bytes;
    const auto now = std::chrono::steady_clock::now();
    if (!options_.progress ||
        (now - last_told_ < std::chrono::milliseconds(100) && files_ < options_.samples))
      return;
    last_told_ = now;
    const ProgressEvent event{
        .phase = "synth", .items = files_, .items_total = options_.samples, .bytes = bytes_, .unit = "files"};
    if (!options_.progress(event)) note_failure(Status(Code::stopped, "stopped; nothing was kept"));
  }

  Status status() EXCLUDES(mutex_) {
    Lock lock(mutex_);
    return status_;
  }
  uint64_t bytes() EXCLUDES(mutex_) {
    Lock lock(mutex_);
    return bytes_;
  }

 private:
  void note_failure(Status status) REQUIRES(mutex_) {
    if (status_.ok()) status_ = std::move(status);
    failed_.store(true, std::memory_order_relaxed);
  }

  const SynthOptions& options_;
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> failed_{false};
  Mutex mutex_;  // guards what follows; held over the caller's progress, so that it is called one at a time
  Status status_ GUARDED_BY(mutex_);
  uint64_t files_ GUARDED_BY(mutex_) = 0, bytes_ GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point last_told_ GUARDED_BY(mutex_);
};

Result<uint64_t> write_samples(Storage& storage, const SynthOptions& options, const Naming& naming,
                               const std::string& part) {
  for (const std::string& folder : naming.folders())
    PACKTRAIN_TRY(storage.make_folder(path_below(part, folder)));
  Work work(options);
  const uint32_t jobs = options.jobs > 0 ? options.jobs : granted().cores;
  run_on("synth", static_cast<uint32_t>(std::min<uint64_t>(jobs, options.samples)), [&](uint32_t) {
    while (const auto index = work.next()) {
      const auto sample =
          make_sample(options.kind, {options.seed, *index, naming.label(*index), options.classes});
      if (!sample.ok()) return work.fail(sample.status());
      const std::string path = part + "/" + naming.file(*index);
      // Not durable file by file: what a power cut takes can be made again.
      if (Status status = write_whole(storage, path, *sample, {.durable = false}); !status.ok())
        return work.fail(status.at(path));
      work.done(sample->size());
    }
  });
  PACKTRAIN_TRY(work.status());
  return work.bytes();
}

}  // namespace

Result<SynthReport> synth(Storage& storage, const SynthOptions& given) {
  SynthOptions options = given;
  while (options.out.size() > 1 && options.out.back() == '/') options.out.pop_back();
  PACKTRAIN_TRY(check_options(options));
  if (storage.stat(options.out, false).ok())
    return Status(Code::invalid, "exists; choose another or remove it").at(options.out);
  const Naming naming(options);
  SynthReport report;
  report.files = options.samples;
  report.folders = naming.folders().size() + 1 + (options.splits ? 2 : 0);
  report.bytes = options.samples * facts_of(options.kind).mean_bytes;
  PACKTRAIN_TRY(check_room(options, report));
  if (options.dry_run) return report;

  const std::string part = options.out + ".part";
  PACKTRAIN_TRY(make_part(storage, part));
  const auto bytes = write_samples(storage, options, naming, part);
  if (!bytes.ok()) {
    (void)remove_tree(storage, part);  // the first failure is what the user must hear of
    return bytes.status();
  }
  report.bytes = *bytes;
  PACKTRAIN_TRY(storage.remove(part + "/" + std::string(kMarker)));
  PACKTRAIN_TRY(storage.rename(part, options.out));
  return report;
}

}  // namespace packtrain
