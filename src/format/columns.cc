#include "format/columns.h"

#include <algorithm>

#include "packtrain/media.h"

namespace packtrain {
namespace {

using Names = std::initializer_list<std::string_view>;

bool among(std::string_view name, Names names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool is_label_name(std::string_view name) {
  return among(name, {"label", "labels", "target", "targets", "cls", "class", "class_id", "y"});
}

ColumnRole column_role(std::string_view name, ColumnKind kind) {
  if (kind == ColumnKind::integers && is_label_name(name)) return ColumnRole::label;
  if (kind == ColumnKind::text && among(name, {kKeyColumn, "key", "keys"})) return ColumnRole::key;
  return ColumnRole::field;
}

bool is_named_by_content(std::string_view column) {
  return among(column, {"image", "images", "image_data", "img", "audio", "bytes", "data", "x"});
}

std::string field_of_column(std::string_view column, Bytes first) {
  if (!is_named_by_content(column)) return std::string(column);
  switch (media_kind(first)) {
    case MediaKind::jpeg:
      return "jpg";
    case MediaKind::pnm:
      return "ppm";
    case MediaKind::png:
    case MediaKind::gif:
    case MediaKind::webp:
    case MediaKind::bmp:
    case MediaKind::wav:
    case MediaKind::flac:
    case MediaKind::npy:
      return std::string(media_kind_name(media_kind(first)));
    case MediaKind::json:
    case MediaKind::text:
    case MediaKind::unknown:
      break;
  }
  return std::string(column);
}

bool is_image_field(std::string_view field) {
  return among(field, {"jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff", "ppm", "pgm", "pnm"});
}

bool is_image_set(const WriteSpec& spec) {
  return spec.one_image || (spec.fields.size() == 1 && is_image_field(spec.fields.front()));
}

std::string number_key(uint64_t sample) {
  std::string digits = std::to_string(sample);
  return digits.size() < 9 ? std::string(9 - digits.size(), '0') + digits : digits;
}

}  // namespace packtrain
