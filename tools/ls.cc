// packtrain ls: the samples of a dataset, one a line.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/words.h"
#include "packtrain/pack.h"
#include "tools/command.h"
#include "tools/dataset_argument.h"

namespace packtrain::tools {
namespace {

constexpr uint64_t kSamplesPerLook = 4096;  // between two looks for a signal

struct LsArguments {
  std::string dataset, split, class_name;
  bool details = false, shards = false;
  std::optional<uint64_t> limit;
};

struct Row {
  uint64_t index = 0, bytes = 0, offset = 0;
  std::string_view key;
  std::string label, shard;
};

// A terminal obeys control bytes; a pipe gets names as they are, but for those bytes that would make two
// lines or columns of one.
std::string without(std::string_view separators, std::string_view name) {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  return terminal || name.find_first_of(separators) != name.npos ? printable(name) : std::string(name);
}

std::string in_line(std::string_view name) { return without("\n", name); }
std::string in_table(std::string_view name) { return without("\t\n", name); }

Result<Row> row_of(const Dataset& dataset, uint64_t sample) {
  const Manifest& manifest = dataset.manifest();
  Row row;
  row.index = sample;
  row.offset = UINT64_MAX;
  row.label = label_in_words(manifest, dataset.label(sample));
  const uint32_t shard = dataset.shard_of(sample);
  if (shard >= manifest.shards.size())
    return Status(Code::corrupt, "the index names a shard that does not exist; run packtrain verify")
        .at("sample " + std::to_string(sample));
  row.shard = manifest.shards[shard].path;
  PACKTRAIN_ASSIGN(key, dataset.key(sample));
  row.key = key;
  std::vector<std::pair<Block, Slice>> slices;
  for (uint32_t field = 0; field < manifest.fields.size(); ++field) {
    const FieldLocation at = dataset.locate(sample, field);
    if (!at.present) continue;
    row.bytes += at.length;
    if (at.plain) {
      row.offset = std::min(row.offset, at.offset);
    } else {
      slices.clear();
      PACKTRAIN_TRY(dataset.slices(sample, field, slices));
      if (!slices.empty()) row.offset = std::min(row.offset, slices.front().first.offset);
    }
  }
  if (row.offset == UINT64_MAX) row.offset = 0;
  return row;
}

Status list_shards(const Manifest& manifest, Run& run) {
  Json list = Json::array();
  for (const ShardSpec& shard : manifest.shards) {
    run.say(fmt::format("{}\t{}\t{}\t{}", in_table(shard.path), shard.format, shard.samples, shard.bytes));
    if (!run.json()) continue;
    Json row = Json::object();
    row.set("path", shard.path)
        .set("format", shard.format)
        .set("samples", shard.samples)
        .set("bytes", shard.bytes);
    list.push(std::move(row));
  }
  run.result().set("shards", std::move(list));
  return {};
}

Status run_ls(const LsArguments& arguments, Run& run) {
  PACKTRAIN_ASSIGN(dataset, open_for(run, arguments.dataset));
  if (arguments.shards) return list_shards(dataset->manifest(), run);
  // What is handed on has no other witness. For a few samples all of a large index would be too much.
  if (!arguments.limit) {
    const bool rows = arguments.details || run.json();
    if (rows || !arguments.class_name.empty())
      PACKTRAIN_TRY(dataset->sound(rows ? IndexPart::index : IndexPart::labels, kQuickToCompare));
    PACKTRAIN_TRY(dataset->sound(IndexPart::names, kQuickToCompare));
  }
  PACKTRAIN_ASSIGN(selection, select_samples(*dataset, arguments.split, arguments.class_name));
  const Progress progress = run.progress();
  Json list = Json::array();
  uint64_t listed = 0;
  for (uint64_t sample = selection.first; sample < selection.end; ++sample) {
    if (arguments.limit && listed == *arguments.limit) break;
    if (sample % kSamplesPerLook == 0 && !progress({.phase = "ls",
                                                    .items = sample - selection.first,
                                                    .items_total = selection.end - selection.first})) {
      return Status(Code::stopped, "stopped");
    }
    if (!selection.has(*dataset, sample)) continue;
    ++listed;
    if (!arguments.details && !run.json()) {
      PACKTRAIN_ASSIGN(key, dataset->key(sample));
      run.say(in_line(key));
      continue;
    }
    PACKTRAIN_ASSIGN(row, row_of(*dataset, sample));
    run.say(fmt::format("{}\t{}\t{}\t{}\t{}\t{}", row.index, in_table(row.key), in_table(row.label),
                        row.bytes, in_table(row.shard), row.offset));
    if (!run.json()) continue;
    Json object = Json::object();
    object.set("index", row.index).set("key", row.key).set("label", row.label).set("bytes", row.bytes);
    object.set("shard", row.shard).set("offset", row.offset);
    list.push(std::move(object));
  }
  run.result().set("samples", std::move(list));
  return {};
}

}  // namespace

std::function<Status(Run&)> declare_ls(Options& options) {
  auto arguments = std::make_shared<LsArguments>();
  options.summary("Lists the keys of a dataset's samples, one a line.")
      .example("packtrain ls photos.pt --class cat --long | head")
      .positional("DATASET", arguments->dataset, kDatasetHelp)
      .text("--split", arguments->split, "only this split")
      .text("--class", arguments->class_name, "only this class, by name or number")
      .flag("-l,--long", arguments->details,
            "index, key, class, bytes, shard and offset, with tabs between them")
      .number("--limit", arguments->limit, "no more than N samples")
      .flag("--shards", arguments->shards, "list the shards instead: path, format, samples, bytes");
  return [arguments](Run& run) { return run_ls(*arguments, run); };
}

}  // namespace packtrain::tools
