#include "pack/show_tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"
#include "pack/show_html.h"
#include "pack/show_plot.h"
#include "packtrain/storage.h"

namespace packtrain {

namespace {

constexpr uint32_t kThumbnailSide = 160;
constexpr int kThumbnailQuality = 80;
constexpr size_t kMostInlineBytes = 200'000;  // of an image that is shown as it is

std::string picture(std::string_view media_type, Bytes bytes) {
  return fmt::format("<img alt=\"\" loading=\"lazy\" src=\"{}\">", data_uri(media_type, bytes));
}

std::string box(std::string_view kind, std::string_view text) {
  return fmt::format("<div class=\"box {}\">{}</div>", kind, text);
}

Result<std::vector<std::byte>> small_picture(Bytes bytes) {
  constexpr uint64_t kMemory = uint64_t{256} << 20;
  PACKTRAIN_ASSIGN(reader, PixelReader::make(kMemory));
  Image image;
  PACKTRAIN_TRY(reader->read(bytes, kThumbnailSide, image));
  return encode_jpeg(image, kThumbnailQuality, Chroma::s420);
}

Tile image_tile(MediaKind kind, Bytes bytes) {
  Tile tile;
  tile.shape = image_shape(bytes);
  if (kind == MediaKind::jpeg) {
    const auto image = decode_jpeg(bytes, kThumbnailSide);
    if (!image.ok()) return damaged_tile(image.status().message());
    const auto small = encode_jpeg(*image, kThumbnailQuality, Chroma::s420);
    if (!small.ok()) return damaged_tile(small.status().message());
    tile.html = picture("image/jpeg", *small);
  } else if (kind == MediaKind::pnm) {  // which browsers do not show
    const auto small = small_picture(bytes);
    if (!small.ok()) return damaged_tile(small.status().message());
    tile.html = picture("image/jpeg", *small);
  } else if (!tile.shape) {
    return damaged_tile("the header of the " + std::string(media_kind_name(kind)) + " image is damaged");
  } else if (bytes.size() > kMostInlineBytes) {
    tile.html = box("plain", fmt::format("{} of {} x {} pixels, {}", media_kind_name(kind), tile.shape->width,
                                         tile.shape->height, bytes_in_words(bytes.size())));
  } else {
    tile.html = picture("image/" + std::string(media_kind_name(kind)), bytes);
  }
  return tile;
}

// What a field is worth on the sheet; more is shown first.
int interest(MediaKind kind) {
  switch (kind) {
    case MediaKind::jpeg:
    case MediaKind::png:
    case MediaKind::gif:
    case MediaKind::webp:
    case MediaKind::bmp:
    case MediaKind::pnm:
      return 5;
    case MediaKind::wav:
      return 4;
    case MediaKind::npy:
      return 3;
    case MediaKind::text:
      return 2;
    case MediaKind::json:
      return 1;
    default:
      return 0;
  }
}

std::string list_of_fields(const Manifest& manifest, const SampleBytes& sample) {
  std::string out;
  for (const SampleBytes::Field& field : sample.fields)
    out += fmt::format("<div>{} <span>{}</span></div>", html_text(manifest.fields[field.field].name, 40),
                       bytes_in_words(field.bytes.size()));
  return out.empty() ? "no fields" : out;
}

}  // namespace

Tile damaged_tile(std::string_view why) {
  return {box("damaged", "<b>damaged</b>" + html_text(why, 160)), std::nullopt};
}

Tile sample_tile(const Manifest& manifest, const SampleBytes& sample) {
  int best = -1;
  MediaKind kind = MediaKind::unknown;
  Bytes bytes;
  std::string caption;
  for (const SampleBytes::Field& field : sample.fields) {
    // The label in digits is told by the class's name already.
    if (manifest.fields[field.field].name == "cls") continue;
    const MediaKind field_kind = media_kind(field.bytes);
    if (field_kind == MediaKind::text && caption.empty()) caption = html_text(as_text(field.bytes), 90);
    if (interest(field_kind) <= best) continue;
    best = interest(field_kind);
    kind = field_kind;
    bytes = field.bytes;
  }
  switch (best) {
    case 5: {
      Tile tile = image_tile(kind, bytes);
      if (!caption.empty()) tile.html += fmt::format("<p class=\"said\">{}</p>", caption);
      return tile;
    }
    case 4:
      if (const auto wave = waveform(bytes)) return {*wave, std::nullopt};
      return damaged_tile("the WAV header is damaged, or its samples are of a kind that is not drawn");
    case 3:
      if (const auto plane = number_plane(bytes)) return {picture("image/jpeg", *plane), std::nullopt};
      break;
    case 2:
    case 1:
      return {box("text", html_text(as_text(bytes), 260)), std::nullopt};
    default:
      break;
  }
  return {box("plain", list_of_fields(manifest, sample)), std::nullopt};
}

}  // namespace packtrain
