#include "format/zarr_write.h"

#include <algorithm>

#include "base/hash.h"
#include "base/json.h"
#include "base/little_endian.h"
#include "base/words.h"
#include "format/array_writer.h"
#include "format/compress_value.h"
#include "format/zip_store.h"
#include "packtrain/codec.h"

namespace packtrain {
namespace {

constexpr std::string_view kKeys = "keys";    // names that begin with "__" are reserved by Zarr
constexpr std::string_view kRows = "sample";  // the dimension that samples are along
// Bytes with offsets are cut into inner chunks of this size, so that zarr-python need not read a whole shard
// for one sample. They lie in order and without gaps: for packtrain a sample is one stretch.
constexpr uint64_t kInnerBytes = uint64_t{64} << 10;
constexpr int kBloscLevel = 5, kZstdLevel = 3;

Json named(std::string_view name, Json configuration) {
  Json codec = Json::object();
  codec.set("name", name).set("configuration", std::move(configuration));
  return codec;
}

Json list(std::span<const uint64_t> sizes) {
  Json made = Json::array();
  for (const uint64_t size : sizes) made.push(size);
  return made;
}

// Zarr's name of a type, and what missing chunks hold.
struct ZarrType {
  std::string name;
  Json fill;
  uint32_t number_bytes;
};

ZarrType zarr_type(std::string_view numpy) {
  const auto bytes = static_cast<uint32_t>(std::stoul(std::string(numpy.substr(2))));
  const std::string bits = std::to_string(8 * bytes);
  switch (numpy[1]) {
    case 'b':
      return {"bool", false, 1};
    case 'i':
      return {"int" + bits, 0, bytes};
    case 'u':
      return {"uint" + bits, 0, bytes};
    case 'f':
      return {"float" + bits, 0.0, bytes};
    default:
      return {"complex" + bits, Json::array().push(0.0).push(0.0), bytes / 2};
  }
}

Json bytes_codec(const ZarrType& type) {
  Json details = Json::object();
  if (type.number_bytes > 1) details.set("endian", "little");
  return named("bytes", std::move(details));
}

// The index of a shard: where each inner chunk lies, and a check.
std::vector<std::byte> shard_index(const std::vector<uint64_t>& ends) {
  std::vector<std::byte> index(16 * ends.size() + 4);
  uint64_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    store_le(index.data() + 16 * i, begin);
    store_le(index.data() + 16 * i + 8, ends[i] - begin);
    begin = ends[i];
  }
  store_le(index.data() + 16 * ends.size(), crc32c(Bytes(index).first(16 * ends.size())));
  return index;
}

Json sharding(std::span<const uint64_t> inner, Json codecs) {
  Json index_bytes = Json::object();
  index_bytes.set("endian", "little");
  Json check = Json::object();
  check.set("name", "crc32c");
  Json details = Json::object();
  details.set("chunk_shape", list(inner)).set("codecs", std::move(codecs));
  details.set("index_codecs",
              Json::array().push(named("bytes", std::move(index_bytes))).push(std::move(check)));
  details.set("index_location", "end");
  return named("sharding_indexed", std::move(details));
}

// Blosc is told how many bytes a number has.
Pipeline row_pipeline(Pipeline pipeline, uint32_t number_bytes) {
  if (!pipeline.empty() && pipeline[0].name == "blosc") pipeline[0].parameter = number_bytes;
  return pipeline;
}

class ZarrSink final : public ArraySink {
 public:
  ZarrSink(std::unique_ptr<ZipStore> zip, const WriteSpec& spec, Pipeline pipeline)
      : zip_(std::move(zip)), spec_(spec), pipeline_(std::move(pipeline)) {}

  std::string_view key_column() const override { return kKeys; }
  bool takes_texts() const override { return true; }

  Status begin_bytes(std::string_view name) override {
    name_ = name;
    return zip_->begin(name_ + "/c/0");
  }
  Status append_bytes(Bytes data) override { return zip_->append(data); }
  Status end_bytes() override {
    const uint64_t total = zip_->entry_bytes();
    const ZarrType type = zarr_type("|u1");
    uint64_t chunk = std::max<uint64_t>(total, 1);
    Json codecs = Json::array().push(bytes_codec(type));
    if (total > kInnerBytes) {
      const uint64_t inner = kInnerBytes;
      chunk = (total + inner - 1) / inner * inner;
      const std::vector<std::byte> padding(chunk - total);
      PACKTRAIN_TRY(zip_->append(padding));
      std::vector<uint64_t> ends;
      for (uint64_t end = inner; end <= chunk; end += inner) ends.push_back(end);
      PACKTRAIN_TRY(zip_->append(shard_index(ends)));
      codecs = Json::array().push(sharding({&inner, 1}, std::move(codecs)));
    }
    PACKTRAIN_TRY(zip_->end());
    const std::string dimension = name_ + "_byte";
    return add_metadata(name_, type.name, type.fill, {&total, 1}, {&chunk, 1}, std::move(codecs),
                        {dimension});
  }

  Status add(const ArrayToWrite& array) override {
    if (array.samples) return add_rows(array);
    const uint64_t count = array.shape[0];
    if (array.type == "|u1" && count > 0) {
      PACKTRAIN_TRY(begin_bytes(array.name));
      PACKTRAIN_TRY(array.pour([&](Bytes piece) { return zip_->append(piece); }));
      return end_bytes();
    }
    const ZarrType type = zarr_type(array.type);
    if (count > 0) {
      PACKTRAIN_TRY(zip_->begin(std::string(array.name) + "/c/0"));
      PACKTRAIN_TRY(array.pour([&](Bytes piece) { return zip_->append(piece); }));
      PACKTRAIN_TRY(zip_->end());
    }
    const uint64_t chunk = std::max<uint64_t>(count, 1);
    // Offsets are one more than samples, and have a dimension of their own.
    const bool offsets = array.name.ends_with("_offsets");
    const std::string dimension(offsets ? array.name.substr(0, array.name.size() - 1) : kRows);
    return add_metadata(array.name, type.name, type.fill, array.shape, {&chunk, 1},
                        Json::array().push(bytes_codec(type)), {dimension});
  }

  Status add_texts(std::string_view name, uint64_t count,
                   const std::function<std::string_view(uint64_t)>& text) override {
    if (count > 0) {
      PACKTRAIN_TRY(zip_->begin(std::string(name) + "/c/0"));
      std::vector<std::byte> piece(4);
      store_le(piece.data(), static_cast<uint32_t>(count));
      for (uint64_t i = 0; i < count; ++i) {
        const Bytes one = as_bytes(text(i));
        const size_t at = piece.size();
        piece.resize(at + 4);
        store_le(piece.data() + at, static_cast<uint32_t>(one.size()));
        piece.insert(piece.end(), one.begin(), one.end());
        if (piece.size() < kInnerBytes && i + 1 < count) continue;
        PACKTRAIN_TRY(zip_->append(piece));
        piece.clear();
      }
      PACKTRAIN_TRY(zip_->end());
    }
    const uint64_t chunk = std::max<uint64_t>(count, 1);
    return add_metadata(name, "string", "", {&count, 1}, {&chunk, 1},
                        Json::array().push(named("vlen-utf8", Json::object())), {std::string(kRows)});
  }

  // The root comes last and repeats the metadata of all arrays, so that readers need not look for them.
  Status finish() override {
    Json mark = Json::object(), known = Json::object(), root = Json::object();
    mark.set(std::string(kZarrMark), 1);
    known.set("kind", "inline").set("must_understand", false).set("metadata", std::move(arrays_));
    root.set("zarr_format", 3).set("node_type", "group").set("attributes", std::move(mark));
    root.set("consolidated_metadata", std::move(known));
    PACKTRAIN_TRY(zip_->add("zarr.json", as_bytes(root.dump())));
    return zip_->finish();
  }

 private:
  // One shard; every row is an inner chunk of its own, compressed or not.
  Status add_rows(const ArrayToWrite& array) {
    const ZarrType type = zarr_type(array.type);
    uint64_t row_bytes = std::stoul(std::string(array.type.substr(2)));
    for (const uint64_t size : array.shape.subspan(1)) row_bytes *= size;
    const Pipeline pipeline =
        is_for_field(spec_, array.name) ? row_pipeline(pipeline_, type.number_bytes) : Pipeline();
    const std::string name(array.name);
    PACKTRAIN_TRY(zip_->begin(name + "/c" + repeated("/0", array.shape.size())));
    std::vector<std::byte> row;
    std::vector<uint64_t> ends;
    const auto take = [&](Bytes piece) -> Status {
      while (!piece.empty()) {
        const size_t now = std::min<uint64_t>(piece.size(), row_bytes - row.size());
        row.insert(row.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(now));
        piece = piece.subspan(now);
        if (row.size() < row_bytes) break;
        PACKTRAIN_ASSIGN(stored, encode(pipeline, row, level(pipeline)));
        PACKTRAIN_TRY(zip_->append(stored));
        ends.push_back(zip_->entry_bytes());
        row.clear();
      }
      return {};
    };
    PACKTRAIN_TRY(array.pour(take));
    PACKTRAIN_TRY(zip_->append(shard_index(ends)));
    PACKTRAIN_TRY(zip_->end());
    std::vector<uint64_t> inner(array.shape.begin(), array.shape.end());
    inner[0] = 1;
    std::vector<std::string> dimensions = {std::string(kRows)};
    for (size_t axis = 1; axis < array.shape.size(); ++axis)
      dimensions.push_back(name + "_" + std::to_string(axis));
    return add_metadata(array.name, type.name, type.fill, array.shape, array.shape,
                        Json::array().push(sharding(inner, row_codecs(type, pipeline))), dimensions);
  }

  static std::string repeated(std::string_view text, size_t times) {
    std::string made;
    for (size_t i = 0; i < times; ++i) made += text;
    return made;
  }

  static int level(const Pipeline& pipeline) {
    return pipeline.empty() ? 0 : pipeline[0].name == "blosc" ? kBloscLevel : kZstdLevel;
  }

  static Json row_codecs(const ZarrType& type, const Pipeline& pipeline) {
    Json codecs = Json::array().push(bytes_codec(type));
    if (pipeline.empty()) return codecs;
    Json details = Json::object();
    if (pipeline[0].name == "blosc") {
      details.set("typesize", type.number_bytes).set("cname", "lz4").set("clevel", kBloscLevel);
      details.set("shuffle", type.number_bytes > 1 ? "shuffle" : "noshuffle").set("blocksize", 0);
    } else {
      details.set("level", kZstdLevel).set("checksum", false);
    }
    return codecs.push(named(pipeline[0].name, std::move(details)));
  }

  Status add_metadata(std::string_view name, const std::string& type, Json fill,
                      std::span<const uint64_t> shape, std::span<const uint64_t> chunk, Json codecs,
                      const std::vector<std::string>& dimensions) {
    Json chunk_shape = Json::object(), separator = Json::object(), names = Json::array();
    chunk_shape.set("chunk_shape", list(chunk));
    separator.set("separator", "/");
    for (const std::string& dimension : dimensions) names.push(dimension);
    Json metadata = Json::object();
    metadata.set("zarr_format", 3).set("node_type", "array").set("shape", list(shape));
    metadata.set("data_type", type).set("chunk_grid", named("regular", std::move(chunk_shape)));
    metadata.set("chunk_key_encoding", named("default", std::move(separator)));
    metadata.set("fill_value", std::move(fill)).set("codecs", std::move(codecs));
    metadata.set("attributes", Json::object()).set("dimension_names", std::move(names));
    PACKTRAIN_TRY(zip_->add(std::string(name) + "/zarr.json", as_bytes(metadata.dump())));
    arrays_.append(std::string(name), std::move(metadata));
    return {};
  }

  std::unique_ptr<ZipStore> zip_;
  const WriteSpec spec_;
  const Pipeline pipeline_;       // of rows
  std::string name_;              // of the open array of bytes
  Json arrays_ = Json::object();  // their metadata, by name
};

}  // namespace

Result<std::unique_ptr<ContainerWriter>> create_zarr(Storage& storage, std::string_view path,
                                                     const WriteSpec& spec) {
  PACKTRAIN_ASSIGN(pipeline, write_pipeline("zarr", kZarrCodecs, spec));
  for (const std::string& field : spec.fields) {
    if (field.find('/') != std::string::npos || field.starts_with("__") || field == "zarr.json" ||
        field.find_first_not_of('.') == std::string::npos) {
      return Status(Code::invalid,
                    "the field " + printable(field) + " cannot be the name of a Zarr array; rename it")
          .at(path);
    }
  }
  PACKTRAIN_ASSIGN(zip, ZipStore::create(storage, path, spec.expected_bytes, spec.write));
  return make_array_writer(storage, path, spec,
                           std::make_unique<ZarrSink>(std::move(zip), spec, std::move(pipeline)));
}

std::optional<ValueCoding> zarr_coding(std::string_view codec, Bytes head, uint64_t bytes) {
  const auto header = stackable_header(head, bytes);
  if (!header) return std::nullopt;
  const Pipeline pipeline = {{std::string(codec)}};
  return ValueCoding{row_pipeline(pipeline, zarr_type(header->type).number_bytes), header->bytes};
}

}  // namespace packtrain
