#include "packtrain/pack.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>

#include "base/json.h"
#include "base/threads.h"
#include "pack/progress_meter.h"
#include "packtrain/decode.h"
#include "packtrain/place.h"

namespace packtrain {
namespace {

constexpr uint64_t kHeadBytes = 64 << 10;  // enough for image_shape
constexpr uint64_t kHeadsRead = 256;
constexpr uint64_t kRowsPerTurn = 1 << 16;

// Sizes by powers of two: bin k counts [2^k, 2^(k+1)), and 0 counts as 1.
struct Histogram {
  uint64_t bins[64] = {};
  uint64_t least = UINT64_MAX, most = 0, sum = 0, count = 0;

  void add(uint64_t value) {
    ++bins[std::bit_width(std::max<uint64_t>(1, value)) - 1];
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
    ++count;
  }
  void add(const Histogram& other) {
    for (int bin = 0; bin < 64; ++bin) bins[bin] += other.bins[bin];
    least = std::min(least, other.least);
    most = std::max(most, other.most);
    sum += other.sum;
    count += other.count;
  }
  Json json() const {
    Json out = Json::object();
    if (count == 0) return out;
    out.set("smallest", least);
    out.set("mean", sum / count);
    out.set("largest", most);
    Json list = Json::array();
    for (int bin = std::bit_width(std::max<uint64_t>(1, least)) - 1;
         bin < 64 && (uint64_t{1} << bin) <= std::max<uint64_t>(1, most); ++bin) {
      Json row = Json::object();
      row.set("from", bin == 0 ? uint64_t{0} : uint64_t{1} << bin);
      row.set("samples", bins[bin]);
      list.push(std::move(row));
    }
    out.set("histogram", std::move(list));
    return out;
  }
};

struct FieldCount {
  uint64_t samples = 0, bytes = 0;
};

// Of some of the samples.
struct SizeCounts {
  std::vector<FieldCount> fields;
  Histogram sizes;

  void add(const Dataset& dataset, uint64_t sample) {
    uint64_t bytes = 0;
    for (uint32_t field = 0; field < fields.size(); ++field) {
      const FieldLocation at = dataset.locate(sample, field);
      if (!at.present) continue;
      ++fields[field].samples;
      fields[field].bytes += at.length;
      bytes += at.length;
    }
    sizes.add(bytes);
  }
  void add(const SizeCounts& other) {
    for (size_t i = 0; i < fields.size(); ++i) {
      fields[i].samples += other.fields[i].samples;
      fields[i].bytes += other.fields[i].bytes;
    }
    sizes.add(other.sizes);
  }
};

// The middle of a list that is reordered for it.
uint64_t median(std::vector<uint32_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Json spread(std::vector<uint32_t> values) {
  Json out = Json::object();
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  out.set("smallest", *least);
  out.set("largest", *most);
  out.set("median", median(values));
  return out;
}

// The first bytes of a field; all of it where it is not stored as it is.
Status read_head(const Dataset& dataset, uint64_t sample, uint32_t field, std::vector<std::byte>& head) {
  const FieldLocation at = dataset.locate(sample, field);
  if (!at.plain) return dataset.read(sample, field, head);
  PACKTRAIN_ASSIGN(file, dataset.shard_file(at.shard));
  head.resize(std::min(kHeadBytes, at.length));
  return dataset.storage().read(*file, at.offset, head);
}

// Sizes of images: as recorded, else from the heads of samples taken evenly from the whole set.
Json describe_images(const Dataset& dataset) {
  std::vector<uint32_t> widths, heights;
  bool recorded = false;
  const uint64_t samples = dataset.samples(), step = std::max<uint64_t>(1, samples / 100000);
  for (uint64_t sample = 0; sample < samples; sample += step) {
    const auto [width, height] = dataset.image_size(sample);
    if (width == 0) continue;
    recorded = true;
    widths.push_back(width);
    heights.push_back(height);
  }
  std::vector<std::byte> head;
  if (!recorded) {
    for (uint64_t i = 0; i < std::min(kHeadsRead, samples); ++i) {
      const uint64_t sample = i * std::max<uint64_t>(1, samples / kHeadsRead);
      for (uint32_t field = 0; field < dataset.manifest().fields.size(); ++field) {
        if (!dataset.locate(sample, field).present) continue;
        // What the index says is worth having without the shards; verify is there to judge those.
        if (!read_head(dataset, sample, field, head).ok()) continue;
        const std::optional<ImageShape> shape = image_shape(head);
        if (!shape) continue;
        widths.push_back(shape->width);
        heights.push_back(shape->height);
        break;
      }
    }
  }
  if (widths.empty()) return Json();
  Json out = Json::object();
  out.set("measured", static_cast<uint64_t>(widths.size()));
  out.set("recorded", recorded);
  out.set("width", spread(std::move(widths)));
  out.set("height", spread(std::move(heights)));
  return out;
}

Json describe_classes(const Dataset& dataset) {
  const Manifest& manifest = dataset.manifest();
  std::map<int64_t, uint64_t> counts;
  constexpr size_t kMostLabels = 100000;  // more are numbers of some other kind, not classes
  uint64_t unlabelled = 0;
  for (int64_t label : dataset.labels()) {
    if (label == kNoLabel) {
      ++unlabelled;
    } else if (auto at = counts.find(label); at != counts.end()) {
      ++at->second;
    } else if (counts.size() < kMostLabels) {
      counts.emplace(label, 1);
    }
  }
  for (size_t i = 0; i < manifest.classes.size(); ++i) counts.try_emplace(static_cast<int64_t>(i), 0);
  Json out = Json::object();
  out.set("count", static_cast<uint64_t>(counts.size()));
  out.set("unlabelled", unlabelled);
  if (counts.empty()) return out;
  uint64_t least = UINT64_MAX, most = 0;
  Json list = Json::array();
  for (const auto& [label, count] : counts) {
    least = std::min(least, count);
    most = std::max(most, count);
    Json row = Json::object();
    row.set("label", label);
    if (label >= 0 && static_cast<uint64_t>(label) < manifest.classes.size())
      row.set("name", manifest.classes[label]);
    row.set("samples", count);
    list.push(std::move(row));
  }
  out.set("smallest", least);
  out.set("largest", most);
  out.set("balance", most == 0 ? 1.0 : static_cast<double>(least) / static_cast<double>(most));
  out.set("classes", std::move(list));
  return out;
}

Json describe_shards(const Manifest& manifest) {
  Json out = Json::object();
  out.set("count", static_cast<uint64_t>(manifest.shards.size()));
  std::vector<std::string> formats;
  uint64_t bytes = 0, least_bytes = UINT64_MAX, most_bytes = 0, least = UINT64_MAX, most = 0;
  for (const ShardSpec& shard : manifest.shards) {
    bytes += shard.bytes;
    least_bytes = std::min(least_bytes, shard.bytes);
    most_bytes = std::max(most_bytes, shard.bytes);
    least = std::min(least, shard.samples);
    most = std::max(most, shard.samples);
    if (std::find(formats.begin(), formats.end(), shard.format) == formats.end())
      formats.push_back(shard.format);
  }
  out.set("bytes", bytes);
  if (!manifest.shards.empty()) {
    out.set("smallest_bytes", least_bytes).set("largest_bytes", most_bytes);
    out.set("smallest_samples", least).set("largest_samples", most);
  }
  Json list = Json::array();
  for (const std::string& format : formats) list.push(format);
  out.set("formats", std::move(list));
  return out;
}

}  // namespace

Result<std::string> describe(const Dataset& dataset, const Progress& progress, uint32_t jobs) {
  const Manifest& manifest = dataset.manifest();
  PACKTRAIN_TRY(dataset.sound(IndexPart::index));  // all of it is counted
  const uint64_t turns = (manifest.samples + kRowsPerTurn - 1) / kRowsPerTurn;
  const auto workers =
      static_cast<uint32_t>(std::clamp<uint64_t>(turns, 1, jobs > 0 ? jobs : granted().cores));
  std::vector<SizeCounts> counted(workers);
  std::atomic<uint64_t> next{0};
  ProgressMeter meter(progress, "count", "samples", manifest.samples, 0);
  run_on("info", workers, [&](uint32_t worker) {
    SizeCounts mine;
    mine.fields.resize(manifest.fields.size());
    for (uint64_t turn = next++; turn < turns && !meter.stopped(); turn = next++) {
      const uint64_t first = turn * kRowsPerTurn, end = std::min(first + kRowsPerTurn, manifest.samples);
      for (uint64_t sample = first; sample < end; ++sample) mine.add(dataset, sample);
      meter.add(end - first, 0);
    }
    counted[worker] = std::move(mine);
  });
  if (meter.stopped()) return Status(Code::stopped, "stopped; nothing was changed");
  SizeCounts all;
  all.fields.resize(manifest.fields.size());
  for (const SizeCounts& part : counted) all.add(part);
  const std::vector<FieldCount>& fields = all.fields;
  const Histogram& sizes = all.sizes;

  Json out = Json::object();
  out.set("id", manifest.id).set("format_version", manifest.version).set("form", manifest.form);
  out.set("samples", manifest.samples).set("payload_bytes", sizes.sum);
  Json list = Json::array();
  for (const SplitSpec& split : manifest.splits) {
    list.push(Json::object().set("name", split.name).set("first", split.first).set("samples", split.count));
  }
  out.set("splits", std::move(list));
  list = Json::array();
  for (size_t i = 0; i < fields.size(); ++i) {
    Json row = Json::object();
    row.set("name", manifest.fields[i].name).set("samples", fields[i].samples).set("bytes", fields[i].bytes);
    row.set("coverage", manifest.samples == 0
                            ? 0.0
                            : static_cast<double>(fields[i].samples) / static_cast<double>(manifest.samples));
    row.set("check", check_kind_name(manifest.fields[i].check));
    list.push(std::move(row));
  }
  out.set("fields", std::move(list));
  out.set("classes", describe_classes(dataset));
  out.set("sample_bytes", sizes.json());
  out.set("images", describe_images(dataset));
  out.set("shards", describe_shards(manifest));
  if (!manifest.source_json.empty()) {
    PACKTRAIN_ASSIGN(source, Json::parse(manifest.source_json));
    out.set("source", std::move(source));
  }
  return out.dump();
}

}  // namespace packtrain
