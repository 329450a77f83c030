// Raw pixels with a header in front: P6 (RGB) and P5 (grey), of up to 8 bits. Nothing is held but a row.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/pnm_header.h"
#include "decode/pixel_decoder.h"

namespace packtrain {
namespace {

constexpr uint32_t kWhite = 255;
constexpr uint32_t kLargestPnmSide = 1 << 20;

class PnmDecoder final : public PixelDecoder {
 public:
  Result<Frame> open(Bytes encoded) override {
    const auto header = read_pnm_header(encoded);
    if (!header) return Status(Code::corrupt, "no PNM, or its header is cut short");
    if (header->largest > kWhite)
      return Status(Code::unsupported,
                    fmt::format("a PNM with values up to {}; up to 255 are read", header->largest));
    if (header->width > kLargestPnmSide || header->height > kLargestPnmSide)
      return Status(Code::unsupported, fmt::format("a PNM of {} x {} pixels", header->width, header->height));
    const uint64_t rest = encoded.size() - header->bytes;
    if (uint64_t{header->width} * header->height * header->channels > rest)
      return Status(Code::corrupt, "the PNM is cut short: pixels are missing");
    header_ = *header;
    pixels_ = encoded.subspan(header->bytes);
    Frame frame{header->width, header->height, 1};
    frame.form = "a PNM";
    return frame;
  }

  Status read(const Region& region, RowsSink& sink) override {
    const size_t source_bytes = size_t{header_.channels} * header_.width;
    const size_t wanted = size_t{3} * region.width;
    if (row_.size() < wanted + kRowSlack) row_.resize(wanted + kRowSlack);
    set_scale();
    for (uint32_t y = 0; y < region.height; ++y) {
      const size_t at = (size_t{region.top} + y) * source_bytes + size_t{header_.channels} * region.left;
      const auto* from = reinterpret_cast<const uint8_t*>(pixels_.data()) + at;
      const uint8_t* row = row_.data();
      // Where they lie, if what may be read behind a row is there too.
      if (header_.channels == 3 && header_.largest == kWhite && at + wanted + kRowSlack <= pixels_.size()) {
        row = from;
      } else {
        fill_row(from, region.width);
      }
      sink.take_rows(&row, 1);
    }
    return {};
  }

  uint64_t warnings() const override { return 0; }

 private:
  // To white at 255, rounded as Pillow does; what is above white is white.
  void set_scale() {
    if (scaled_for_ == header_.largest) return;
    scaled_for_ = header_.largest;
    for (uint32_t value = 0; value <= kWhite; ++value) {
      const double scaled = std::nearbyint(double(value) / header_.largest * kWhite);
      scale_[value] = static_cast<uint8_t>(std::min<double>(scaled, kWhite));
    }
  }
  void fill_row(const uint8_t* from, uint32_t pixels) {
    uint8_t* to = row_.data();
    if (header_.channels == 3) {
      if (header_.largest == kWhite) {
        std::memcpy(to, from, size_t{3} * pixels);
        return;
      }
      for (size_t i = 0; i < size_t{3} * pixels; ++i) to[i] = scale_[from[i]];
      return;
    }
    for (uint32_t x = 0; x < pixels; ++x, to += 3) to[0] = to[1] = to[2] = scale_[from[x]];
  }

  PnmHeader header_;
  Bytes pixels_;
  std::vector<uint8_t> row_;
  uint32_t scaled_for_ = 0;
  uint8_t scale_[kWhite + 1] = {};
};

}  // namespace

Result<std::vector<std::byte>> encode_pnm(const Image& image) {
  const ImageShape& shape = image.shape;
  if (shape.channels != 1 && shape.channels != 3)
    return Status(Code::invalid, fmt::format("a PNM is made from 1 or 3 channels, not {}", shape.channels));
  if (shape.width == 0 || shape.height == 0 ||
      image.pixels.size() != uint64_t{shape.width} * shape.height * shape.channels)
    return Status(Code::invalid, "the number of pixels does not fit the shape");
  const std::string header =
      fmt::format("P{}\n{} {}\n255\n", shape.channels == 1 ? 5 : 6, shape.width, shape.height);
  std::vector<std::byte> encoded(header.size() + image.pixels.size());
  std::memcpy(encoded.data(), header.data(), header.size());
  std::memcpy(encoded.data() + header.size(), image.pixels.data(), image.pixels.size());
  return encoded;
}

std::unique_ptr<PixelDecoder> make_pnm_decoder() { return std::make_unique<PnmDecoder>(); }

}  // namespace packtrain
