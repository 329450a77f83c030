// show: what a dataset looks like, as one HTML page that needs nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/threads.h"
#include "base/words.h"
#include "pack/memory_gate.h"
#include "pack/progress_meter.h"
#include "pack/show_charts.h"
#include "pack/show_facts.h"
#include "pack/show_html.h"
#include "pack/show_style.h"
#include "pack/show_tile.h"
#include "packtrain/pack.h"
#include "packtrain/place.h"

namespace packtrain {

namespace {

// How many images are opened for their size where the index does not record it.
constexpr uint64_t kMostHeaders = 256;
// What one thread decodes at a time for the contact sheet.
constexpr size_t kTilesPerTurn = 8;

std::string last_part(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(path.substr(path.find_last_of('/') + 1));
}

std::string name_of(const Dataset& dataset) {
  std::string name = last_part(dataset.folder());
  if (!name.empty() && name != ".") return name;
  return dataset.manifest().shards.empty() ? "dataset" : last_part(dataset.manifest().shards.front().path);
}

std::string fact(std::string_view name, std::string_view value, bool in_words = false) {
  return fmt::format("<div><dt>{}</dt><dd{}>{}</dd></div>\n", name, in_words ? " class=\"words\"" : "",
                     value);
}

std::string header(const Dataset& dataset, const ShowOptions& options, const SampleRange& range,
                   const ClassFacts& classes, const std::vector<ShardSpec>& shards) {
  const Manifest& manifest = dataset.manifest();
  uint64_t bytes = 0;
  for (const ShardSpec& shard : shards) bytes += shard.bytes;
  std::string fields, splits;
  for (const FieldSpec& field : manifest.fields)
    fields += (fields.empty() ? "" : ", ") + html_text(field.name, 40);
  for (const SplitSpec& split : manifest.splits)
    if (!split.name.empty())
      splits += fmt::format("{}{} {}", splits.empty() ? "" : ", ", html_text(split.name, 40),
                            count_in_words(split.count));
  std::string out = "<h1>" + html_text(name_of(dataset)) + "</h1>\n<p class=\"lead\">";
  out += options.split.empty() ? "The whole dataset" : "Split " + html_text(options.split);
  if (!manifest.id.empty()) out += ", id " + html_text(manifest.id.substr(0, 16));
  out += "</p>\n<dl class=\"facts\">\n" + fact("samples", count_in_words(range.count));
  if (!classes.counts.empty()) out += fact("classes", count_in_words(classes.counts.size()));
  out += fact("shards", count_in_words(shards.size())) + fact("bytes", bytes_in_words(bytes));
  out += fact("fields", fields.empty() ? "none" : fields, true);
  if (manifest.splits.size() > 1) out += fact("splits", splits, true);
  return out + "</dl>\n";
}

std::string figure(const Dataset& dataset, uint64_t sample, const Tile& tile) {
  const auto key = dataset.key(sample);
  const std::string name = key.ok() ? html_text(*key, 300) : fmt::format("sample {}", sample);
  const int64_t label = dataset.label(sample);
  const std::string shown = label == kNoLabel ? "" : html_text(class_name(dataset.manifest(), label), 80);
  return fmt::format("<figure>{0}<figcaption>{1}<span title=\"{2}\">{2}</span></figcaption></figure>\n",
                     tile.html, shown.empty() ? "" : "<b title=\"" + shown + "\">" + shown + "</b>", name);
}

uint64_t bytes_of_sample(const Dataset& dataset, uint64_t sample) {
  uint64_t bytes = 0;
  for (uint32_t field = 0; field < dataset.manifest().fields.size(); ++field)
    bytes += dataset.locate(sample, field).length;
  return bytes;
}

// The contact sheet, and what sizes of images were met on the way. A sample that cannot be read is shown as
// such.
Result<std::string> contact_sheet(const Dataset& dataset, const std::vector<uint64_t>& chosen,
                                  const ShowOptions& options, ShapeCounts& shapes) {
  ProgressMeter meter(options.progress, "show", "samples", chosen.size(), 0);
  const std::string unread = damaged_tile("not read: an earlier failure stopped the reading").html;
  std::vector<Tile> tiles(chosen.size(), Tile{unread, std::nullopt});
  const size_t turns = (chosen.size() + kTilesPerTurn - 1) / kTilesPerTurn;
  std::vector<Status> outcomes(turns);
  std::atomic<size_t> next{0};
  MemoryGate gate;
  const uint32_t jobs = options.jobs > 0 ? options.jobs : granted().cores;
  run_on("show", static_cast<uint32_t>(std::clamp<size_t>(turns, 1, jobs)), [&](uint32_t) {
    for (size_t turn = next++; turn < turns; turn = next++) {
      const size_t first = turn * kTilesPerTurn, count = std::min(kTilesPerTurn, chosen.size() - first);
      uint64_t largest = 0;
      for (size_t i = first; i < first + count; ++i)
        largest = std::max(largest, bytes_of_sample(dataset, chosen[i]));
      const auto hold = gate.hold(largest);
      outcomes[turn] = hold.status();
      if (!hold.ok()) continue;
      outcomes[turn] = dataset.read_many(std::span(chosen).subspan(first, count), true,
                                         [&](size_t position, const Status& read, const SampleBytes& sample) {
                                           tiles[first + position] =
                                               read.ok() ? sample_tile(dataset.manifest(), sample)
                                                         : damaged_tile(read.message());
                                           return meter.add(1, 0);
                                         });
    }
  });
  if (meter.stopped()) return Status(Code::stopped, "stopped; nothing was written");
  std::string out;
  const auto failed =
      std::find_if(outcomes.begin(), outcomes.end(), [](const Status& status) { return !status.ok(); });
  if (failed != outcomes.end()) out += "<p class=\"note\">" + html_text(failed->text()) + "</p>\n";
  out += "<div class=\"sheet\">\n";
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (tiles[i].shape) ++shapes[{tiles[i].shape->width, tiles[i].shape->height}];
    out += figure(dataset, chosen[i], tiles[i]);
  }
  return out + "</div>\n";
}

// Adds the sizes of images from the headers of samples evenly spaced; what cannot be read is left out.
void add_shapes_from_headers(const Dataset& dataset, const SampleRange& range, ShapeCounts& shapes) {
  std::vector<uint64_t> samples;
  const uint64_t count = std::min(range.count, kMostHeaders);
  for (uint64_t i = 0; i < count; ++i) samples.push_back(range.first + range.count / count * i);
  (void)dataset.read_many(samples, false, [&](size_t, const Status& read, const SampleBytes& sample) {
    if (!read.ok()) return true;
    for (const SampleBytes::Field& field : sample.fields)
      if (const auto shape = image_shape(field.bytes)) {
        ++shapes[{shape->width, shape->height}];
        break;
      }
    return true;
  });
}

}  // namespace

Result<std::string> show_page(const Dataset& dataset, const ShowOptions& options) {
  PACKTRAIN_TRY(dataset.sound(IndexPart::index));  // all of it is counted
  PACKTRAIN_TRY(dataset.sound(IndexPart::names, kQuickToCompare));
  PACKTRAIN_ASSIGN(range, range_of_split(dataset.manifest(), options.split));
  const ClassFacts classes = count_classes(dataset, range);
  const std::vector<ShardSpec> shards = shards_of(dataset, range);
  ShapeCounts met;
  const std::vector<uint64_t> chosen = choose_samples(dataset, range, classes, options.samples, options.seed);
  PACKTRAIN_ASSIGN(sheet, contact_sheet(dataset, chosen, options, met));
  ShapeCounts shapes = recorded_shapes(dataset, range);
  if (shapes.empty() && !met.empty()) add_shapes_from_headers(dataset, range, shapes);

  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += "<title>" + html_text(name_of(dataset)) + " – packtrain</title>\n<style>";
  page += kShowStyle;
  page += "</style>\n</head>\n<body>\n<main>\n" + header(dataset, options, range, classes, shards);
  page += fmt::format("<h2>Samples</h2>\n{}", sheet);
  if (chosen.size() < range.count)
    page += fmt::format(
        "<p class=\"note\">{} of {} samples, drawn with seed {} as evenly over the classes as they "
        "allow.</p>\n",
        count_in_words(chosen.size()), count_in_words(range.count), options.seed);
  page += "<h2>Classes</h2>\n" + class_chart(dataset.manifest(), classes);
  page += "<div class=\"pair\">\n<section><h2>Bytes per sample</h2>\n" +
          size_chart(sample_sizes(dataset, range)) + "</section>\n";
  if (!shapes.empty()) page += "<section><h2>Image sizes</h2>\n" + shape_chart(shapes) + "</section>\n";
  page += "</div>\n<h2>Shards</h2>\n" + shard_chart(shards) + "</main>\n</body>\n</html>\n";
  return page;
}

}  // namespace packtrain
