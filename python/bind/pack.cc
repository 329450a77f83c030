// include/packtrain/pack.h: packing, checking, extracting; synthetic data; a page to look at.
#include "packtrain/pack.h"

#include <array>

#include "arguments.h"
#include "base/process_token.h"
#include "packtrain/format.h"
#include "report.h"

namespace packtrain::bind {

namespace {

template <class Enum>
struct Choice {
  std::string_view name;
  Enum value;
};
constexpr std::array kOrders = {Choice<PackOrder>{"shuffled", PackOrder::shuffled},
                                Choice<PackOrder>{"stratified", PackOrder::stratified},
                                Choice<PackOrder>{"source", PackOrder::source}};
constexpr std::array kKinds = {
    Choice<SynthKind>{"photos", SynthKind::photos}, Choice<SynthKind>{"audio", SynthKind::audio},
    Choice<SynthKind>{"text", SynthKind::text}, Choice<SynthKind>{"fields", SynthKind::fields}};

template <class Enum, size_t n>
Enum choose(std::string_view argument, const std::string& given, const std::array<Choice<Enum>, n>& choices) {
  std::string names;
  for (const auto& choice : choices) {
    if (choice.name == given) return choice.value;
    names.append(names.empty() ? "" : ", ").append(choice.name);
  }
  raise(Status(Code::invalid, std::string(argument) + " is '" + given + "', but must be one of: " + names));
}

std::string native(const std::optional<Path>& path) { return path ? path->name : std::string(); }

void bind_pack_report(nb::module_& module) {
  ReportClass<BadSample>(module, "BadSample", "A file that could not be packed, or a damaged sample.")
      .field("path", &BadSample::path, "Where it is.")
      .field("what", &BadSample::what, "What is wrong with it.")
      .field("key", &BadSample::key, "Its sample; '' for what was found bad before samples had keys.");
  ReportClass<ConversionCost>(
      module, "ConversionCost",
      "What converting images costs, measured on some of them before anything is written.")
      .field("images", &ConversionCost::images, "How many images may be converted.")
      .field("tried", &ConversionCost::tried, "How many of them were tried: the rest is of these.")
      .field("bytes_before", &ConversionCost::bytes_before, "Their bytes as they are.")
      .field("bytes_after", &ConversionCost::bytes_after, "Their bytes as they will be packed.")
      .field("mean_difference", &ConversionCost::mean_difference,
             "How far pixels are from the source's, shrunk if they are: in grey levels, on average.")
      .field("largest_difference", &ConversionCost::largest_difference, "The same, at most.")
      .field("deeper", &ConversionCost::deeper,
             "How many of those tried have 16 bits a value, of which 8 are kept.")
      .field("transparent", &ConversionCost::transparent,
             "How many of those tried have an alpha channel, which is not kept.");
  ReportClass<FieldCompression>(module, "FieldCompression",
                                "What a look at some of a field's values says about compressing it.")
      .field("field", &FieldCompression::field, "The field.")
      .field("codec", &FieldCompression::codec, "What it was tried with.")
      .field("compressed", &FieldCompression::compressed, "Whether it is compressed.")
      .field("reason", &FieldCompression::reason, "Why, in words.")
      .field("values", &FieldCompression::values, "How many values were looked at.")
      .field("bytes", &FieldCompression::bytes, "How many bytes of them.")
      .field("ratio", &FieldCompression::ratio, "Stored bytes by raw ones; 0 if nothing was tried.")
      .field("decode_bytes_per_second", &FieldCompression::decode_bytes_per_second,
             "How fast one core decoded them.")
      .field("break_even_bytes_per_second", &FieldCompression::break_even_bytes_per_second,
             "Compressed values are faster where storage gives a core less than this.");
  ReportClass<PackReport>(module, "PackReport", "What pack() did.")
      .field("out", &PackReport::out, "The dataset.")
      .field("published", &PackReport::published,
             "Whether the dataset is there; not after a dry run, or while other tasks are still packing.")
      .field("samples", &PackReport::samples, "How many samples it has.")
      .field("shards", &PackReport::shards, "In how many shards.")
      .field("bytes", &PackReport::bytes, "The size of all shards.")
      .field("payload_bytes", &PackReport::payload_bytes, "The size of all fields.")
      .field("inodes_before", &PackReport::inodes_before, "Files and folders of the source.")
      .field("inodes_after", &PackReport::inodes_after, "Files and folders of the dataset.")
      .field("shards_written", &PackReport::shards_written, "How many shards this run, or task, wrote.")
      .field("samples_written", &PackReport::samples_written, "How many samples it wrote.")
      .field("bytes_written", &PackReport::bytes_written, "How many bytes of shards it wrote.")
      .field("shards_kept", &PackReport::shards_kept,
             "How many of its own part were whole from an earlier run.")
      .field("shards_missing", &PackReport::shards_missing, "How many other tasks still have to write.")
      .field("found", &PackReport::found,
             "Whether it was there already, made of the same source with the same options.")
      .field("renamed", &PackReport::renamed, "Samples whose key differs from their path.")
      .field("hidden_skipped", &PackReport::hidden_skipped, "Hidden files that were left out.")
      .field("temporary_skipped", &PackReport::temporary_skipped, "Temporary files that were left out.")
      .field("other_skipped", &PackReport::other_skipped, "Devices, sockets and the like, left out.")
      .field("bad", &PackReport::bad, "What could not be read: left out (skip_bad), or why it failed.")
      .field("bad_samples", &PackReport::bad_samples,
             "How many samples that are; of what the scan found, only the first are named.")
      .field("roots", &PackReport::roots, "Folders that the paths of trees and lists are relative to.")
      .field("warnings", &PackReport::warnings, "What was found odd in the source, a sentence each.")
      .field("compression", &PackReport::compression,
             "What was found and decided for each field, in formats that compress.")
      .field("fields", &PackReport::fields, "The names of all fields.")
      .field("splits", &PackReport::splits, "The names of all splits.")
      .field("classes", &PackReport::classes, "How many classes there are.")
      .field("smallest_shard_samples", &PackReport::smallest_shard_samples, "Samples of the smallest shard.")
      .field("largest_shard_samples", &PackReport::largest_shard_samples, "Samples of the largest shard.")
      .field("smallest_shard_bytes", &PackReport::smallest_shard_bytes, "Bytes of the smallest shard.")
      .field("largest_shard_bytes", &PackReport::largest_shard_bytes, "Bytes of the largest shard.")
      .field("shortfall_bytes", &PackReport::shortfall_bytes, "Dry run: what the target lacks of room.")
      .field("shortfall_inodes", &PackReport::shortfall_inodes,
             "Dry run: how many files too few it can hold.")
      .field("seconds_scan", &PackReport::seconds_scan, "Time taken to look at the source.")
      .field("seconds_write", &PackReport::seconds_write, "Time taken to write shards.")
      .field("seconds_publish", &PackReport::seconds_publish, "Time taken to write the index.")
      .field("estimated_seconds", &PackReport::estimated_seconds, "Dry run: how long packing would take.")
      .field("conversion", &PackReport::conversion, "What converting images costs; zeros without it.");
}

void bind_pack_function(nb::module_& module) {
  module.def(
      "pack",
      [](Sources sources, const Path& out, const std::optional<Path>& root, std::string format,
         uint64_t shards, Size shard_size, uint64_t ranks, const std::string& order, uint64_t seed,
         const std::optional<Path>& classes, std::string path_column, std::string label_column,
         std::string split_column, std::string compress, std::string image, uint64_t max_side, bool baseline,
         std::vector<std::string> sidecars, uint64_t skip_bad, uint32_t task, uint32_t tasks, bool plan,
         bool dry_run, uint32_t jobs, bool sync, const ProgressCallback& progress) {
        PackOptions options;
        options.sources = std::move(sources.named);
        options.out = out.name;
        options.root = native(root);
        options.format = std::move(format);
        options.shards = shards;
        options.shard_bytes = shard_size.bytes;
        options.ranks = ranks;
        options.order = choose("order", order, kOrders);
        options.seed = seed;
        options.classes_file = native(classes);
        options.path_column = std::move(path_column);
        options.label_column = std::move(label_column);
        options.split_column = std::move(split_column);
        options.compress = std::move(compress);
        options.image = std::move(image);
        options.max_side = max_side;
        options.baseline = baseline;
        options.sidecars = std::move(sidecars);
        options.skip_bad = skip_bad;
        options.task = task;
        options.tasks = tasks;
        options.plan_only = plan;
        options.dry_run = dry_run;
        options.jobs = jobs;
        options.sync = sync;
        options.command = "packtrain.pack";
        PackReport on_failure;
        auto result = call_long(progress, [&](const Progress& hook) {
          options.progress = hook;
          return pack(posix_storage(), options, &on_failure);
        });
        if (!result.ok()) raise(result.status(), nb::cast(std::move(on_failure)));
        return std::move(result).value();
      },
      nb::arg("sources"), nb::arg("out"), nb::kw_only(), nb::arg("root") = nb::none(),
      nb::arg("format") = "webdataset", nb::arg("shards") = 0, nb::arg("shard_size") = 0,
      nb::arg("ranks") = 1, nb::arg("order") = "shuffled", nb::arg("seed") = 0,
      nb::arg("classes") = nb::none(), nb::arg("path_column") = "", nb::arg("label_column") = "",
      nb::arg("split_column") = "", nb::arg("compress") = "auto", nb::arg("image") = "keep",
      nb::arg("max_side") = 0, nb::arg("baseline") = false, nb::arg("sidecars") = std::vector<std::string>(),
      nb::arg("skip_bad") = 0, nb::arg("task") = 0, nb::arg("tasks") = 1, nb::arg("plan") = false,
      nb::arg("dry_run") = false, nb::arg("jobs") = 0, nb::arg("sync") = true,
      nb::arg("progress") = nb::none(),
      "Packs sources into a new dataset folder `out`.\n\n"
      "`sources` is a class tree, a split tree, a flat folder, a list (.pkl, .csv, .tsv, .json, .jsonl), a\n"
      "caption list, an archive of a tree, or any container; several of them; or {split: source}. The same\n"
      "sources and options give the same bytes. A run that was stopped or killed is continued by the next "
      "one\n"
      "with the same arguments.\n\n"
      "root: what paths in lists are relative to. shards, shard_size ('512M'): how many, or about how "
      "large;\n"
      "ranks: at least one shard for each. order: 'shuffled' (by `seed`), 'stratified' or 'source'. classes: "
      "a\n"
      "file with one class name a line. path_column, label_column, split_column: of\n"
      "lists, guessed from common names; 'none' for no labels or no splits. image: 'keep', 'jpeg:90' or "
      "'raw'; max_side: shrink\n"
      "larger images; baseline: recode progressive JPEGs, with the same pixels. sidecars: 'wids', 'dali',\n"
      "'energon'. compress: 'auto', 'none' or a codec that the format has; 'auto' looks at some values of "
      "each\n"
      "field, and the report's `compression` says what it found. skip_bad: how many unreadable samples may "
      "be left out. task, tasks: this one of several "
      "that\n"
      "pack together. plan: only plan. dry_run: only say what would be done. jobs: threads, 0 for the cores\n"
      "granted. sync: be durable before being visible.\n\n"
      "An error has the attribute `report`, which names the files that could not be read.");
}

void bind_verify(nb::module_& module) {
  ReportClass<Finding>(module, "Finding", "One thing that verify() found wrong.")
      .field("file", &Finding::file, "The shard, or another file of the dataset.")
      .field("key", &Finding::key, "Of the damaged sample; '' if it is no sample's.")
      .field("field", &Finding::field, "The damaged field.")
      .field("offset", &Finding::offset, "Where in the file.")
      .field("what", &Finding::what, "What is wrong.");
  ReportClass<VerifyReport>(module, "VerifyReport", "What verify() saw.")
      .property(
          "ok", [](const VerifyReport& report) { return report.findings_count == 0; },
          "Whether nothing is wrong.")
      .field("samples", &VerifyReport::samples, "How many samples were looked at.")
      .field("shards", &VerifyReport::shards, "How many shards.")
      .field("bytes", &VerifyReport::bytes, "How many bytes.")
      .field("damaged_samples", &VerifyReport::damaged_samples, "How many samples are damaged.")
      .field("unchecked_samples", &VerifyReport::unchecked_samples,
             "How many could not be compared one by one: the index is damaged, or of an earlier container.")
      .field("findings_count", &VerifyReport::findings_count, "How many findings there are in all.")
      .field("structure_only", &VerifyReport::structure_only,
             "Whether a foreign container carries no checks of some payload, of which only the structure was "
             "checked.")
      .field("findings", &VerifyReport::findings, "The first of them.")
      .field("recoverable", &VerifyReport::recoverable, "With recover: what can still be read, in words.");
  module.def(
      "verify",
      [](const Path& dataset, bool recover, uint64_t max_findings, uint32_t jobs,
         const ProgressCallback& progress) {
        return value_or_raise(call_long(progress, [&](const Progress& hook) {
          VerifyOptions options;
          options.recover = recover;
          options.jobs = jobs;
          options.max_findings = max_findings;
          options.progress = hook;
          return verify(posix_storage(), dataset.name, options);
        }));
      },
      nb::arg("dataset"), nb::kw_only(), nb::arg("recover") = false, nb::arg("max_findings") = 1000,
      nb::arg("jobs") = 0, nb::arg("progress") = nb::none(),
      "Checks every checksum, every index row and every container's own structure.\n\n"
      "Bad data are no exception: look at the report's `ok` and `findings`. With `recover` damaged shards "
      "are\n"
      "walked to their end, and the report says what can still be read.");
}

void bind_extract(nb::module_& module) {
  ReportClass<ExtractReport>(module, "ExtractReport", "What extract() wrote.")
      .field("samples", &ExtractReport::samples, "How many samples.")
      .field("files", &ExtractReport::files, "As how many files.")
      .field("bytes", &ExtractReport::bytes, "Of how many bytes.")
      .field("folders", &ExtractReport::folders, "In how many folders.")
      .field("shared", &ExtractReport::shared, "Fields that are the same file as another's: written once.")
      .field("bad", &ExtractReport::bad, "Damaged samples that were left out (skip_bad), by key.");
  module.def(
      "extract",
      [](const Path& dataset, const Path& to, const std::optional<std::string>& split,
         const std::optional<std::string>& class_name, std::vector<std::string> keys,
         std::vector<std::string> fields, bool by_key, bool overwrite, uint64_t skip_bad, bool dry_run,
         uint32_t jobs, const ProgressCallback& progress) {
        return value_or_raise(call_long(progress, [&](const Progress& hook) {
          ExtractOptions options;
          options.to = to.name;
          options.split = split.value_or("");
          options.class_name = class_name.value_or("");
          options.keys = std::move(keys);
          options.fields = std::move(fields);
          options.by_key = by_key;
          options.overwrite = overwrite;
          options.skip_bad = skip_bad;
          options.dry_run = dry_run;
          options.jobs = jobs;
          options.progress = hook;
          return extract(posix_storage(), dataset.name, options);
        }));
      },
      nb::arg("dataset"), nb::arg("to"), nb::kw_only(), nb::arg("split") = nb::none(),
      nb::arg("class_name") = nb::none(), nb::arg("keys") = std::vector<std::string>(),
      nb::arg("fields") = std::vector<std::string>(), nb::arg("by_key") = false, nb::arg("overwrite") = false,
      nb::arg("skip_bad") = 0, nb::arg("dry_run") = false, nb::arg("jobs") = 0,
      nb::arg("progress") = nb::none(),
      "Writes samples back to files below the folder `to`, with the names and bytes they were packed "
      "from.\n\n"
      "`split`, `class_name`, `keys` and `fields` choose some of them; by default all that have a path of "
      "their own. Fields with one path and equal bytes are written once; where bytes differ, `by_key` gives "
      "every file a name of its own, KEY.FIELD. skip_bad: how many damaged samples may be left out; the "
      "report "
      "names them.");
}

void bind_synth(nb::module_& module) {
  ReportClass<SynthReport>(module, "SynthReport", "What synth() wrote.")
      .field("files", &SynthReport::files, "How many files.")
      .field("folders", &SynthReport::folders, "In how many folders.")
      .field("bytes", &SynthReport::bytes, "Of how many bytes.");
  module.def(
      "synth",
      [](const Path& out, const std::string& kind, uint64_t samples, uint32_t classes, uint64_t seed,
         bool splits, uint32_t jobs, bool dry_run, const ProgressCallback& progress) {
        SynthOptions options;
        options.kind = choose("kind", kind, kKinds);
        options.out = out.name;
        options.samples = samples;
        options.classes = classes;
        options.seed = seed;
        options.splits = splits;
        options.jobs = jobs;
        options.dry_run = dry_run;
        return value_or_raise(call_long(progress, [&](const Progress& hook) {
          options.progress = hook;
          return synth(posix_storage(), options);
        }));
      },
      nb::arg("out"), nb::kw_only(), nb::arg("kind") = "photos", nb::arg("samples") = 1000,
      nb::arg("classes") = 10, nb::arg("seed") = 0, nb::arg("splits") = false, nb::arg("jobs") = 0,
      nb::arg("dry_run") = false, nb::arg("progress") = nb::none(),
      "Makes a synthetic data set in a new folder: a class tree of loose files, the same for the same "
      "seed.\n\n"
      "`kind` is 'photos' (JPEG), 'audio' (WAV), 'text' or 'fields' (.npy). With `splits` there are train/ "
      "and\n"
      "val/ (a tenth).");
}

void bind_show(nb::module_& module) {
  module.def(
      "show",
      [](const Path& dataset, const Path& out, uint32_t samples, uint64_t seed,
         const std::optional<std::string>& split, uint32_t jobs, const ProgressCallback& progress) {
        check(call_long(progress, [&](const Progress& hook) -> Status {
          PACKTRAIN_ASSIGN(opened, open_dataset(posix_storage(), dataset.name, {.progress = hook}));
          PACKTRAIN_ASSIGN(page, show_page(*opened, {.samples = samples,
                                                     .seed = seed,
                                                     .split = split.value_or(""),
                                                     .jobs = jobs,
                                                     .progress = hook}));
          return write_whole(posix_storage(), out.name, as_bytes(page),
                             {.token = process_token(), .replace = true});
        }));
      },
      nb::arg("dataset"), nb::arg("out"), nb::kw_only(), nb::arg("samples") = 64, nb::arg("seed") = 0,
      nb::arg("split") = nb::none(), nb::arg("jobs") = 0, nb::arg("progress") = nb::none(),
      "Writes one self-contained HTML page: contact sheet, class histogram, sizes, evenness of shards.\n\n"
      "A file of the name `out` is replaced.");
}

}  // namespace

void bind_pack(nb::module_& module) {
  bind_pack_report(module);
  bind_pack_function(module);
  bind_verify(module);
  bind_extract(module);
  bind_synth(module);
  bind_show(module);
}

}  // namespace packtrain::bind
