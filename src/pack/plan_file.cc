// The plan as a file: columns in an npz, so that a damaged one is noticed, and one member of JSON for the
// rest.
#include <algorithm>

#include "base/hash.h"
#include "base/json.h"
#include "index/npz.h"
#include "pack/plan.h"

namespace packtrain {
namespace {

constexpr uint64_t kPlanVersion = 2;

Json strings(const std::vector<std::string>& texts) {
  Json json = Json::array();
  for (const std::string& text : texts) json.push(text);
  return json;
}

std::vector<std::string> strings(const Json& json) {
  std::vector<std::string> texts;
  for (const Json& item : json.items()) texts.push_back(item.as_string());
  return texts;
}

Json findings_json(const std::vector<FieldCompression>& findings) {
  Json json = Json::array();
  for (const FieldCompression& finding : findings) {
    json.push(Json::object()
                  .append("field", finding.field)
                  .append("codec", finding.codec)
                  .append("compressed", finding.compressed)
                  .append("reason", finding.reason)
                  .append("values", finding.values)
                  .append("bytes", finding.bytes)
                  .append("ratio", finding.ratio)
                  .append("decode", finding.decode_bytes_per_second)
                  .append("break_even", finding.break_even_bytes_per_second));
  }
  return json;
}

std::vector<FieldCompression> findings_from(const Json& json) {
  std::vector<FieldCompression> findings;
  for (const Json& item : json.items()) {
    findings.push_back({.field = item["field"].as_string(),
                        .codec = item["codec"].as_string(),
                        .compressed = item["compressed"].as_bool(),
                        .reason = item["reason"].as_string(),
                        .values = item["values"].as_uint(),
                        .bytes = item["bytes"].as_uint(),
                        .ratio = item["ratio"].as_double(),
                        .decode_bytes_per_second = item["decode"].as_double(),
                        .break_even_bytes_per_second = item["break_even"].as_double()});
  }
  return findings;
}

// Paths may hold any bytes, which JSON cannot: they are kept in the names column and referred to.
struct NameTable {
  std::vector<uint64_t> end;
  std::string bytes;
  void add(std::string_view text) {
    bytes.append(text);
    end.push_back(bytes.size());
  }
};

Result<std::vector<std::string>> read_table(std::span<const uint64_t> ends, std::string_view bytes) {
  std::vector<std::string> texts;
  uint64_t begin = 0;
  for (uint64_t end : ends) {
    if (end < begin || end > bytes.size()) return Status(Code::corrupt, "a table of names is damaged");
    texts.emplace_back(bytes.substr(begin, end - begin));
    begin = end;
  }
  return texts;
}

template <class T, class Items, class Get>
void add_column(NpzWriter& writer, std::string_view name, const Items& items, Get get) {
  BigVector<T> values;
  values.reserve(items.size());
  for (const auto& item : items) values.push_back(static_cast<T>(get(item)));
  writer.add(name, values);
}

}  // namespace

namespace {

void add_columns(const Plan& plan, NpzWriter& writer) {
  const Catalog& catalog = plan.catalog;
  Json json = Json::object();
  json.append("version", kPlanVersion).append("identity", plan.identity).append("format", plan.format);
  json.append("fingerprint", plan.fingerprint);
  json.append("compress", plan.compress).append("renamed", plan.renamed);
  if (plan.conversion.any()) {
    const ImageConversion& conversion = plan.conversion;
    const ConversionCost& cost = plan.cost;
    json.append("conversion", Json::array()
                                  .push(static_cast<uint64_t>(conversion.form))
                                  .push(conversion.quality)
                                  .push(conversion.max_side)
                                  .push(conversion.baseline));
    json.append("cost", Json::array()
                            .push(cost.images)
                            .push(cost.tried)
                            .push(cost.bytes_before)
                            .push(cost.bytes_after)
                            .push(cost.mean_difference)
                            .push(cost.largest_difference)
                            .push(cost.deeper)
                            .push(cost.transparent));
  }
  json.append("compressed", strings(plan.compressed)).append("compression", findings_json(plan.findings));
  json.append("fields", strings(catalog.fields))
      .append("label_field", uint64_t{catalog.label_field})
      .append("files", catalog.files)
      .append("bytes", catalog.bytes);
  const Skipped& skipped = catalog.skipped;
  json.append("skipped", Json::array()
                             .push(skipped.hidden)
                             .push(skipped.temporary)
                             .push(skipped.special)
                             .push(skipped.broken_links)
                             .push(skipped.loops)
                             .push(skipped.empty_folders));
  Json arrays = Json::array();
  for (const auto& [field, array] : catalog.arrays) {
    Json shape = Json::array();
    for (const uint64_t size : array.shape) shape.push(size);
    arrays.push(Json::array().push(field).push(array.type).push(std::move(shape)));
  }
  json.append("arrays", std::move(arrays));
  Json pipelines = Json::array();
  for (const Pipeline& pipeline : plan.pipelines) {
    Json steps = Json::array();
    for (const CodecStep& step : pipeline)
      steps.push(Json::array().push(step.name).push(step.parameter).push(hex_of(as_bytes(step.value))));
    pipelines.push(std::move(steps));
  }
  json.append("pipelines", std::move(pipelines));
  json.append("splits", uint64_t{catalog.splits.size()}).append("classes", uint64_t{catalog.classes.size()});
  json.append("roots", uint64_t{catalog.roots.size()})
      .append("piece_files", uint64_t{plan.piece_files.size()});
  json.append("streams", uint64_t{catalog.streams.size()});
  json.append("container_prefixes", uint64_t{catalog.container_prefixes.size()});
  json.append("stream_prefixes", uint64_t{catalog.stream_prefixes.size()});
  json.append("missing", uint64_t{catalog.missing.size()}).append("missing_count", catalog.missing_count);
  json.append("unreadable", uint64_t{catalog.unreadable.size()})
      .append("unreadable_count", catalog.unreadable_count);
  json.append("warnings", strings(catalog.warnings));

  NameTable table;
  for (const std::string& name : catalog.splits) table.add(name);
  for (const std::string& name : catalog.classes) table.add(name);
  for (const CatalogRoot& root : catalog.roots) {
    table.add(root.folder);
    table.add(root.prefix);
  }
  for (const PieceFile& file : plan.piece_files) table.add(file.path);
  for (const PieceFile& file : catalog.streams) table.add(file.path);
  for (const std::string& prefix : catalog.container_prefixes) table.add(prefix);
  for (const std::string& prefix : catalog.stream_prefixes) table.add(prefix);
  for (const std::string& path : catalog.missing) table.add(path);
  for (const BadSample& bad : catalog.unreadable) {
    table.add(bad.path);
    table.add(bad.what);
  }
  for (const ShardPlan& shard : plan.shards) table.add(shard.name);

  writer.add("json", json.dump());
  writer.add("table.end", table.end);
  writer.add("table.bytes", table.bytes);
  writer.add("names", catalog.names);
  writer.add("texts", catalog.texts);
  writer.add("order", plan.order);
  add_column<uint64_t>(writer, "cell.kind", catalog.cells, [](const Cell& c) {
    return static_cast<uint64_t>(c.origin) | uint64_t{c.field} << 8 | uint64_t{c.converted} << 24 |
           uint64_t{c.source} << 32;
  });
  add_column<uint32_t>(writer, "cell.inner", catalog.cells, [](const Cell& c) { return c.inner_field; });
  add_column<uint64_t>(writer, "cell.where", catalog.cells, [](const Cell& c) { return c.where; });
  add_column<uint64_t>(writer, "cell.size", catalog.cells, [](const Cell& c) { return c.size; });
  add_column<uint64_t>(writer, "cell.path", catalog.cells, [](const Cell& c) { return c.path.at; });
  add_column<uint32_t>(writer, "cell.path_bytes", catalog.cells, [](const Cell& c) { return c.path.bytes; });
  add_column<uint64_t>(writer, "sample.cell", catalog.samples,
                       [](const CatalogSample& s) { return s.first_cell; });
  add_column<int64_t>(writer, "sample.label", catalog.samples,
                      [](const CatalogSample& s) { return s.label; });
  add_column<uint32_t>(writer, "sample.split", catalog.samples,
                       [](const CatalogSample& s) { return s.split | s.label_is_field << 31; });
  add_column<uint64_t>(writer, "sample.key", catalog.samples,
                       [](const CatalogSample& s) { return s.stem.at; });
  add_column<uint32_t>(writer, "sample.key_bytes", catalog.samples,
                       [](const CatalogSample& s) { return s.stem.bytes; });
  std::vector<PieceFile> files = plan.piece_files;
  files.insert(files.end(), catalog.streams.begin(), catalog.streams.end());
  add_column<uint64_t>(writer, "file.bytes", files, [](const PieceFile& f) { return f.bytes; });
  add_column<int64_t>(writer, "file.mtime", files, [](const PieceFile& f) { return f.mtime_ns; });
  add_column<uint64_t>(writer, "piece.kind", plan.pieces, [](const Piece& p) {
    return uint64_t{p.file} | uint64_t{p.pipeline} << 32 | static_cast<uint64_t>(p.check_kind) << 48 |
           (p.hole ? uint64_t{1} << 56 : 0);
  });
  add_column<uint32_t>(writer, "piece.check", plan.pieces, [](const Piece& p) { return p.check; });
  add_column<uint64_t>(writer, "piece.offset", plan.pieces, [](const Piece& p) { return p.offset; });
  add_column<uint64_t>(writer, "piece.stored", plan.pieces, [](const Piece& p) { return p.stored; });
  add_column<uint64_t>(writer, "piece.raw", plan.pieces, [](const Piece& p) { return p.raw; });
  add_column<uint64_t>(writer, "piece.start", plan.pieces, [](const Piece& p) { return p.start; });
  add_column<uint64_t>(writer, "piece.length", plan.pieces, [](const Piece& p) { return p.length; });
  add_column<uint32_t>(writer, "shard.split", plan.shards, [](const ShardPlan& s) { return s.split; });
  add_column<uint64_t>(writer, "shard.first", plan.shards, [](const ShardPlan& s) { return s.first; });
  add_column<uint64_t>(writer, "shard.count", plan.shards, [](const ShardPlan& s) { return s.count; });
}

}  // namespace

std::string encode_plan(const Plan& plan) {
  NpzWriter writer;
  add_columns(plan, writer);
  return writer.finish();
}

Status write_plan(Storage& storage, const std::string& path, const Plan& plan, const WriteOptions& options) {
  return write_npz(storage, path, options, [&](NpzWriter& writer) { add_columns(plan, writer); });
}

namespace {

// The columns of a plan by name, with the length each has.
class PlanColumns {
 public:
  explicit PlanColumns(std::vector<Column> columns) : columns_(std::move(columns)) {}
  template <class T>
  std::span<const T> get(std::string_view name) {
    for (const Column& column : columns_) {
      if (column.name != name) continue;
      auto values = column_values<T>(columns_, name, column.count);
      if (values.ok()) return *values;
    }
    missing_ = true;
    return {};
  }
  std::string_view text(std::string_view name) {
    const auto bytes = get<char>(name);
    return {bytes.data(), bytes.size()};
  }
  bool missing() const { return missing_; }

 private:
  std::vector<Column> columns_;
  bool missing_ = false;
};

}  // namespace

Result<Plan> decode_plan(Bytes bytes) {
  const Status damaged(Code::corrupt, "the plan is damaged");
  PACKTRAIN_ASSIGN(all, read_npz(bytes));
  if (!damaged_columns(bytes, all).empty()) return damaged;
  PlanColumns columns(std::move(all));
  PACKTRAIN_ASSIGN(json, Json::parse(columns.text("json")));
  if (json["version"].as_uint() != kPlanVersion) {
    return Status(Code::unsupported, "the plan was made by another version of packtrain");
  }
  Plan plan;
  Catalog& catalog = plan.catalog;
  plan.identity = json["identity"].as_string();
  plan.fingerprint = json["fingerprint"].as_string();
  plan.format = json["format"].as_string();
  plan.compress = json["compress"].as_string();
  plan.compressed = strings(json["compressed"]);
  plan.findings = findings_from(json["compression"]);
  plan.renamed = json["renamed"].as_uint();
  if (const auto& parts = json["conversion"].items(); parts.size() == 4)
    plan.conversion = {static_cast<ImageForm>(parts[0].as_uint()), static_cast<int>(parts[1].as_int()),
                       static_cast<uint32_t>(parts[2].as_uint()), parts[3].as_bool()};
  if (const auto& parts = json["cost"].items(); parts.size() >= 6) {
    plan.cost.images = parts[0].as_uint();
    plan.cost.tried = parts[1].as_uint();
    plan.cost.bytes_before = parts[2].as_uint();
    plan.cost.bytes_after = parts[3].as_uint();
    plan.cost.mean_difference = parts[4].as_double();
    plan.cost.largest_difference = static_cast<uint32_t>(parts[5].as_uint());
    if (parts.size() >= 8) {
      plan.cost.deeper = parts[6].as_uint();
      plan.cost.transparent = parts[7].as_uint();
    }
  }
  catalog.fields = strings(json["fields"]);
  catalog.label_field = static_cast<uint16_t>(json["label_field"].as_uint());
  catalog.files = json["files"].as_uint();
  catalog.bytes = json["bytes"].as_uint();
  if (const auto& skipped = json["skipped"].items(); skipped.size() == 6) {
    catalog.skipped = {skipped[0].as_uint(),
                       skipped[1].as_uint(),
                       skipped[2].as_uint(),
                       skipped[3].as_uint(),
                       skipped[4].as_uint(),
                       skipped[5].as_uint(),
                       {}};
  }
  for (const Json& item : json["arrays"].items()) {
    if (item.items().size() != 3) return damaged;
    ArrayValue array{item.items()[1].as_string(), {}};
    for (const Json& size : item.items()[2].items()) array.shape.push_back(size.as_uint());
    catalog.arrays.emplace(item.items()[0].as_string(), std::move(array));
  }
  for (const Json& steps : json["pipelines"].items()) {
    Pipeline pipeline;
    for (const Json& step : steps.items()) {
      if (step.items().size() != 3) return damaged;
      const auto value = bytes_of_hex(step.items()[2].as_string());
      if (!value) return damaged;
      pipeline.push_back(
          {step.items()[0].as_string(), static_cast<uint32_t>(step.items()[1].as_uint()), *value});
    }
    plan.pipelines.push_back(std::move(pipeline));
  }

  const auto file_bytes = columns.get<uint64_t>("file.bytes");
  const auto file_mtime = columns.get<int64_t>("file.mtime");
  const auto shard_first = columns.get<uint64_t>("shard.first");
  const uint64_t splits = json["splits"].as_uint(), classes = json["classes"].as_uint(),
                 roots = json["roots"].as_uint();
  const uint64_t piece_files = json["piece_files"].as_uint(), streams = json["streams"].as_uint();
  const uint64_t container_prefixes = json["container_prefixes"].as_uint();
  const uint64_t stream_prefixes = json["stream_prefixes"].as_uint();
  const uint64_t missing = json["missing"].as_uint(), unreadable = json["unreadable"].as_uint();
  catalog.missing_count = json["missing_count"].as_uint();
  catalog.unreadable_count = json["unreadable_count"].as_uint();
  catalog.warnings = strings(json["warnings"]);
  PACKTRAIN_ASSIGN(table, read_table(columns.get<uint64_t>("table.end"), columns.text("table.bytes")));
  if (table.size() != splits + classes + 2 * roots + piece_files + streams + container_prefixes +
                          stream_prefixes + missing + 2 * unreadable + shard_first.size() ||
      file_bytes.size() != piece_files + streams || file_mtime.size() != file_bytes.size()) {
    return damaged;
  }
  auto name = table.begin();
  for (uint64_t i = 0; i < splits; ++i) catalog.splits.push_back(std::move(*name++));
  for (uint64_t i = 0; i < classes; ++i) catalog.classes.push_back(std::move(*name++));
  for (uint64_t i = 0; i < roots; ++i) {
    catalog.roots.push_back({name[0], name[1]});
    name += 2;
  }
  for (uint64_t i = 0; i < piece_files; ++i)
    plan.piece_files.push_back({*name++, file_bytes[i], file_mtime[i]});
  for (uint64_t i = piece_files; i < piece_files + streams; ++i)
    catalog.streams.push_back({*name++, file_bytes[i], file_mtime[i]});

  for (uint64_t i = 0; i < container_prefixes; ++i) catalog.container_prefixes.push_back(*name++);
  for (uint64_t i = 0; i < stream_prefixes; ++i) catalog.stream_prefixes.push_back(*name++);
  for (uint64_t i = 0; i < missing; ++i) catalog.missing.push_back(*name++);
  for (uint64_t i = 0; i < unreadable; ++i) {
    catalog.unreadable.push_back({name[0], name[1], ""});
    name += 2;
  }

  catalog.names = columns.text("names");
  catalog.texts = columns.text("texts");
  const auto order = columns.get<uint32_t>("order");
  plan.order.assign(order.begin(), order.end());
  const auto kind = columns.get<uint64_t>("cell.kind"), where = columns.get<uint64_t>("cell.where"),
             size = columns.get<uint64_t>("cell.size"), path = columns.get<uint64_t>("cell.path");
  const auto inner = columns.get<uint32_t>("cell.inner"),
             path_bytes = columns.get<uint32_t>("cell.path_bytes");
  const auto piece_kind = columns.get<uint64_t>("piece.kind"), offset = columns.get<uint64_t>("piece.offset"),
             stored = columns.get<uint64_t>("piece.stored"), raw = columns.get<uint64_t>("piece.raw"),
             start = columns.get<uint64_t>("piece.start"), length = columns.get<uint64_t>("piece.length");
  const auto piece_check = columns.get<uint32_t>("piece.check");
  const auto first_cell = columns.get<uint64_t>("sample.cell"), key = columns.get<uint64_t>("sample.key");
  const auto label = columns.get<int64_t>("sample.label");
  const auto split = columns.get<uint32_t>("sample.split"),
             key_bytes = columns.get<uint32_t>("sample.key_bytes"),
             shard_split = columns.get<uint32_t>("shard.split");
  const auto shard_count = columns.get<uint64_t>("shard.count");
  const size_t cells = kind.size(), samples = first_cell.size(), pieces = piece_kind.size();
  if (columns.missing() || where.size() != cells || size.size() != cells || path.size() != cells ||
      inner.size() != cells || path_bytes.size() != cells || offset.size() != pieces ||
      stored.size() != pieces || raw.size() != pieces || start.size() != pieces || length.size() != pieces ||
      piece_check.size() != pieces || key.size() != samples || label.size() != samples ||
      split.size() != samples || key_bytes.size() != samples || order.size() != samples ||
      shard_split.size() != shard_first.size() || shard_count.size() != shard_first.size()) {
    return damaged;
  }
  // The checks above and each column's CRC make this a plan that encode_plan wrote; its numbers are trusted.
  catalog.cells.resize(cells);
  for (size_t i = 0; i < cells; ++i) {
    catalog.cells[i] = {.where = where[i],
                        .size = size[i],
                        .path = {path[i], path_bytes[i]},
                        .source = static_cast<uint32_t>(kind[i] >> 32),
                        .inner_field = inner[i],
                        .field = static_cast<uint16_t>(kind[i] >> 8),
                        .origin = static_cast<Origin>(kind[i] & 0xff),
                        .converted = (kind[i] >> 24 & 1) != 0};
  }
  catalog.samples.resize(samples);
  for (size_t i = 0; i < samples; ++i)
    catalog.samples[i] = {
        first_cell[i], label[i], {key[i], key_bytes[i]}, split[i] & 0x7fffffff, split[i] >> 31};
  plan.pieces.resize(pieces);
  for (size_t i = 0; i < pieces; ++i) {
    plan.pieces[i] = {static_cast<uint32_t>(piece_kind[i]),
                      static_cast<uint16_t>(piece_kind[i] >> 32),
                      static_cast<CheckKind>(piece_kind[i] >> 48 & 0xff),
                      (piece_kind[i] >> 56 & 1) != 0,
                      piece_check[i],
                      offset[i],
                      stored[i],
                      raw[i],
                      start[i],
                      length[i]};
  }
  for (size_t i = 0; i < shard_first.size(); ++i) {
    plan.shards.push_back({std::move(*name++), shard_split[i], shard_first[i], shard_count[i]});
  }
  return plan;
}

}  // namespace packtrain
