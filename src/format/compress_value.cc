#include "format/compress_value.h"

#include <algorithm>
#include <string>

#include "packtrain/media.h"

namespace packtrain {
namespace {

constexpr size_t kHeadBytes = 64;  // more than any of the signatures has

}  // namespace

Status check_codec(std::string_view format, std::span<const std::string_view> codecs,
                   std::string_view compress) {
  if (compress == "none" || compress == "auto") return {};
  if (std::find(codecs.begin(), codecs.end(), compress) != codecs.end()) return {};
  std::string known = "none";
  for (size_t i = 0; i < codecs.size(); ++i)
    known.append(i + 1 < codecs.size() ? ", " : " or ").append(codecs[i]);
  return Status(Code::unsupported, std::string(format) + " is written with --compress " + known + ", not " +
                                       std::string(compress) +
                                       (codecs.empty() ? "; zip, zarr and squashfs compress values" : ""));
}

Result<Pipeline> write_pipeline(std::string_view format, std::span<const std::string_view> codecs,
                                const WriteSpec& spec) {
  PACKTRAIN_TRY(check_codec(format, codecs, spec.compress));
  if (spec.compress == "none" || spec.compress == "auto") return Pipeline();
  Pipeline pipeline = {{spec.compress}};
  PACKTRAIN_TRY(encode(pipeline, {}).status());
  return pipeline;
}

bool is_for_field(const WriteSpec& spec, std::string_view field) {
  return spec.compressed.empty() || std::binary_search(spec.compressed.begin(), spec.compressed.end(), field);
}

bool is_compressed_content(Bytes value) {
  switch (media_kind(value.first(std::min(value.size(), kHeadBytes)))) {
    case MediaKind::jpeg:
    case MediaKind::png:
    case MediaKind::webp:
    case MediaKind::gif:
    case MediaKind::flac:
      return true;
    default:
      return false;
  }
}

Result<std::vector<std::byte>> encode_if_it_saves(const Pipeline& pipeline, Bytes raw) {
  if (pipeline.empty() || raw.empty()) return std::vector<std::byte>();
  PACKTRAIN_ASSIGN(encoded, encode(pipeline, raw));
  if (!saves_enough(encoded.size(), raw.size())) encoded.clear();
  return encoded;
}

}  // namespace packtrain
