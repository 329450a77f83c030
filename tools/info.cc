// packtrain info: what is in a dataset.
#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"
#include "packtrain/pack.h"
#include "tools/command.h"
#include "tools/dataset_argument.h"

namespace packtrain::tools {
namespace {

constexpr uint64_t kClassesShown = 20;
constexpr uint64_t kBarColumns = 40;

void say_row(Run& run, std::string_view name, std::string_view text) {
  run.say(fmt::format("{:<12}{}", name, text));
}

std::string plural(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count_in_words(count), noun, count == 1 ? "" : "s");
}

void say_fields(const Json& fields, Run& run) {
  for (const Json& field : fields.items()) {
    const double coverage = field["coverage"].as_double();
    say_row(run, &field == &fields.items().front() ? "fields" : "",
            fmt::format("{:<12} {:>10}  {}", printable(field["name"].as_string()),
                        bytes_in_words(field["bytes"].as_uint()),
                        coverage == 1 ? std::string("in every sample")
                                      : fmt::format("in {:.1f} % of samples", 100 * coverage)));
  }
}

void say_classes(const Json& classes, Run& run) {
  const uint64_t count = classes["count"].as_uint();
  if (count == 0) return say_row(run, "classes", "none: samples have no labels");
  say_row(run, "classes",
          fmt::format(
              "{}, {} to {} samples each (balance {:.2f}){}", count_in_words(count),
              count_in_words(classes["smallest"].as_uint()), count_in_words(classes["largest"].as_uint()),
              classes["balance"].as_double(),
              classes["unlabelled"].as_uint() == 0
                  ? ""
                  : fmt::format(", {} without a label", plural(classes["unlabelled"].as_uint(), "sample"))));
  uint64_t shown = 0;
  for (const Json& row : classes["classes"].items()) {
    if (shown++ == kClassesShown) {
      run.say(fmt::format("  … and {} more (--json has all)", count_in_words(count - kClassesShown)));
      break;
    }
    run.say(fmt::format("  {:>6} {:<24} {:>12}", row["label"].as_int(), printable(row["name"].as_string()),
                        count_in_words(row["samples"].as_uint())));
  }
}

void say_sizes(const Json& sizes, Run& run) {
  if (!sizes.has("mean")) return;
  say_row(run, "sample size",
          fmt::format("{} to {}, mean {}", bytes_in_words(sizes["smallest"].as_uint()),
                      bytes_in_words(sizes["largest"].as_uint()), bytes_in_words(sizes["mean"].as_uint())));
  uint64_t most = 1;
  for (const Json& bin : sizes["histogram"].items()) most = std::max(most, bin["samples"].as_uint());
  for (const Json& bin : sizes["histogram"].items()) {
    const uint64_t samples = bin["samples"].as_uint();
    uint64_t columns = samples * kBarColumns / most;
    if (samples > 0) columns = std::max<uint64_t>(1, columns);  // few is not none
    run.say(fmt::format("  from {:>8} {:>12} {}", bytes_in_words(bin["from"].as_uint()),
                        count_in_words(samples), std::string(columns, '#')));
  }
}

void say_all(const Json& info, const Dataset& dataset, Run& run) {
  const Json& shards = info["shards"];
  say_row(run, "samples",
          fmt::format("{}, {} of payload", count_in_words(info["samples"].as_uint()),
                      bytes_in_words(info["payload_bytes"].as_uint())));
  std::string splits;
  for (const Json& split : info["splits"].items()) {
    splits += fmt::format("{}{} {}", splits.empty() ? "" : ", ", printable(split["name"].as_string()),
                          count_in_words(split["samples"].as_uint()));
  }
  if (!splits.empty()) say_row(run, "splits", splits);
  say_fields(info["fields"], run);
  say_classes(info["classes"], run);
  say_sizes(info["sample_bytes"], run);
  if (const Json& images = info["images"]; !images.is_null()) {
    const Json &width = images["width"], &height = images["height"];
    say_row(run, "images",
            fmt::format("{} x {} in the middle, {} x {} to {} x {} ({} {})", width["median"].as_uint(),
                        height["median"].as_uint(), width["smallest"].as_uint(), height["smallest"].as_uint(),
                        width["largest"].as_uint(), height["largest"].as_uint(),
                        count_in_words(images["measured"].as_uint()),
                        images["recorded"].as_bool() ? "recorded" : "looked at"));
  }
  say_row(run, "shards",
          fmt::format("{}, {}: {} to {} and {} to {} samples each", count_in_words(shards["count"].as_uint()),
                      bytes_in_words(shards["bytes"].as_uint()),
                      bytes_in_words(shards["smallest_bytes"].as_uint()),
                      bytes_in_words(shards["largest_bytes"].as_uint()),
                      count_in_words(shards["smallest_samples"].as_uint()),
                      count_in_words(shards["largest_samples"].as_uint())));
  std::string formats;
  for (const Json& format : shards["formats"].items())
    formats += (formats.empty() ? "" : ", ") + format.as_string();
  say_row(run, "format",
          fmt::format("{}; index version {}, form '{}'", formats, info["format_version"].as_uint(),
                      info["form"].as_string()));
  if (!dataset.manifest().id.empty()) say_row(run, "id", dataset.manifest().id);
  if (info.has("source")) say_row(run, "source", printable(info["source"].dump()));
}

}  // namespace

std::function<Status(Run&)> declare_info(Options& options) {
  auto path = std::make_shared<std::string>();
  options.summary("Says what is in a dataset: counts, classes, sizes, image sizes, evenness of shards.")
      .example("packtrain info photos.pt")
      .positional("DATASET", *path, kDatasetHelp);
  return [path](Run& run) -> Status {
    PACKTRAIN_ASSIGN(dataset, open_for(run, *path));
    PACKTRAIN_ASSIGN(text, describe(*dataset, run.progress(), run.jobs()));
    PACKTRAIN_ASSIGN(info, Json::parse(text));
    say_all(info, *dataset, run);
    run.result() = std::move(info);
    return {};
  };
}

}  // namespace packtrain::tools
