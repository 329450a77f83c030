#include "pack/image_conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/words.h"
#include "decode/jpeg_header.h"

namespace packtrain {
namespace {

constexpr uint64_t kConversionMemory = uint64_t{1}
                                       << 30;  // for one image: 256 Mpixel of RGB and their coefficients
constexpr uint32_t kLargestJpegSide = 65500;

// Names of fields that are a sample's image, the one that counts first in front.
constexpr std::string_view kImageFields[] = {"jpg", "jpeg", "png", "webp", "ppm", "pgm", "pnm"};
constexpr size_t kJpegFields = 2, kOtherFields = 4;  // those in front, and those of compressed images

// Its place in kImageFields; their number if it is none of them.
size_t image_rank(std::string_view field) {
  std::string lower(field);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return static_cast<size_t>(std::find(std::begin(kImageFields), std::end(kImageFields), lower) -
                             std::begin(kImageFields));
}

// What the field of the given rank is called when its image has been converted.
std::string_view new_name(const ImageConversion& conversion, size_t rank, std::string_view name) {
  if (conversion.form == ImageForm::jpeg && rank >= kJpegFields) return "jpg";
  if (conversion.form == ImageForm::raw && rank < kOtherFields) return "ppm";
  return name;
}

// Marker, length, tag and block of an EXIF segment behind the first segment of a JPEG that was just made.
void insert_exif(Bytes exif, std::vector<std::byte>& jpeg) {
  constexpr std::string_view kTag("Exif\0\0", 6);
  constexpr size_t kLongest = 0xFFFF;
  const size_t length = 2 + kTag.size() + exif.size();
  if (exif.empty() || length > kLongest || jpeg.size() < 6) return;
  size_t at = 2;
  if (jpeg[2] == std::byte{0xFF} && jpeg[3] == std::byte{0xE0})  // JFIF's own stays in front
    at += 2 + (std::to_integer<size_t>(jpeg[4]) << 8 | std::to_integer<size_t>(jpeg[5]));
  std::vector<std::byte> segment = {std::byte{0xFF}, std::byte{0xE1}, static_cast<std::byte>(length >> 8),
                                    static_cast<std::byte>(length & 0xFF)};
  for (const char c : kTag) segment.push_back(static_cast<std::byte>(c));
  segment.insert(segment.end(), exif.begin(), exif.end());
  jpeg.insert(jpeg.begin() + static_cast<ptrdiff_t>(at), segment.begin(), segment.end());
}

bool is_larger(const ImageShape& shape, uint32_t max_side) {
  return max_side > 0 && std::max(shape.width, shape.height) > max_side;
}

}  // namespace

BeyondPixels beyond_pixels(Bytes encoded) {
  const std::string_view text = as_text(encoded);
  const auto byte = [&](size_t at) { return at < text.size() ? static_cast<uint8_t>(text[at]) : uint8_t{0}; };
  BeyondPixels beyond;
  if (text.starts_with("\x89PNG")) {
    constexpr size_t kDepthAt = 24, kColourAt = 25, kFirstChunk = 8, kFrameBytes = 12;
    constexpr uint8_t kAlphaBit = 4;
    beyond.depth = byte(kDepthAt) == 16;
    beyond.alpha = (byte(kColourAt) & kAlphaBit) != 0;
    for (size_t at = kFirstChunk; at + kFrameBytes <= text.size();) {
      const std::string_view name = text.substr(at + 4, 4);
      if (name == "tRNS") beyond.alpha = true;  // of a palette, or one colour that is transparent
      if (name == "tRNS" || name == "IDAT" || name == "IEND") break;
      const size_t length = size_t{byte(at)} << 24 | size_t{byte(at + 1)} << 16 | size_t{byte(at + 2)} << 8 |
                            size_t{byte(at + 3)};
      at += kFrameBytes + length;
    }
  } else if (text.starts_with("RIFF") && text.substr(0, 16).ends_with("VP8X")) {
    beyond.alpha = (byte(20) & 0x10) != 0;
  } else if (text.starts_with("RIFF") && text.substr(0, 16).ends_with("VP8L")) {
    beyond.alpha = (byte(24) & 0x10) != 0;  // behind size, signature and 28 bits of width and height
  }
  return beyond;
}

Result<ImageConversion> parse_conversion(const PackOptions& options) {
  ImageConversion conversion;
  conversion.max_side = static_cast<uint32_t>(std::min<uint64_t>(options.max_side, UINT32_MAX));
  conversion.baseline = options.baseline;
  const std::string_view image = options.image;
  constexpr std::string_view kJpeg = "jpeg:";
  if (image == "raw") {
    conversion.form = ImageForm::raw;
  } else if (image.starts_with(kJpeg)) {
    conversion.form = ImageForm::jpeg;
    const std::string_view quality = image.substr(kJpeg.size());
    const auto [end, error] =
        std::from_chars(quality.data(), quality.data() + quality.size(), conversion.quality);
    if (error != std::errc() || end != quality.data() + quality.size() || conversion.quality < 1 ||
        conversion.quality > 100)
      return Status(Code::invalid,
                    "--image jpeg:QUALITY takes a quality from 1 to 100, not '" + printable(quality) + "'");
  } else if (image != "keep") {
    return Status(Code::invalid, "--image is keep, jpeg:QUALITY (for example jpeg:90) or raw, not '" +
                                     printable(image) + "'");
  }
  if (conversion.form == ImageForm::raw && conversion.baseline)
    return Status(Code::invalid, "--baseline is for JPEGs, and --image raw leaves none; drop one of them");
  return conversion;
}

Status mark_images(Catalog& catalog, const ImageConversion& conversion) {
  if (!conversion.any()) return {};
  std::vector<size_t> ranks;
  for (const std::string& field : catalog.fields) ranks.push_back(image_rank(field));
  const auto field_number = [&](std::string_view name) -> Result<uint16_t> {
    const auto found = std::find(catalog.fields.begin(), catalog.fields.end(), name);
    if (found != catalog.fields.end()) return static_cast<uint16_t>(found - catalog.fields.begin());
    if (catalog.fields.size() > UINT16_MAX)
      return Status(Code::unsupported, "the samples have more than 65,536 kinds of fields");
    catalog.fields.emplace_back(name);
    ranks.push_back(image_rank(name));
    return static_cast<uint16_t>(catalog.fields.size() - 1);
  };
  uint64_t marked = 0, with_others = 0;
  for (size_t i = 0; i < catalog.samples.size(); ++i) {
    const auto begin = catalog.cells.begin() + static_cast<ptrdiff_t>(catalog.samples[i].first_cell);
    const auto end = catalog.cells.begin() + static_cast<ptrdiff_t>(catalog.end_cell(i));
    const auto rank_of = [&](const Cell& cell) {
      return cell.origin == Origin::text ? std::size(kImageFields) : ranks[cell.field];
    };
    const auto image =
        std::min_element(begin, end, [&](const Cell& a, const Cell& b) { return rank_of(a) < rank_of(b); });
    if (image == end || rank_of(*image) == std::size(kImageFields)) continue;
    const size_t rank = rank_of(*image);
    if (conversion.form == ImageForm::keep && rank >= kJpegFields) {
      if (conversion.max_side == 0) continue;  // only progressive JPEGs are recoded
      return Status(Code::invalid,
                    "--max-side alone shrinks JPEGs, and the image of " +
                        printable(catalog.name(catalog.samples[i].stem)) + " is a " +
                        catalog.fields[image->field] +
                        ": say what images shall become with --image jpeg:QUALITY or --image raw");
    }
    with_others += std::any_of(begin, end, [&](const Cell& cell) {
      return &cell != &*image && rank_of(cell) < std::size(kImageFields);
    });
    const std::string old_name = catalog.fields[image->field];
    PACKTRAIN_ASSIGN(field, field_number(new_name(conversion, rank, old_name)));
    if (field != image->field &&
        std::any_of(begin, end, [&](const Cell& cell) { return cell.field == field; }))
      return Status(Code::invalid, printable(catalog.name(catalog.samples[i].stem)) + " has the fields " +
                                       old_name + " and " + catalog.fields[field] +
                                       ", and the first would become the second by --image " +
                                       (conversion.form == ImageForm::raw ? "raw" : "jpeg") +
                                       "; rename one of them in the source");
    image->converted = true;
    ++marked;
    if (field == image->field) continue;
    image->field = field;
    std::sort(begin, end, [&](const Cell& a, const Cell& b) {
      return catalog.fields[a.field] < catalog.fields[b.field];
    });
  }
  if (marked == 0)
    catalog.warnings.emplace_back("no sample has an image to convert: a field called jpg, jpeg, png or webp");
  if (with_others > 0)
    catalog.warnings.push_back(counted(with_others, "sample") +
                               " have further images beside the one that is converted; these stay as they "
                               "are");
  return {};
}

Result<ImageConverter> ImageConverter::make(const ImageConversion& conversion) {
  PACKTRAIN_ASSIGN(reader, PixelReader::make(kConversionMemory));
  return ImageConverter(conversion, std::move(reader));
}

Status ImageConverter::to_baseline(Bytes source, std::vector<std::byte>& out) const {
  return conversion_.baseline ? recode_as_baseline(source, kConversionMemory, out) : Status();
}

Status ImageConverter::to_jpeg(Bytes source, std::vector<std::byte>& out) {
  PACKTRAIN_TRY(reader_->read(source, conversion_.max_side, image_));
  if (is_larger(image_.shape, kLargestJpegSide))
    return Status(Code::unsupported, fmt::format("{} x {} pixels are more than a JPEG holds",
                                                 image_.shape.width, image_.shape.height));
  const auto header = read_jpeg_header(source);
  PACKTRAIN_ASSIGN(encoded, encode_jpeg(image_, conversion_.quality, header ? header->chroma : Chroma::s420));
  if (header) insert_exif(header->exif, encoded);
  out = std::move(encoded);
  return {};
}

Status ImageConverter::convert(Bytes source, std::vector<std::byte>& out) {
  out.clear();
  const auto shape = image_shape(source);
  const MediaKind kind = media_kind(source.first(std::min<size_t>(source.size(), 4096)));
  const bool larger = shape && is_larger(*shape, conversion_.max_side);
  switch (conversion_.form) {
    case ImageForm::keep:
      if (conversion_.max_side > 0 && !shape)
        return Status(Code::corrupt,
                      source.empty() ? "an empty file is no image" : "no image, or its header is damaged");
      return larger ? to_jpeg(source, out) : to_baseline(source, out);
    case ImageForm::jpeg:
      PACKTRAIN_TRY(to_jpeg(source, out));
      if (kind != MediaKind::jpeg || larger || out.size() < source.size()) return {};
      out.clear();
      return to_baseline(source, out);
    case ImageForm::raw: {
      PACKTRAIN_TRY(reader_->read(source, conversion_.max_side, image_));
      if (kind == MediaKind::pnm && !larger) return {};
      PACKTRAIN_ASSIGN(encoded, encode_pnm(image_));
      out = std::move(encoded);
      return {};
    }
  }
  return {};
}

Status ImageConverter::compare(Bytes source, Bytes converted, PixelDifference& difference) {
  PACKTRAIN_TRY(reader_->read(source, conversion_.max_side, image_));
  PACKTRAIN_TRY(reader_->read(converted, 0, other_));
  if (image_.shape != other_.shape)
    return Status(Code::corrupt, "the converted image has another shape than the source");
  for (size_t i = 0; i < image_.pixels.size(); ++i) {
    const auto apart = static_cast<uint32_t>(std::abs(int{image_.pixels[i]} - int{other_.pixels[i]}));
    difference.sum += apart;
    difference.largest = std::max(difference.largest, apart);
  }
  difference.values += image_.pixels.size();
  return {};
}

}  // namespace packtrain
