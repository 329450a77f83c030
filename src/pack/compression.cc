#include "pack/compression.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <optional>
#include <utility>

#include "base/words.h"
#include "format/compress_value.h"
#include "format/npy_header.h"
#include "pack/archive_stream.h"
#include "pack/fetch.h"
#include "pack/writers.h"
#include "pack/written_fields.h"
#include "packtrain/codec.h"

namespace packtrain {
namespace {

constexpr uint64_t kMostValues = 32;           // looked at of a field
constexpr uint64_t kMostBytes = 4 << 20;       // of all of them
constexpr uint64_t kMostStreamed = 64 << 20;   // how far a compressed archive is looked into
constexpr uint64_t kMostConverted = 16 << 20;  // an image larger than this is not converted for a look at it
constexpr uint64_t kSmallPart = 1000;          // fields of less than this part of all bytes are not looked at
constexpr double kFastStorage = 500e6;         // bytes a second and core
constexpr double kTimingSeconds = 0.004;       // at least so long values are decoded, for a steady figure
constexpr std::string_view kStored = "stored as it is";

// What decoding takes a core, as a time for each value and a speed: bench/runs has it by codec and length.
// Small values are mostly the former, since their tables have to be built too.
double nominal_decode_seconds(std::string_view codec, uint64_t values, uint64_t bytes) {
  const auto [each, speed] = codec == "blosc"  ? std::pair(0.3e-6, 2.5e9)
                             : codec == "zstd" ? std::pair(3.0e-6, 1.0e9)
                                               : std::pair(3.5e-6, 0.3e9);  // deflate
  return each * static_cast<double>(values) + static_cast<double>(bytes) / speed;
}

// What this thread has computed so far: on a busy machine time passes without it.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

bool is_compiled_in(std::string_view codec) {
  return std::any_of(codecs().begin(), codecs().end(),
                     [&](const CodecInfo& info) { return info.name == codec && info.compiled_in; });
}

std::string speed_in_words(double bytes_per_second) {
  return bytes_in_words(static_cast<uint64_t>(bytes_per_second)) + "/s";
}

std::string ratio_in_words(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f x", ratio);
  return text;
}

// What is known of a field without reading it, and which of its values are looked at.
struct FieldToTry {
  uint64_t values = 0, bytes = 0;  // in all
  uint64_t fetchable = 0;          // values that can be read out of order
  uint64_t passed = 0;
  std::vector<Cell> chosen;
  std::vector<const Cell*> streamed;  // the first values in compressed archives
};
using Heads = std::map<const Cell*, std::vector<std::byte>>;

bool is_converted_for_a_look(const Cell& cell) { return cell.converted && cell.size <= kMostConverted; }

bool comes_before(const Cell* a, const Cell* b) {
  return std::pair(a->source, a->where) < std::pair(b->source, b->where);
}

// Evenly spaced values of every field, so that equal sources give equal choices.
std::vector<FieldToTry> choose_values(const Catalog& catalog) {
  std::vector<FieldToTry> fields(catalog.fields.size());
  for (uint64_t sample = 0; sample < catalog.samples.size(); ++sample) {
    for (const Cell& cell : SampleCells(catalog, sample)) {
      FieldToTry& field = fields[cell.field];
      ++field.values;
      field.bytes += cell.size;
      if (cell.origin != Origin::stream) ++field.fetchable;
    }
  }
  for (uint64_t sample = 0; sample < catalog.samples.size(); ++sample) {
    for (const Cell& cell : SampleCells(catalog, sample)) {
      FieldToTry& field = fields[cell.field];
      if (cell.origin == Origin::stream) {
        field.streamed.push_back(&cell);
        continue;
      }
      const uint64_t wanted = std::min(field.fetchable, kMostValues), next = field.chosen.size();
      if (next < wanted && field.passed == (2 * next + 1) * field.fetchable / (2 * wanted))
        field.chosen.push_back(cell);
      ++field.passed;
    }
  }
  for (FieldToTry& field : fields) {
    const auto most = static_cast<ptrdiff_t>(std::min<uint64_t>(field.streamed.size(), kMostValues));
    std::partial_sort(field.streamed.begin(), field.streamed.begin() + most, field.streamed.end(),
                      comes_before);
    field.streamed.resize(static_cast<size_t>(most));
    field.streamed.shrink_to_fit();
  }
  return fields;
}

// The first bytes of streamed values, as far as they come early in their archives: a choice over the whole of
// it would cost decompressing it once more. What will be converted is read whole.
Result<Heads> read_stream_heads(Storage& storage, const Plan& plan, const std::vector<FieldToTry>& fields) {
  std::vector<const Cell*> wanted;
  for (const FieldToTry& field : fields)
    wanted.insert(wanted.end(), field.streamed.begin(), field.streamed.end());
  std::sort(wanted.begin(), wanted.end(), comes_before);
  const auto same = [](const Cell* a, const Cell* b) { return !comes_before(a, b); };
  wanted.erase(std::unique(wanted.begin(), wanted.end(), same), wanted.end());
  Heads heads;
  std::unique_ptr<ArchiveStream> stream;
  ArchiveStream::Member member;
  uint32_t source = 0;
  for (const Cell* cell : wanted) {
    if (!stream || cell->source != source) {
      source = cell->source;
      PACKTRAIN_ASSIGN(opened, open_planned_stream(storage, plan.catalog.streams[source]));
      stream = std::move(opened);
      member = {};
      member.number = UINT64_MAX;
    }
    bool more = member.offset < kMostStreamed;
    while (more && member.number != cell->where) {
      PACKTRAIN_ASSIGN(next, stream->next(member));
      more = next && member.offset < kMostStreamed;
    }
    if (!more) {
      member.offset = kMostStreamed;
      continue;
    }
    std::vector<std::byte>& head = heads[cell];
    const uint64_t most = is_converted_for_a_look(*cell) ? cell->size : kMostBytes / kMostValues;
    head.resize(std::min({cell->size, member.size, most}));
    PACKTRAIN_TRY(stream->read(head));
  }
  return heads;
}

// What came of trying a field's values.
struct Trial {
  uint64_t values = 0, already = 0;       // looked at; of them compressed already
  uint64_t raw = 0, stored = 0;           // bytes of all of them, and what they would take
  uint64_t encoded = 0, encoded_raw = 0;  // those that would be compressed, and their bytes
  bool one_by_one = true;                 // the format compresses such values
  double decode_seconds = 0;              // for encoded_raw
};

class Prober {
 public:
  static Result<std::unique_ptr<Prober>> make(Storage& storage, const Format& format, const Plan& plan,
                                              std::string codec) {
    PACKTRAIN_ASSIGN(converter, ImageConverter::make(plan.conversion));
    return std::make_unique<Prober>(storage, format, plan, std::move(codec), std::move(converter));
  }
  Prober(Storage& storage, const Format& format, const Plan& plan, std::string codec,
         ImageConverter converter)
      : format_(format),
        fetcher_(storage, plan),
        converter_(std::move(converter)),
        codec_(std::move(codec)) {}

  // `array`: what the values are where they have no headers; null: not known.
  Result<Trial> run(const FieldToTry& field, const ArrayValue* array, const Heads& streamed);

 private:
  struct Encoded {
    Pipeline pipeline;
    std::vector<std::byte> bytes;
    size_t raw;
  };
  Status take(Bytes head, uint64_t bytes, Trial& trial);
  Status take_converted(Bytes source, uint64_t most_bytes, Trial& trial);
  Status time(Trial& trial);

  const Format& format_;
  Fetcher fetcher_;
  ImageConverter converter_;
  const std::string codec_;
  std::optional<std::vector<std::byte>> front_;  // of the first value: what the format keeps apart
  std::vector<Encoded> encoded_;
};

Status Prober::take(Bytes head, uint64_t bytes, Trial& trial) {
  ++trial.values;
  if (is_compressed_content(head)) {
    ++trial.already;
    trial.raw += head.size();
    trial.stored += head.size();
    return {};
  }
  ValueCoding coding{{{codec_}}, 0};
  if (format_.coding) {
    const auto known = format_.coding(codec_, head, bytes);
    if (!known) {
      trial.one_by_one = false;
      return {};
    }
    coding = *known;
    const Bytes front = head.first(coding.skip);
    if (!front_) front_.emplace(front.begin(), front.end());
    trial.one_by_one &= std::equal(front.begin(), front.end(), front_->begin(), front_->end());
  }
  const Bytes part = head.subspan(coding.skip);
  if (part.empty()) return {};
  trial.raw += part.size();
  PACKTRAIN_ASSIGN(smaller, encode_if_it_saves(coding.pipeline, part));
  if (smaller.empty()) {
    trial.stored += part.size();
    return {};
  }
  trial.stored += smaller.size();
  trial.encoded_raw += part.size();
  ++trial.encoded;
  encoded_.push_back({std::move(coding.pipeline), std::move(smaller), part.size()});
  return {};
}

// An image as it will be written, not as it is: raw pixels compress, the JPEG that they came from does not.
// One that cannot be converted is named when it is packed.
Status Prober::take_converted(Bytes source, uint64_t most_bytes, Trial& trial) {
  std::vector<std::byte> image;
  if (!converter_.convert(source, image).ok()) return {};
  const Bytes written = image.empty() ? source : Bytes(image);
  return take(written.first(std::min<uint64_t>(written.size(), most_bytes)), written.size(), trial);
}

// The best of several rounds: whatever else the machine does makes them longer, never shorter.
Status Prober::time(Trial& trial) {
  size_t largest = 0;
  for (const Encoded& value : encoded_) largest = std::max(largest, value.raw);
  std::vector<std::byte> raw(largest);
  double spent = 0;
  for (int round = 0; round < 2 || (spent < kTimingSeconds && round < 50); ++round) {
    const double start = cpu_seconds();
    for (const Encoded& value : encoded_)
      PACKTRAIN_TRY(decode(value.pipeline, value.bytes, MutableBytes(raw).first(value.raw)));
    const double seconds = cpu_seconds() - start;
    spent += seconds;
    if (round == 0 || seconds < trial.decode_seconds) trial.decode_seconds = seconds;
  }
  return {};
}

Result<Trial> Prober::run(const FieldToTry& field, const ArrayValue* array, const Heads& streamed) {
  Trial trial;
  // Formats that look at values know arrays by their headers; these get one.
  const std::string header = array && format_.coding ? make_npy_header(array->type, array->shape) : "";
  const Bytes front = as_bytes(header);
  front_.reset();
  encoded_.clear();
  std::vector<std::byte> head;
  for (const Cell& cell : field.chosen) {
    const uint64_t most = kMostBytes / field.chosen.size(), bytes = std::min<uint64_t>(cell.size, most);
    if (is_converted_for_a_look(cell)) {
      head.resize(cell.size);
      if (cell.size > 0 && fetcher_.fetch(cell, head).ok()) PACKTRAIN_TRY(take_converted(head, most, trial));
      continue;
    }
    head.assign(front.begin(), front.end());
    head.resize(front.size() + bytes);
    // A value that cannot be read is named when it is packed.
    if (bytes == 0 || !fetcher_.fetch_head(cell, MutableBytes(head).subspan(front.size())).ok()) continue;
    PACKTRAIN_TRY(take(head, front.size() + cell.size, trial));
  }
  for (const Cell* cell : field.streamed) {
    const auto at = streamed.find(cell);
    if (at == streamed.end() || at->second.empty()) continue;
    PACKTRAIN_TRY(is_converted_for_a_look(*cell) ? take_converted(at->second, kMostBytes / kMostValues, trial)
                                                 : take(at->second, cell->size, trial));
  }
  if (!encoded_.empty()) PACKTRAIN_TRY(time(trial));
  return trial;
}

// Fills in what was measured, and what follows from it.
void judge(const Trial& trial, bool asked, FieldCompression& finding) {
  const std::string& codec = finding.codec;
  finding.values = trial.values;
  finding.bytes = trial.raw;
  if (trial.values == 0) {
    finding.compressed = asked;
    finding.reason =
        asked ? "by " + codec +
                    " as asked, without a look at its values: they are empty, cannot be read or come "
                    "late in a compressed archive"
              : "no value could be looked at; " + std::string(kStored);
    return;
  }
  if (trial.already == trial.values) {
    finding.reason = "compressed already, " + std::string(kStored);
    return;
  }
  if (!trial.one_by_one) {
    finding.reason =
        "no arrays of one type and shape, so its values lie side by side and each is one plain read; " +
        std::string(kStored);
    return;
  }
  if (trial.encoded_raw == 0) {
    finding.ratio = 1;
    finding.reason = codec + " would save less than 1/16, " + std::string(kStored);
    return;
  }
  finding.ratio = static_cast<double>(trial.stored) / static_cast<double>(trial.raw);
  // Over all bytes: those that stay as they are cost no decoding.
  const double saved = 1 - finding.ratio;
  const double nominal =
      static_cast<double>(trial.raw) / nominal_decode_seconds(codec, trial.encoded, trial.encoded_raw);
  if (trial.decode_seconds > 0)
    finding.decode_bytes_per_second = static_cast<double>(trial.raw) / trial.decode_seconds;
  finding.break_even_bytes_per_second = finding.decode_bytes_per_second * saved;
  finding.compressed = asked || nominal * saved >= kFastStorage;
  const std::string pays = ratio_in_words(finding.ratio) + ", which pays below " +
                           speed_in_words(finding.break_even_bytes_per_second) + " a core";
  finding.reason = finding.compressed
                       ? codec + " makes it " + pays
                       : codec + " would make it " + pays + "; not done, ask with --compress " + codec;
}

}  // namespace

Status decide_compression(Storage& storage, const Format& format, const std::string& asked, Plan& plan) {
  plan.compress = "none";
  plan.compressed.clear();
  plan.findings.clear();
  if (asked == "none" || format.codecs.empty()) return {};
  const bool is_asked = asked != "auto";
  std::string codec = asked;
  if (!is_asked) {
    const auto best = std::find_if(format.codecs.begin(), format.codecs.end(), is_compiled_in);
    if (best == format.codecs.end()) return {};
    codec = *best;
  }
  PACKTRAIN_TRY(encode({{codec}}, {}).status());  // says what to install where it is absent
  const Catalog& catalog = plan.catalog;
  const WrittenFields written = written_fields(plan, format);
  const std::vector<FieldToTry> fields = choose_values(catalog);
  PACKTRAIN_ASSIGN(streamed, read_stream_heads(storage, plan, fields));
  PACKTRAIN_ASSIGN(prober, Prober::make(storage, format, plan, codec));
  for (const std::string& name : written.names) {
    const auto at = std::find(catalog.fields.begin(), catalog.fields.end(), name) - catalog.fields.begin();
    const FieldToTry& field = fields[static_cast<size_t>(at)];
    FieldCompression finding{.field = name, .codec = codec};
    if (!is_asked && field.bytes < catalog.bytes / kSmallPart) {
      finding.reason = "less than 1/1000 of all bytes, " + std::string(kStored);
    } else {
      const auto array = written.arrays.find(name);
      PACKTRAIN_ASSIGN(
          trial, prober->run(field, array == written.arrays.end() ? nullptr : &array->second, streamed));
      if (format.coding && field.values < plan.order.size()) trial.one_by_one = false;
      judge(trial, is_asked, finding);
    }
    if (finding.compressed) plan.compressed.push_back(name);
    plan.findings.push_back(std::move(finding));
  }
  if (!plan.compressed.empty()) plan.compress = codec;
  return {};
}

}  // namespace packtrain
