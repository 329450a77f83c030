// packtrain extract: samples back to files.
#include <fmt/format.h>

#include "base/words.h"
#include "packtrain/pack.h"
#include "packtrain/storage.h"
#include "tools/command.h"
#include "tools/dataset_argument.h"

namespace packtrain::tools {
namespace {

void say_bad(Run& run, const std::vector<BadSample>& bad) {
  constexpr size_t kNamed = 20;
  run.warn("left out " + counted(bad.size(), "damaged sample") + ":");
  for (size_t i = 0; i < bad.size() && i < kNamed; ++i) {
    run.warn("  " + printable(bad[i].path) + ": " + bad[i].what);
  }
  if (bad.size() > kNamed) {
    run.warn("  and " + count_in_words(bad.size() - kNamed) + " more (--json lists them)");
  }
}

Status run_extract(const std::string& dataset, ExtractOptions options, Run& run) {
  options.jobs = run.jobs();
  options.progress = run.progress();
  PACKTRAIN_ASSIGN(report, extract(posix_storage(), dataset, options));
  run.result().set("to", options.to).set("dry_run", options.dry_run).set("samples", report.samples);
  run.result().set("files", report.files).set("folders", report.folders).set("bytes", report.bytes);
  run.result().set("shared", report.shared);
  Json bad = Json::array();
  for (const BadSample& sample : report.bad) {
    bad.push(Json::object().set("key", printable(sample.path)).set("what", sample.what));
  }
  run.result().set("bad", std::move(bad));
  if (!report.bad.empty()) say_bad(run, report.bad);
  if (report.shared > 0) {
    run.say(fmt::format("{} {} the same file as another, and written once", counted(report.shared, "field"),
                        report.shared == 1 ? "is" : "are"));
  }
  run.say(fmt::format("{}{} file{} of {} sample{}, {}, in {} folder{}: {}",
                      options.dry_run ? "would write " : "", count_in_words(report.files),
                      report.files == 1 ? "" : "s", count_in_words(report.samples),
                      report.samples == 1 ? "" : "s", bytes_in_words(report.bytes),
                      count_in_words(report.folders), report.folders == 1 ? "" : "s", options.to));
  return {};
}

}  // namespace

std::function<Status(Run&)> declare_extract(Options& options) {
  struct Arguments {
    std::string dataset;
    ExtractOptions extract;
  };
  auto arguments = std::make_shared<Arguments>();
  ExtractOptions& extract = arguments->extract;
  options
      .summary(
          "Writes samples back to files, under the names they were packed from. Bytes and names are "
          "restored; modes "
          "and times are not.")
      .example("packtrain extract photos.pt photos-again")
      .example("packtrain extract photos.pt cats --class cat --fields jpg")
      .positional("DATASET", arguments->dataset, kDatasetHelp)
      .positional("OUT", extract.to, "a new folder; nothing is seen of it before all is there")
      .text("--split", extract.split, "only this split")
      .text("--class", extract.class_name, "only this class, by name or number")
      .list("--keys", extract.keys, "only these samples")
      .list("--fields", extract.fields,
            "only these fields, those that packtrain made (cls) among them as KEY.FIELD")
      .flag("--by-key", extract.by_key,
            "name the files KEY.FIELD, which no two share, instead of as they were called")
      .flag("--overwrite", extract.overwrite, "write into a folder that exists, over files of the same name")
      .number("--skip-bad", extract.skip_bad,
              "leave out up to N damaged samples; all that are left out are named")
      .flag("--dry-run", extract.dry_run, "only say what would be written");
  return [arguments](Run& run) { return run_extract(arguments->dataset, arguments->extract, run); };
}

}  // namespace packtrain::tools
