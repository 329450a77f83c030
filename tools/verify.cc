// packtrain verify: every checksum, every row, every container's own structure.
#include <fmt/format.h>

#include "base/words.h"
#include "packtrain/pack.h"
#include "packtrain/storage.h"
#include "tools/command.h"
#include "tools/dataset_argument.h"

namespace packtrain::tools {
namespace {

struct VerifyArguments {
  std::string dataset;
  bool recover = false;
  uint64_t most = VerifyOptions{}.max_findings;
};

std::string in_words(const Finding& finding) {
  std::string text = printable(finding.file);
  if (!finding.key.empty()) text += ": " + printable(finding.key);
  if (!finding.field.empty()) text += "." + printable(finding.field);
  return fmt::format("{} @ {}: {}", text, finding.offset, printable(finding.what));
}

void fill_result(const VerifyReport& report, Json& result) {
  result.set("samples", report.samples).set("shards", report.shards).set("bytes", report.bytes);
  result.set("damaged_samples", report.damaged_samples).set("findings_count", report.findings_count);
  result.set("structure_only", report.structure_only);
  Json list = Json::array();
  for (const Finding& finding : report.findings) {
    Json row = Json::object();
    row.set("file", finding.file).set("key", finding.key).set("field", finding.field);
    row.set("offset", finding.offset).set("what", finding.what);
    list.push(std::move(row));
  }
  result.set("findings", std::move(list));
  list = Json::array();
  for (const std::string& words : report.recoverable) list.push(words);
  result.set("recoverable", std::move(list));
}

Status run_verify(const VerifyArguments& arguments, Run& run) {
  VerifyOptions options;
  options.recover = arguments.recover;
  options.jobs = run.jobs();
  options.max_findings = arguments.most;
  options.progress = run.progress();
  PACKTRAIN_ASSIGN(report, verify(posix_storage(), arguments.dataset, options));
  if (run.json()) fill_result(report, run.result());
  for (const Finding& finding : report.findings) run.say(in_words(finding));
  if (report.findings_count > report.findings.size()) {
    run.say(fmt::format("and {} more", count_in_words(report.findings_count - report.findings.size())));
  }
  for (const std::string& words : report.recoverable) run.say("recoverable: " + words);
  if (report.findings_count > 0) {
    return run.bad_data(
        fmt::format("{}: {} finding{}, {} of {} samples damaged; restore the files named above from another "
                    "copy or pack again",
                    printable(arguments.dataset), count_in_words(report.findings_count),
                    report.findings_count == 1 ? "" : "s", count_in_words(report.damaged_samples),
                    count_in_words(report.samples)));
  }
  run.say(
      fmt::format("{} samples in {} shard{}, {}: sound{}", count_in_words(report.samples),
                  count_in_words(report.shards), report.shards == 1 ? "" : "s", bytes_in_words(report.bytes),
                  report.structure_only ? " (structure only: the container carries no checks of its payload; "
                                          "packtrain index --checksum records them)"
                                        : ""));
  return {};
}

}  // namespace

std::function<Status(Run&)> declare_verify(Options& options) {
  auto arguments = std::make_shared<VerifyArguments>();
  options
      .summary(
          "Checks every checksum, every index row and every container's structure; names what is damaged. "
          "Exit code 1 if anything is.")
      .example("packtrain verify photos.pt")
      .positional("DATASET", arguments->dataset, kDatasetHelp)
      .flag("--recover", arguments->recover,
            "walk damaged shards to their end and say what can still be read")
      .number("--max-findings", arguments->most, "name no more than N; all are counted");
  return [arguments](Run& run) { return run_verify(*arguments, run); };
}

}  // namespace packtrain::tools
