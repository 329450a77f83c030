// manifest.json: JSON whose last member is the hash of every byte before it:
//
//   {…,\n "hash": "32 hex digits"\n}\n
//
// The end is compared byte for byte, so that no bit of the file can change unnoticed.
#include <algorithm>

#include "base/hash.h"
#include "base/json.h"
#include "index/split_name.h"
#include "packtrain/index.h"

namespace packtrain {
namespace {

constexpr std::string_view kTailBegin = ",\n \"hash\": \"", kTailEnd = "\"\n}\n";
constexpr size_t kHashDigits = 32;
constexpr size_t kTailBytes = kTailBegin.size() + kHashDigits + kTailEnd.size();
constexpr std::string_view kMagic = "packtrain-dataset";

Json shard_json(const ShardSpec& shard) {
  Json json = Json::object();
  json.append("path", shard.path).append("format", shard.format).append("bytes", shard.bytes);
  json.append("samples", shard.samples);
  if (shard.mtime_ns != 0) json.append("mtime_ns", shard.mtime_ns);
  if (!shard.hash.empty()) json.append("hash", shard.hash);
  return json;
}

Json pipeline_json(const Pipeline& pipeline) {
  Json json = Json::array();
  for (const CodecStep& step : pipeline) {
    Json one = Json::object();
    one.append("codec", step.name).append("parameter", step.parameter);
    if (!step.value.empty()) one.append("value", hex_of(as_bytes(step.value)));
    json.push(std::move(one));
  }
  return json;
}

Json field_json(const FieldSpec& field) {
  Json json = Json::object();
  json.append("name", field.name).append("check", check_kind_name(field.check));
  if (!field.array) return json;
  Json shape = Json::array();
  for (const uint64_t size : field.array->shape) shape.push(size);
  json.append("type", field.array->type).append("shape", std::move(shape));
  return json;
}

Json beside_json(const BesideSpec& file) {
  Json json = Json::object();
  json.append("path", file.path);
  if (file.absent) return json.append("absent", true);
  return json.append("bytes", file.bytes).append("mtime_ns", file.mtime_ns);
}

Result<CodecStep> parse_step(const Json& json) {
  const auto value = bytes_of_hex(json["value"].as_string());
  if (!value)
    return Status(Code::corrupt, "a codec of the manifest has a value that is no hexadecimal number");
  return CodecStep{json["codec"].as_string(), static_cast<uint32_t>(json["parameter"].as_uint()), *value};
}

// Nothing where the field has no type, or one that says nothing.
std::optional<ArrayValue> parse_array(const Json& field) {
  ArrayValue array;
  array.type = field["type"].as_string();
  for (const Json& size : field["shape"].items()) array.shape.push_back(size.as_uint());
  if (array.type.empty() || array.bytes() == 0) return std::nullopt;
  return array;
}

Result<CheckKind> parse_check(const std::string& name) {
  for (CheckKind kind : {CheckKind::none, CheckKind::crc32, CheckKind::crc32c}) {
    if (name == check_kind_name(kind)) return kind;
  }
  return Status(Code::unsupported, "a field has checks of a kind this version does not know: " + name +
                                       "; use a newer packtrain");
}

// Of the head of a manifest; either half of the word is enough, should the other be damaged.
constexpr size_t kHeadBytes = 64;

}  // namespace

bool holds_dataset(Storage& storage, std::string_view folder) {
  const std::string path(folder);
  if (!storage.stat(path + "/index.npz").ok()) return false;
  const auto file = storage.open(path + "/manifest.json");
  if (!file.ok()) return false;
  std::string head(static_cast<size_t>(std::min<uint64_t>(kHeadBytes, (*file)->size())), '\0');
  if (!storage.read(**file, 0, std::as_writable_bytes(std::span(head))).ok()) return true;  // not to be told
  return head.find(kMagic.substr(0, 9)) != head.npos || head.find(kMagic.substr(9)) != head.npos;
}

std::string Manifest::encode() {
  Json json = Json::object();
  json.append("kind", kMagic).append("version", version).append("form", form).append("samples", samples);
  Json list = Json::array();
  for (const SplitSpec& split : splits) {
    list.push(
        Json::object().append("name", split.name).append("first", split.first).append("count", split.count));
  }
  json.append("splits", std::move(list));
  list = Json::array();
  for (const FieldSpec& field : fields) {
    list.push(field_json(field));
  }
  json.append("fields", std::move(list));
  list = Json::array();
  for (const std::string& name : classes) list.push(name);
  json.append("classes", std::move(list));
  list = Json::array();
  for (const Pipeline& pipeline : pipelines) list.push(pipeline_json(pipeline));
  json.append("pipelines", std::move(list));
  list = Json::array();
  for (const ShardSpec& shard : shards) list.push(shard_json(shard));
  json.append("shards", std::move(list));
  if (!beside.empty()) {
    list = Json::array();
    for (const BesideSpec& file : beside) list.push(beside_json(file));
    json.append("beside", std::move(list));
  }
  list = Json::array();
  for (const FileSpec& file : files) {
    list.push(Json::object().append("path", file.path).append("bytes", file.bytes).append("hash", file.hash));
  }
  json.append("files", std::move(list));
  json.append("index_directory_hash", index_directory_hash);
  if (!names_directory_hash.empty()) json.append("names_directory_hash", names_directory_hash);
  if (!source_json.empty()) {
    auto source = Json::parse(source_json);
    assert(source.ok());
    json.append("source", std::move(source).value());
  }
  std::string text = json.dump(1);
  text.resize(text.size() - 2);  // the closing "\n}": it comes after the hash
  id = xxh128_hex(as_bytes(text));
  text.append(kTailBegin).append(id).append(kTailEnd);
  return text;
}

Result<Manifest> Manifest::decode(std::string_view bytes) {
  const Status damaged(Code::corrupt,
                       "the manifest is damaged or cut short: its own hash does not match; restore "
                       "manifest.json from another copy, or pack again");
  if (bytes.size() < kTailBytes) return damaged;
  const std::string_view body = bytes.substr(0, bytes.size() - kTailBytes), tail = bytes.substr(body.size());
  Manifest manifest;
  manifest.id = xxh128_hex(as_bytes(body));
  std::string expected(kTailBegin);
  expected.append(manifest.id).append(kTailEnd);
  if (tail != expected) return damaged;

  PACKTRAIN_ASSIGN(json, Json::parse(bytes));
  if (json["kind"].as_string() != kMagic)
    return Status(Code::corrupt,
                  "this is not the manifest of a packtrain dataset; name a folder that packtrain made");
  manifest.version = static_cast<uint32_t>(json["version"].as_uint());
  if (manifest.version != 1) {
    return Status(Code::unsupported, "the dataset has format version " + std::to_string(manifest.version) +
                                         ", this packtrain reads version 1; use a newer packtrain");
  }
  manifest.form = json["form"].as_string();
  if (manifest.form != "rows" && manifest.form != "general") {
    return Status(Code::unsupported, "the index has a form this version does not know: " + manifest.form +
                                         "; use a newer packtrain");
  }
  manifest.samples = json["samples"].as_uint();
  uint64_t next = 0;
  for (const Json& split : json["splits"].items()) {
    manifest.splits.push_back(
        {split["name"].as_string(), split["first"].as_uint(), split["count"].as_uint()});
    if (const Status name = check_split_name(manifest.splits.back().name); !name.ok())
      return Status(Code::corrupt, name.message());
    if (manifest.splits.back().first != next || manifest.splits.back().count > manifest.samples - next) {
      return Status(Code::corrupt, "the splits of the manifest do not follow each other");
    }
    next += manifest.splits.back().count;
  }
  if (next != manifest.samples)
    return Status(Code::corrupt, "the splits of the manifest do not cover its samples");
  for (const Json& field : json["fields"].items()) {
    PACKTRAIN_ASSIGN(check, parse_check(field["check"].as_string()));
    manifest.fields.push_back({field["name"].as_string(), check, parse_array(field)});
  }
  for (const Json& name : json["classes"].items()) manifest.classes.push_back(name.as_string());
  for (const Json& steps : json["pipelines"].items()) {
    Pipeline pipeline;
    for (const Json& step : steps.items()) {
      PACKTRAIN_ASSIGN(parsed, parse_step(step));
      pipeline.push_back(std::move(parsed));
    }
    manifest.pipelines.push_back(std::move(pipeline));
  }
  for (const Json& shard : json["shards"].items()) {
    manifest.shards.push_back({shard["path"].as_string(), shard["format"].as_string(),
                               shard["bytes"].as_uint(), shard["samples"].as_uint(),
                               shard["mtime_ns"].as_int(), shard["hash"].as_string()});
  }
  for (const Json& file : json["beside"].items()) {
    manifest.beside.push_back({file["path"].as_string(), file["absent"].as_bool(), file["bytes"].as_uint(),
                               file["mtime_ns"].as_int()});
  }
  for (const Json& file : json["files"].items()) {
    manifest.files.push_back({file["path"].as_string(), file["bytes"].as_uint(), file["hash"].as_string()});
  }
  manifest.index_directory_hash = json["index_directory_hash"].as_string();
  manifest.names_directory_hash = json["names_directory_hash"].as_string();
  if (json.has("source")) manifest.source_json = json["source"].dump();
  return manifest;
}

uint64_t ArrayValue::bytes() const {
  constexpr uint64_t kMost = uint64_t{1} << 48;
  if (type.size() < 3) return 0;
  uint64_t bytes = 0;
  for (size_t i = 2; i < type.size() && type[i] >= '0' && type[i] <= '9' && bytes < kMost; ++i)
    bytes = bytes * 10 + static_cast<uint64_t>(type[i] - '0');
  if (type[1] == 'U') bytes *= 4;
  for (const uint64_t size : shape) {
    if (size != 0 && bytes > kMost / size) return 0;
    bytes *= size;
  }
  return bytes;
}

uint32_t Manifest::field_id(std::string_view name) const {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return static_cast<uint32_t>(i);
  }
  return UINT32_MAX;
}

}  // namespace packtrain
