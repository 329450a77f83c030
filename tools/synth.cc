// packtrain synth: a synthetic data set, for demos and tests.
#include "base/words.h"
#include "packtrain/pack.h"
#include "packtrain/storage.h"
#include "tools/command.h"

namespace packtrain::tools {

namespace {

SynthKind kind_from(const std::string& name) {
  if (name == "audio") return SynthKind::audio;
  if (name == "text") return SynthKind::text;
  if (name == "fields") return SynthKind::fields;
  return SynthKind::photos;
}

struct SynthArguments {
  SynthOptions options;
  std::string kind = "photos";
  uint64_t classes = options.classes;
};

Status run_synth(SynthArguments& arguments, Run& run) {
  SynthOptions& options = arguments.options;
  if (arguments.classes > UINT32_MAX) return Status(Code::invalid, "--classes is at most 4,294,967,295");
  options.classes = static_cast<uint32_t>(arguments.classes);
  options.kind = kind_from(arguments.kind);
  options.jobs = run.jobs();
  options.progress = run.progress();
  PACKTRAIN_ASSIGN(report, synth(posix_storage(), options));
  run.result()
      .set("out", options.out)
      .set("kind", arguments.kind)
      .set("files", report.files)
      .set("folders", report.folders)
      .set("bytes", report.bytes)
      .set("dry_run", options.dry_run);
  const std::string size = counted(report.files, "file") + ", " + bytes_in_words(report.bytes);
  if (options.dry_run) {
    run.say("would write about " + size + " in " + counted(report.folders, "folder") + " to " + options.out);
    return {};
  }
  run.say("wrote " + size + " in " + counted(report.folders, "folder") + " to " + options.out);
  run.say("next: packtrain pack " + options.out + " " + options.out + ".pt");
  return {};
}

}  // namespace

std::function<Status(Run&)> declare_synth(Options& options) {
  auto arguments = std::make_shared<SynthArguments>();
  SynthOptions& made = arguments->options;
  options.summary("Makes a synthetic data set: a class tree of loose files, the same for the same seed.")
      .example("packtrain synth photos --samples 1000 --classes 10")
      .example("packtrain synth digits --kind audio --samples 3000 --splits")
      .positional("OUT", made.out, "new folder to write to")
      .choice("--kind", arguments->kind, {"photos", "audio", "text", "fields"},
              "photo-like JPEGs (110 kB), short recordings (WAV, 7 kB), documents (text, 2 kB), fields (npy, "
              "49 kB)")
      .number("--samples", made.samples, "how many files")
      .number("--classes", arguments->classes, "how many classes, one folder each")
      .number("--seed", made.seed, "another seed gives another data set")
      .flag("--splits", made.splits, "write train/ and val/ (a tenth)")
      .flag("--dry-run", made.dry_run, "say what would be written, and write nothing");
  return [arguments](Run& run) { return run_synth(*arguments, run); };
}

}  // namespace packtrain::tools
