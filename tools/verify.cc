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

std::string_view remedy_name(Remedy remedy) {
  switch (remedy) {
    case Remedy::remove:
      return "remove";
    case Remedy::reindex:
      return "reindex";
    case Remedy::restore:
      break;
  }
  return "restore";
}

std::string damage_in_words(const VerifyReport& report) {
  if (report.unchecked_samples >= report.samples) return "its samples could not be checked one by one";
  std::string words = fmt::format("{} of {} samples damaged", count_in_words(report.damaged_samples),
                                  count_in_words(report.samples));
  if (report.unchecked_samples > 0) {
    words += fmt::format(", {} not checked", count_in_words(report.unchecked_samples));
  }
  return words;
}

std::string advice(const VerifyReport& report) {
  std::string words;
  const auto add = [&](uint64_t findings, std::string_view what) {
    if (findings > 0) words.append("; ").append(what);
  };
  add(report.findings_count - report.to_remove - report.to_reindex,
      "restore what is damaged from another copy or pack again");
  add(report.to_reindex, "run packtrain index again on what has changed");
  add(report.to_remove, "remove what does not belong to it");
  return words;
}

void fill_result(const VerifyReport& report, Json& result) {
  result.set("samples", report.samples).set("shards", report.shards).set("bytes", report.bytes);
  result.set("damaged_samples", report.damaged_samples).set("findings_count", report.findings_count);
  result.set("unchecked_samples", report.unchecked_samples);
  result.set("structure_only", report.structure_only);
  Json list = Json::array();
  for (const Finding& finding : report.findings) {
    Json row = Json::object();
    row.set("file", finding.file).set("key", finding.key).set("field", finding.field);
    row.set("offset", finding.offset).set("what", finding.what);
    row.set("remedy", remedy_name(finding.remedy));
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
    return run.bad_data(fmt::format("{}: {}, {}{}", printable(arguments.dataset),
                                    counted(report.findings_count, "finding"), damage_in_words(report),
                                    advice(report)));
  }
  run.say(fmt::format("{} in {}, {}: sound{}", counted(report.samples, "sample"),
                      counted(report.shards, "shard"), bytes_in_words(report.bytes),
                      report.structure_only
                          ? " (structure only, where the container carries no checks of its payload; "
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
