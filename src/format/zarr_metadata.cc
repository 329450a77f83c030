#include "format/zarr_metadata.h"

#include <algorithm>
#include <utility>

#include "base/words.h"
#include "format/numpy_type.h"
#include "format/zarr_fill.h"

namespace packtrain {
namespace {

constexpr size_t kMostAxes = 32;

Status damaged_metadata(std::string_view what) {
  return Status(Code::corrupt, "the metadata " + std::string(what));
}

Status not_read(std::string_view what) {
  return Status(Code::unsupported, std::string(what) + "; read it with zarr-python and pack what it gives");
}

Result<std::vector<uint64_t>> sizes(const Json& json) {
  std::vector<uint64_t> found;
  if (!json.is_array() || json.items().size() > kMostAxes) return damaged_metadata("have no shape");
  for (const Json& size : json.items()) {
    const uint64_t value = size.as_uint(UINT64_MAX);
    if (value >= uint64_t{1} << 60) return damaged_metadata("have a shape that is none");
    found.push_back(value);
  }
  return found;
}

// Rows must lie whole in their chunks.
Status take_chunks(const std::vector<uint64_t>& chunks, ZarrArray& array, uint64_t& rows) {
  if (chunks.size() != array.shape.size()) return damaged_metadata("have chunks of another number of axes");
  if (std::find(chunks.begin(), chunks.end(), 0) != chunks.end())
    return damaged_metadata("have chunks without a size");
  if (chunks.empty()) return {};
  rows = chunks[0];
  for (size_t axis = 1; axis < chunks.size(); ++axis) {
    if (chunks[axis] == array.shape[axis] || array.unusable.code() != Code::ok) continue;
    array.unusable = Status(Code::unsupported,
                            "is cut into chunks along axis " + std::to_string(axis) +
                                " too, so that no sample lies together; write it again with chunks of whole "
                                "rows, as chunks=(1, " +
                                std::to_string(array.shape[axis]) + ", …)");
  }
  return {};
}

// One codec from bytes to bytes, in the order of encoding.
Status add_codec(std::string_view name, const Json& details, ZarrCodec& codec) {
  if (name.starts_with("numcodecs.")) name.remove_prefix(10);
  if (name == "crc32c") {
    if (details["location"].as_string() == "start") return not_read("has checks in front of its chunks");
    // A check covers what stands in front of the bytes too, and takes it away with itself.
    codec.pipeline.push_back({"crc32c", static_cast<uint32_t>(std::exchange(codec.front, 0))});
    return {};
  }
  if (codec.front > 0) return not_read("is compressed twice");
  if (name == "blosc" || name == "zstd" || name == "zlib") {
    codec.pipeline.push_back({std::string(name)});
  } else if (name == "gzip") {
    codec.pipeline.push_back({"gzip_member"});
  } else if (name == "lz4") {  // numcodecs puts the length in front
    codec.pipeline.push_back({"lz4"});
    codec.front += 4;
  } else {
    return not_read("is compressed by " + printable(name));
  }
  return {};
}

ArrayType integer(bool is_signed, uint64_t bytes) {
  return {is_signed ? ArrayType::Kind::signed_integer : ArrayType::Kind::unsigned_integer, bytes};
}

// What fill values of a type look like, by Zarr's name for it or by NumPy's letter.
ZarrNumber number_of(std::string_view name, const ArrayType& type) {
  switch (type.kind) {
    case ArrayType::Kind::truth:
      return ZarrNumber::truth;
    case ArrayType::Kind::signed_integer:
      return ZarrNumber::signed_integer;
    case ArrayType::Kind::unsigned_integer:
      return ZarrNumber::unsigned_integer;
    case ArrayType::Kind::bytes:
      return ZarrNumber::bytes;
    case ArrayType::Kind::text:
    case ArrayType::Kind::long_text:
      return ZarrNumber::text;
    case ArrayType::Kind::other:
      break;
  }
  if (name.starts_with("numpy.")) return ZarrNumber::time;
  if (name.starts_with("float") || name == "f") return ZarrNumber::real;
  if (name.starts_with("complex") || name == "c") return ZarrNumber::complex;
  return name == "M" || name == "m" ? ZarrNumber::time : ZarrNumber::bytes;
}

// NumPy's word for a type that Zarr names.
std::string numpy_word(const ArrayType& type, ZarrNumber number) {
  const char* letter = nullptr;
  switch (number) {
    case ZarrNumber::truth:
      letter = "b";
      break;
    case ZarrNumber::signed_integer:
      letter = "i";
      break;
    case ZarrNumber::unsigned_integer:
      letter = "u";
      break;
    case ZarrNumber::real:
      letter = "f";
      break;
    case ZarrNumber::complex:
      letter = "c";
      break;
    default:
      return {};
  }
  return (type.item_bytes == 1 ? "|" : "<") + std::string(letter) + std::to_string(type.item_bytes);
}

void take_fill(const Json& metadata, std::string_view name, ZarrArray& array) {
  array.word = numpy_word(array.type, number_of(name, array.type));
  auto fill = zarr_fill(metadata["fill_value"], number_of(name, array.type), array.type);
  if (fill.ok())
    array.fill = std::move(*fill);
  else
    array.fill_trouble = fill.status();
}

std::optional<ArrayType> type_of(const Json& word) {
  using Kind = ArrayType::Kind;
  const std::string& name = word.is_object() ? word["name"].as_string() : word.as_string();
  if (name == "bool") return ArrayType{Kind::truth, 1};
  for (const uint64_t bytes : {1, 2, 4, 8}) {
    if (name == "int" + std::to_string(8 * bytes)) return integer(true, bytes);
    if (name == "uint" + std::to_string(8 * bytes)) return integer(false, bytes);
    if (bytes > 1 && name == "float" + std::to_string(8 * bytes)) return ArrayType{Kind::other, bytes};
  }
  if (name == "complex64") return ArrayType{Kind::other, 8};
  if (name == "complex128") return ArrayType{Kind::other, 16};
  if (name == "numpy.datetime64" || name == "numpy.timedelta64") return ArrayType{Kind::other, 8};
  if (name == "string") return ArrayType{Kind::long_text, 0};
  const uint64_t length = word["configuration"]["length_bytes"].as_uint();
  if (length >= uint64_t{1} << 31) return std::nullopt;
  if (name == "fixed_length_utf32") return ArrayType{Kind::text, length};
  if (name == "null_terminated_bytes") return ArrayType{Kind::bytes, length};
  if (name == "raw_bytes") return ArrayType{Kind::other, length};
  return std::nullopt;
}

// Codecs from the array to bytes and on. Shards hold codecs of their own, one level deep.
Status take_codecs(const Json& codecs, ZarrArray& array, bool inner) {
  if (!codecs.is_array() || codecs.items().empty()) return damaged_metadata("have no codecs");
  for (size_t i = 0; i < codecs.items().size(); ++i) {
    const Json& codec = codecs.items()[i];
    const std::string& name = codec.is_string() ? codec.as_string() : codec["name"].as_string();
    const Json& details = codec["configuration"];
    if (i > 0) {
      PACKTRAIN_TRY(array.shards && !inner ? not_read("is compressed in whole shards")
                                           : add_codec(name, details, array.codec));
    } else if (name == "bytes") {
      if (details["endian"].as_string() == "big" && array.type.item_bytes > 1)
        return not_read("is big-endian");
    } else if (name == "vlen-utf8") {
      array.codec.texts = true;
    } else if (name == "sharding_indexed" && !inner) {
      ZarrSharding shards;
      PACKTRAIN_ASSIGN(chunks, sizes(details["chunk_shape"]));
      PACKTRAIN_TRY(take_chunks(chunks, array, shards.inner_rows));
      if (array.chunk_rows % shards.inner_rows != 0)
        return damaged_metadata("have shards that are no whole chunks");
      shards.index_at_start = details["index_location"].as_string() == "start";
      const Json::Array& index = details["index_codecs"].items();
      const auto is = [&](size_t number, std::string_view wanted) {
        return number < index.size() && index[number]["name"].as_string() == wanted;
      };
      shards.index_has_check = is(1, "crc32c");
      if (!is(0, "bytes") || index[0]["configuration"]["endian"].as_string() == "big" ||
          index.size() != (shards.index_has_check ? 2u : 1u))
        return not_read("has shards with an unusual index");
      array.shards = shards;
      PACKTRAIN_TRY(take_codecs(details["codecs"], array, /*inner=*/true));
    } else {
      return not_read("is stored by the codec " + printable(name));
    }
  }
  if (array.codec.texts != (array.type.kind == ArrayType::Kind::long_text))
    return not_read("has texts in an unusual form");
  return {};
}

bool known_separator(const ZarrArray& array) {
  return array.key_separator == "/" || array.key_separator == ".";
}

// The array with a reason, where there is one not to use it.
Result<ZarrArray> with_reason(ZarrArray array, const Status& status) {
  if (status.code() == Code::corrupt) return status;
  if (array.unusable.ok()) array.unusable = status;
  return array;
}

}  // namespace

std::string ZarrArray::chunk_key(uint64_t chunk) const {
  std::string key = key_front + std::to_string(chunk);
  for (size_t axis = 1; axis < shape.size(); ++axis) key.append(key_separator).append("0");
  return key;
}

Result<ZarrArray> parse_zarr_v3(const Json& metadata) {
  ZarrArray array;
  PACKTRAIN_ASSIGN(shape, sizes(metadata["shape"]));
  array.shape = std::move(shape);
  const Json& word = metadata["data_type"];
  const auto type = type_of(word);
  if (!type) return with_reason(array, not_read("has a type of numbers that is not known here"));
  array.type = *type;
  take_fill(metadata, word.is_object() ? word["name"].as_string() : word.as_string(), array);
  if (metadata["chunk_grid"]["name"].as_string() != "regular")
    return with_reason(array, not_read("has chunks of different sizes"));
  PACKTRAIN_ASSIGN(chunks, sizes(metadata["chunk_grid"]["configuration"]["chunk_shape"]));
  PACKTRAIN_TRY(take_chunks(chunks, array, array.chunk_rows));
  if (!metadata["storage_transformers"].items().empty())
    return with_reason(array, not_read("has a storage transformer"));
  const Json& keys = metadata["chunk_key_encoding"];
  const bool as_v2 = keys["name"].as_string() == "v2";
  if (!as_v2 && keys["name"].as_string() != "default")
    return with_reason(array, not_read("names its chunks in an unknown way"));
  const Json& separator = keys["configuration"]["separator"];
  array.key_separator = separator.is_string() ? separator.as_string() : as_v2 ? "." : "/";
  array.key_front = as_v2 ? "" : "c" + array.key_separator;
  if (!known_separator(array)) return damaged_metadata("separate the numbers of chunks by something unknown");
  const Status taken = take_codecs(metadata["codecs"], array, /*inner=*/false);  // before `array` is copied
  return with_reason(std::move(array), taken);
}

Result<ZarrArray> parse_zarr_v2(const Json& metadata) {
  ZarrArray array;
  PACKTRAIN_ASSIGN(shape, sizes(metadata["shape"]));
  array.shape = std::move(shape);
  PACKTRAIN_ASSIGN(chunks, sizes(metadata["chunks"]));
  PACKTRAIN_TRY(take_chunks(chunks, array, array.chunk_rows));
  const Json& separator = metadata["dimension_separator"];
  array.key_separator = separator.is_string() ? separator.as_string() : ".";
  array.key_front = "";
  if (!known_separator(array)) return damaged_metadata("separate the numbers of chunks by something unknown");
  const Json::Array& filters = metadata["filters"].items();
  if (filters.size() == 1 && filters[0]["id"].as_string() == "vlen-utf8") {
    array.type = {ArrayType::Kind::long_text, 0};
    array.codec.texts = true;
    if (metadata["fill_value"].is_string()) array.fill = metadata["fill_value"].as_string();
  } else if (!filters.empty()) {
    return with_reason(array, not_read("has filters"));
  } else {
    if (!metadata["dtype"].is_string()) return with_reason(array, not_read("is an array of records"));
    const NumpyType type = parse_numpy_type(metadata["dtype"].as_string());
    array.type = type.type;
    if (!type.unusable.ok()) return with_reason(array, type.unusable);
    std::string_view letter = metadata["dtype"].as_string();
    letter.remove_prefix(std::min<size_t>(letter.find_first_not_of("<>|="), letter.size()));
    take_fill(metadata, letter.substr(0, 1), array);
  }
  if (metadata["order"].as_string() == "F" && array.shape.size() > 1)
    return with_reason(array,
                       Status(Code::unsupported,
                              "is in Fortran order, in which no row lies together; write it again with "
                              "order='C'"));
  if (metadata["compressor"].is_null()) return array;
  const Json& compressor = metadata["compressor"];
  const Status added = add_codec(compressor["id"].as_string(), compressor, array.codec);
  return with_reason(std::move(array), added);
}

}  // namespace packtrain
