#include "decode/pixel_decoders.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/pnm_header.h"
#include "base/words.h"
#include "packtrain/transform.h"

namespace packtrain {
namespace {

// Decoders of libraries that were absent when this was built.
#ifndef PACKTRAIN_HAVE_PNG
constexpr std::unique_ptr<PixelDecoder> (*make_png_decoder)() = nullptr;
#endif
#ifndef PACKTRAIN_HAVE_WEBP
constexpr std::unique_ptr<PixelDecoder> (*make_webp_decoder)() = nullptr;
#endif

struct ImageFormat {
  MediaKind kind;
  std::unique_ptr<PixelDecoder> (*make)();  // none where the library was absent
  std::string_view library, package;
};
constexpr ImageFormat kFormats[] = {
    {MediaKind::jpeg, make_jpeg_decoder, "libjpeg-turbo", "libturbojpeg0-dev"},
    {MediaKind::png, make_png_decoder, "libpng", "libpng-dev"},
    {MediaKind::webp, make_webp_decoder, "libwebp", "libwebp-dev"},
    {MediaKind::pnm, make_pnm_decoder, "its own", ""}};
static_assert(std::size(kFormats) == kImageFormats);

using namespace std::string_view_literals;

struct Magic {
  size_t at;
  std::string_view bytes, name;
};
// Images that no decoder here is for.
constexpr Magic kUndecoded[] = {{0, "GIF87a"sv, "GIF"},
                                {0, "GIF89a"sv, "GIF"},
                                {0, "II*\0"sv, "TIFF"},
                                {0, "MM\0*"sv, "TIFF"},
                                {0, "II+\0"sv, "BigTIFF"},
                                {0, "MM\0+"sv, "BigTIFF"},
                                {4, "ftypavi"sv, "AVIF"},
                                {4, "ftyphe"sv, "HEIC"},
                                {4, "ftypmif1"sv, "HEIF"},
                                {4, "ftypmsf1"sv, "HEIF"},
                                {0, "\xFF\x0A"sv, "JPEG XL"},
                                {0, "\0\0\0\x0CJXL \r\n\x87\n"sv, "JPEG XL"},
                                {0, "\xFF\x4F\xFF\x51"sv, "JPEG 2000"},
                                {0, "\0\0\0\x0CjP  \r\n\x87\n"sv, "JPEG 2000"}};

// The name of such an image; empty for anything else.
std::string_view undecoded(Bytes encoded, MediaKind kind) {
  if (kind == MediaKind::bmp) return "BMP";
  const std::string_view text(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  for (const Magic& magic : kUndecoded)
    if (text.size() > magic.at && text.substr(magic.at).starts_with(magic.bytes)) return magic.name;
  return {};
}

}  // namespace

Result<PixelDecoder*> PixelDecoders::find(Bytes encoded) {
  const MediaKind kind = media_kind(encoded.first(std::min(encoded.size(), kPnmHeadBytes)));
  for (size_t i = 0; i < std::size(kFormats); ++i) {
    if (kFormats[i].kind != kind) continue;
    if (kFormats[i].make == nullptr)
      return Status(
          Code::unsupported,
          fmt::format("this build of packtrain reads no {}: {} was absent when it was built; install "
                      "{} and build it again",
                      media_kind_name(kind), kFormats[i].library, kFormats[i].package));
    if (!decoders_[i]) decoders_[i] = kFormats[i].make();
    return decoders_[i].get();
  }
  if (encoded.empty()) return Status(Code::corrupt, "an empty file is no image");
  if (const std::string_view name = undecoded(encoded, kind); !name.empty())
    return Status(Code::unsupported,
                  fmt::format("{} images are not decoded; JPEG, PNG, WebP and PNM are: convert them before "
                              "they are packed",
                              name));
  return Status(Code::corrupt, fmt::format("no image: its first bytes say {}", media_kind_name(kind)));
}

uint64_t PixelDecoders::warnings() const {
  uint64_t sum = 0;
  for (const auto& decoder : decoders_)
    if (decoder) sum += decoder->warnings();
  return sum;
}

Status check_memory(const Frame& frame, uint64_t memory) {
  if (frame.memory <= memory) return {};
  return Status(Code::unsupported,
                fmt::format("{} of {} x {} pixels takes {} while it is decoded, and {} are allowed; stored "
                            "{} it would take little",
                            frame.form, frame.width, frame.height, bytes_in_words(frame.memory),
                            bytes_in_words(memory), frame.smaller_form));
}

std::vector<ImageDecoderInfo> image_decoders() {
  std::vector<ImageDecoderInfo> infos;
  for (const ImageFormat& format : kFormats)
    infos.push_back({format.kind, format.make != nullptr, format.library, format.package});
  return infos;
}

}  // namespace packtrain
