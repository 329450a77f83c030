// WebP, lossy and lossless, through libwebp, to RGB; alpha is dropped. The library wants the whole image, so
// that it is held whole. The only file that includes webp/decode.h.
#include <webp/decode.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/little_endian.h"
#include "decode/exif.h"
#include "decode/pixel_decoder.h"

namespace packtrain {

namespace {

// The EXIF chunk of an extended file; empty if there is none.
Bytes exif_chunk(Bytes encoded) {
  size_t at = 12;  // behind RIFF, size, WEBP
  while (at + 8 <= encoded.size()) {
    const uint64_t length = load_le<uint32_t>(encoded.data() + at + 4);
    const Bytes body = encoded.subspan(at + 8, std::min<uint64_t>(length, encoded.size() - at - 8));
    if (std::memcmp(encoded.data() + at, "EXIF", 4) == 0) {
      // Some programs keep the tag that a JPEG would have in front.
      const bool tagged = body.size() > 6 && std::memcmp(body.data(), "Exif\0\0", 6) == 0;
      return tagged ? body.subspan(6) : body;
    }
    if (length > encoded.size()) break;
    at += 8 + length + length % 2;
  }
  return {};
}

class WebpDecoder final : public PixelDecoder {
 public:
  Result<Frame> open(Bytes encoded) override {
    encoded_ = encoded;
    WebPBitstreamFeatures features;
    const VP8StatusCode status = WebPGetFeatures(data(), encoded.size(), &features);
    if (status != VP8_STATUS_OK)
      return Status(Code::corrupt, fmt::format("cannot read the WebP's header (libwebp: {})", int(status)));
    if (features.has_animation)
      return Status(Code::unsupported, "an animated WebP: only still images are decoded");
    frame_ = {static_cast<uint32_t>(features.width), static_cast<uint32_t>(features.height), 1};
    constexpr int kLossless = 2;
    // The pixels, and for lossless ones the library's own copy of four bytes each.
    const uint64_t pixels = uint64_t{frame_.width} * frame_.height;
    frame_.memory = pixels * 3 + (features.format == kLossless || features.has_alpha ? pixels * 4 : 0);
    frame_.form = "a WebP";
    frame_.smaller_form = "as baseline JPEG";
    frame_.orientation = exif_orientation(exif_chunk(encoded));
    return frame_;
  }

  Status read(const Region& region, RowsSink& sink) override {
    const size_t row_bytes = size_t{3} * frame_.width;
    const size_t bytes = row_bytes * frame_.height;
    if (rows_.size() < bytes + kRowSlack) rows_.resize(bytes + kRowSlack);
    if (WebPDecodeRGBInto(data(), encoded_.size(), rows_.data(), bytes, static_cast<int>(row_bytes)) ==
        nullptr)
      return Status(Code::corrupt, "cannot decode the WebP: its data is damaged or cut short");
    for (uint32_t y = 0; y < region.height; ++y) {
      const uint8_t* row = &rows_[(size_t{region.top} + y) * row_bytes + size_t{3} * region.left];
      sink.take_rows(&row, 1);
    }
    return {};
  }

  uint64_t warnings() const override { return 0; }

 private:
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(encoded_.data()); }

  Bytes encoded_;
  Frame frame_;
  std::vector<uint8_t> rows_;
};

}  // namespace

std::unique_ptr<PixelDecoder> make_webp_decoder() { return std::make_unique<WebpDecoder>(); }

}  // namespace packtrain
