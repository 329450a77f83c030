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
  if (kind == MediaKind::gif || kind == MediaKind::bmp)
    return Status(Code::unsupported, fmt::format("{} images are not decoded; JPEG, PNG, WebP and PNM are",
                                                 media_kind_name(kind)));
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
