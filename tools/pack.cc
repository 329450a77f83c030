#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/words.h"
#include "packtrain/format.h"
#include "packtrain/pack.h"
#include "packtrain/storage.h"
#include "tools/command.h"
#include "tools/named_source.h"

namespace packtrain::tools {
namespace {

struct PackArguments {
  std::vector<std::string> paths;  // sources, then OUT
  PackOptions options;
  std::string order = "shuffled", task;
  bool no_sync = false;
};

std::optional<uint32_t> number_in(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint32_t> number_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? number_in(value) : std::nullopt;
}

// An element of a job array, as Slurm tells it.
struct ArrayElement {
  uint32_t number, first, last, count;
};

// Its place among the others follows from its number only where those are evenly spaced.
Status parse_array(const ArrayElement& element, PackOptions& options) {
  const auto [number, first, last, count] = element;
  const bool ordered = count > 0 && first <= number && number <= last;
  const uint32_t gaps = count > 1 ? count - 1 : 1;
  const uint32_t step = ordered ? std::max<uint32_t>((last - first) / gaps, 1) : 1;
  if (!ordered || uint64_t{step} * (count - 1) != last - first || (number - first) % step != 0) {
    return Status(Code::invalid,
                  "--task slurm: the " + counted(count, "element") + " of this job array, from " +
                      std::to_string(first) + " to " + std::to_string(last) +
                      ", are not evenly spaced, so that the place of element " + std::to_string(number) +
                      " among them is not known; submit it with --array=0-" +
                      std::to_string(count > 0 ? count - 1 : 0) + ", or give --task i/n");
  }
  options.task = (number - first) / step;
  options.tasks = count;
  return {};
}

// "i/n", or "slurm": the task of the srun step, else the element of the job array.
Status parse_task(const std::string& text, PackOptions& options) {
  if (text.empty()) return {};
  if (text == "slurm") {
    const auto step_task = number_of("SLURM_PROCID"), step_tasks = number_of("SLURM_STEP_NUM_TASKS");
    if (std::getenv("SLURM_STEP_ID") && step_task && step_tasks && *step_tasks > 1) {
      options.task = *step_task;
      options.tasks = *step_tasks;
      return {};
    }
    const auto element = number_of("SLURM_ARRAY_TASK_ID"), first = number_of("SLURM_ARRAY_TASK_MIN"),
               count = number_of("SLURM_ARRAY_TASK_COUNT"), last = number_of("SLURM_ARRAY_TASK_MAX");
    if (element && first && last && count) return parse_array({*element, *first, *last, *count}, options);
    if (std::getenv("SLURM_STEP_ID") && step_task && step_tasks) return {};  // a step of one task
    return Status(
        Code::invalid,
        "--task slurm needs an srun step of several tasks or a job array; neither is here; give --task i/n");
  }
  const size_t slash = text.find('/');
  const auto task = number_in(text.substr(0, slash));
  const auto tasks = slash == text.npos ? std::nullopt : number_in(text.substr(slash + 1));
  if (!task || !tasks || *tasks == 0 || *task >= *tasks) {
    return Status(Code::invalid,
                  "--task takes i/n with i from 0 to n-1, or slurm; not '" + printable(text) + "'");
  }
  options.task = *task;
  options.tasks = *tasks;
  return {};
}

Json report_json(const PackReport& report) {
  Json json = Json::object();
  json.set("out", report.out).set("published", report.published).set("found", report.found);
  json.set("samples", report.samples);
  json.set("shards", report.shards).set("bytes", report.bytes).set("payload_bytes", report.payload_bytes);
  json.set("inodes_before", report.inodes_before).set("inodes_after", report.inodes_after);
  json.set("shards_written", report.shards_written).set("shards_kept", report.shards_kept);
  json.set("samples_written", report.samples_written).set("bytes_written", report.bytes_written);
  json.set("shards_missing", report.shards_missing).set("renamed", report.renamed);
  json.set("skipped", Json::object()
                          .set("hidden", report.hidden_skipped)
                          .set("temporary", report.temporary_skipped)
                          .set("other", report.other_skipped));
  Json bad = Json::array();
  for (const BadSample& sample : report.bad) {
    bad.push(
        Json::object().set("path", printable(sample.path)).set("what", sample.what).set("key", sample.key));
  }
  json.set("bad", std::move(bad)).set("bad_samples", report.bad_samples);
  Json compression = Json::array();
  for (const FieldCompression& finding : report.compression) {
    compression.push(Json::object()
                         .set("field", finding.field)
                         .set("codec", finding.codec)
                         .set("compressed", finding.compressed)
                         .set("reason", finding.reason)
                         .set("values", finding.values)
                         .set("bytes", finding.bytes)
                         .set("ratio", finding.ratio)
                         .set("decode_bytes_per_second", finding.decode_bytes_per_second)
                         .set("break_even_bytes_per_second", finding.break_even_bytes_per_second));
  }
  json.set("compression", std::move(compression));
  Json fields = Json::array(), splits = Json::array();
  for (const std::string& field : report.fields) fields.push(field);
  for (const std::string& split : report.splits) splits.push(split);
  Json roots = Json::array();
  for (const std::string& root : report.roots) roots.push(printable(root));
  json.set("roots", std::move(roots));
  Json warnings = Json::array();
  for (const std::string& warning : report.warnings) warnings.push(warning);
  json.set("warnings", std::move(warnings));
  json.set("fields", std::move(fields)).set("splits", std::move(splits)).set("classes", report.classes);
  json.set(
      "smallest_shard",
      Json::object().set("samples", report.smallest_shard_samples).set("bytes", report.smallest_shard_bytes));
  json.set(
      "largest_shard",
      Json::object().set("samples", report.largest_shard_samples).set("bytes", report.largest_shard_bytes));
  if (report.conversion.images > 0) {
    const ConversionCost& cost = report.conversion;
    json.set("conversion", Json::object()
                               .set("images", cost.images)
                               .set("tried", cost.tried)
                               .set("bytes_before", cost.bytes_before)
                               .set("bytes_after", cost.bytes_after)
                               .set("mean_difference", cost.mean_difference)
                               .set("largest_difference", cost.largest_difference)
                               .set("deeper", cost.deeper)
                               .set("transparent", cost.transparent));
  }
  json.set("seconds", Json::object()
                          .set("scan", report.seconds_scan)
                          .set("write", report.seconds_write)
                          .set("publish", report.seconds_publish));
  return json;
}

void say_skipped(Run& run, const PackReport& report) {
  const uint64_t all = report.hidden_skipped + report.temporary_skipped + report.other_skipped;
  if (all > 0) {
    run.say("skipped: " + count_in_words(report.hidden_skipped) + " hidden, " +
            count_in_words(report.temporary_skipped) + " temporary, " + count_in_words(report.other_skipped) +
            " other files");
  }
  if (report.renamed > 0) {
    run.say("keys: " + count_in_words(report.renamed) + (report.renamed == 1 ? " differs" : " differ") +
            " from the file's name (plain characters only, and among several sources the source's name in "
            "front); extract gives back the original names");
  }
}

void say_bad(Run& run, const PackReport& report) {
  constexpr size_t kNamed = 20;
  for (size_t i = 0; i < report.bad.size() && i < kNamed; ++i) {
    run.warn("  " + bad_in_words(report.bad[i]));
  }
  if (report.bad.size() > kNamed)
    run.warn("  and " + count_in_words(report.bad.size() - kNamed) + " more (--json lists them)");
  if (report.bad.size() < report.bad_samples)  // of each sample at least one file is named, if any is
    run.warn("  and " + count_in_words(report.bad_samples - report.bad.size()) + " that are not named");
}

void say_plan(Run& run, const PackOptions& options, const PackReport& report) {
  const bool is_exact = options.format == "webdataset";  // others are laid out only while they are written
  run.say("would pack " + counted(report.samples, "sample") + " (" + bytes_in_words(report.payload_bytes) +
          ", " + std::to_string(report.classes) + (report.classes == 1 ? " class" : " classes") + ") into " +
          counted(report.shards, options.format + " shard") +
          (report.shards > 1 ? " of about " + bytes_in_words(report.bytes / report.shards) : "") +
          (is_exact ? ", " : ", about ") + bytes_in_words(report.bytes) + " in all");
  if (report.conversion.images > 0) run.say(cost_in_words(report.conversion));
  run.say("inodes: " + count_in_words(report.inodes_before) + " -> " + count_in_words(report.inodes_after));
  if (report.estimated_seconds > 0) {
    run.say("time: about " + seconds_in_words(report.estimated_seconds) +
            " if the source reads on as a first look at it did");
  }
  if (report.shortfall_bytes > 0) {
    run.warn("there is no room for it: " + bytes_in_words(report.shortfall_bytes) + " are lacking at " +
             printable(report.out));
  }
  if (report.shortfall_inodes > 0) {
    run.warn("there is no room for it: " + counted(report.shortfall_inodes, "inode") + " are lacking at " +
             printable(report.out) + "; choose fewer shards or another target");
  }
  say_skipped(run, report);
}

double seconds_of(const PackReport& report) {
  return report.seconds_scan + report.seconds_write + report.seconds_publish;
}

// " (83.1 MB/s)", of what this run wrote.
std::string speed_in_words(const PackReport& report) {
  if (report.seconds_write <= 0 || report.shards_written == 0) return "";
  const double speed = static_cast<double>(report.bytes_written) / report.seconds_write;
  return " (" + bytes_in_words(static_cast<uint64_t>(speed)) + "/s)";
}

void say_kept(Run& run, const PackReport& report, bool of_several) {
  if (report.shards_kept == 0) return;
  run.say("continued: " + counted(report.shards_kept, "shard") + (of_several ? " of this task" : "") +
          (report.shards_kept == 1 ? " was" : " were") + " whole from an earlier run");
}

// What one of several tasks did, as opposed to all of them.
std::string own_part_in_words(const PackReport& report) {
  return "this task wrote " + counted(report.samples_written, "sample") + " in " +
         counted(report.shards_written, "shard") + ", " + bytes_in_words(report.bytes_written) + ", in " +
         seconds_in_words(seconds_of(report)) + speed_in_words(report);
}

void say_done(Run& run, const PackReport& report, bool of_several) {
  const std::string all = counted(report.samples, "sample") + " into " + counted(report.shards, "shard") +
                          ", " + bytes_in_words(report.bytes);
  if (of_several) {
    run.say(own_part_in_words(report));
    say_kept(run, report, true);
    run.say("all tasks together packed " + all);
  } else {
    run.say("packed " + all + ", in " + seconds_in_words(seconds_of(report)) +
            (report.shards_kept == 0 ? speed_in_words(report) : ""));
    say_kept(run, report, false);
  }
  if (report.inodes_before > 0) {
    run.say("inodes: " + count_in_words(report.inodes_before) + " before, " +
            count_in_words(report.inodes_after) + " after");
  }
  if (!report.bad.empty()) {
    const bool all_named = report.bad.size() >= report.bad_samples;
    run.warn("left out " + counted(report.bad_samples, "sample") +
             " that cannot be read; the manifest lists " +
             (all_named ? "them:" : count_in_words(report.bad.size()) + " of their files:"));
    say_bad(run, report);
  }
  say_skipped(run, report);
  run.say(report.out);
}

Status run_pack(PackArguments& arguments, Run& run) {
  PackOptions& options = arguments.options;
  if (arguments.paths.empty())
    return Status(Code::invalid,
                  "SOURCE and OUT are missing: packtrain pack SOURCE OUT; see packtrain pack --help");
  if (arguments.paths.size() == 1) {
    return Status(Code::invalid, "OUT, the folder to make, is missing: packtrain pack " +
                                     printable(arguments.paths[0]) + " OUT; see packtrain pack --help");
  }
  options.out = arguments.paths.back();
  options.sources.clear();
  for (size_t i = 0; i + 1 < arguments.paths.size(); ++i)
    options.sources.push_back(parse_source(arguments.paths[i]));
  options.order = arguments.order == "stratified" ? PackOrder::stratified
                  : arguments.order == "source"   ? PackOrder::source
                                                  : PackOrder::shuffled;
  PACKTRAIN_TRY(parse_task(arguments.task, options));
  options.sync = !arguments.no_sync;
  options.jobs = run.jobs();
  options.command = run.command_line();
  options.progress = run.progress();
  options.announce = [&](const std::string& sentence) { run.say(sentence); };
  options.warn = [&](const std::string& sentence) { run.warn("note: " + sentence); };

  PackReport failed;
  auto packed = pack(posix_storage(), options, &failed);
  const PackReport& report = packed.ok() ? *packed : failed;
  run.result() = report_json(report);
  for (const std::string& warning : report.warnings) run.warn("note: " + warning);
  if (!packed.ok()) {
    if (!run.json()) say_bad(run, report);
    return packed.status();
  }
  if (options.dry_run && !report.found) {
    run.result().set("dry_run", true).set("estimated_seconds", report.estimated_seconds);
    run.result().set("shortfall_bytes", report.shortfall_bytes);
    run.result().set("shortfall_inodes", report.shortfall_inodes);
    say_plan(run, options, report);
  } else if (options.plan_only && !report.found) {
    run.say("planned " + counted(report.samples, "sample") + " in " + counted(report.shards, "shard") +
            "; run the same "
            "command without --plan, in one or several tasks, to write them");
  } else if (report.found) {
    run.say("was there already, packed with these options: " + counted(report.samples, "sample") + " in " +
            counted(report.shards, "shard") + "; nothing was left " +
            (options.tasks > 1 ? "for this task to do" : "to do"));
    run.say(report.out);
  } else if (report.published) {
    say_done(run, report, options.tasks > 1);
  } else {
    run.say(own_part_in_words(report));
    say_kept(run, report, true);
    run.say(count_in_words(report.shards_missing) + " of " + count_in_words(report.shards) +
            " shards belong to tasks that are not done; the last one to finish publishes " +
            printable(report.out));
  }
  return {};
}

// Help for --format: the formats that this build can write.
std::string writable_formats() {
  std::string names;
  for (const Format* format : formats()) {
    if (format->layout || format->create) names.append(names.empty() ? "" : ", ").append(format->name);
  }
  return "how to store it: " + names;
}

}  // namespace

std::function<Status(Run&)> declare_pack(Options& options) {
  auto arguments = std::make_shared<PackArguments>();
  PackOptions& pack = arguments->options;
  options.summary("Packs any pile of small files into a verified, indexed dataset.")
      .example("packtrain pack photos photos.pt")
      .example(
          "packtrain pack train=imagenet_train.pkl val=imagenet_val.pkl imagenet.pt --root /data/imagenet")
      .example("srun -n 8 packtrain pack photos photos.pt --task slurm")
      .positionals("[NAME=]SOURCE... OUT", arguments->paths,
                   "sources, and last the folder to make. A source is a class tree, a split tree, a flat "
                   "folder (a.cls holds the label of a.jpg, where no folder is a class), a list "
                   "(.pkl .csv .tsv .json .jsonl), captions (Flickr30k, COCO), a zip or tar of a tree, "
                   "tar.gz, tar.zst, or any "
                   "container packtrain reads; NAME= names its split",
                   0)
      .text("--root", pack.root,
            "what the paths in a list are relative to (default: the list's folder, else the one folder in it "
            "or "
            "beside it where they are, which is then said)")
      .text("--format", pack.format, writable_formats())
      .number("--shards", pack.shards,
              "number of shards (of the largest split), even to one sample (default 0: by their size)")
      .size("--shard-size", pack.shard_bytes,
            "bytes a shard, even to about 1 %, e.g. 512M (default: about 512 MB, even by count)")
      .number("--ranks", pack.ranks, "make at least one shard for each of this many ranks")
      .choice("--order", arguments->order, {"shuffled", "stratified", "source"},
              "shuffled (default): every shard is a random part; stratified: with each class in proportion; "
              "source: as found")
      .number("--seed", pack.seed, "of the shuffled orders (default 0)")
      .text("--classes", pack.classes_file,
            "file with class names, one a line, that fixes their numbers; with it digits in a list may be "
            "names too")
      .text("--path-column", pack.path_column, "column of a list that holds paths (default: guessed)")
      .text("--label-column", pack.label_column,
            "column of a list that holds labels: whole numbers, or names of classes (default: guessed; none: "
            "the samples have no labels)")
      .text(
          "--split-column", pack.split_column,
          "column of a list that says which split a row belongs to (default: one called split, unless NAME= "
          "is given; none: no column does)")
      .choice(
          "--compress", pack.compress, {"auto", "none", "deflate", "zstd", "blosc"},
          "compression of fields, where the format has it: zip deflate, zarr blosc or zstd, squashfs zstd or "
          "deflate (default auto: a look at some values decides for each field, and is said)")
      .text("--image", pack.image,
            "what becomes of each sample's image: keep (default), jpeg:QUALITY, or raw (PPM: large, and read "
            "without decoding); its cost is measured on some and said before anything is written")
      .number("--max-side", pack.max_side,
              "shrink images whose longer side has more pixels than this (with --image keep: JPEGs, to "
              "quality 90)")
      .flag("--baseline", pack.baseline,
            "recode progressive JPEGs as baseline ones: the same pixels, and less "
            "memory to decode them")
      .list("--sidecars", pack.sidecars, "indexes for other tools beside the shards: wids, dali, energon")
      .number("--skip-bad", pack.skip_bad,
              "leave out up to this many samples that cannot be read (default 0)")
      .text("--task", arguments->task,
            "i/n: this is task i of n that pack together; slurm: take it from the srun step or job array")
      .flag("--plan", pack.plan_only, "only make the plan")
      .flag("--dry-run", pack.dry_run, "say what would be done, and do nothing")
      .flag("--no-sync", arguments->no_sync,
            "do not wait until the bytes are on disk (a power failure may then lose them)");
  return [arguments](Run& run) { return run_pack(*arguments, run); };
}

}  // namespace packtrain::tools
