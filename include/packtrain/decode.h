// Decoder: bytes to numbers, and the encoders that make photographs for synth. Formats are told by content.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "packtrain/media.h"
#include "packtrain/status.h"

namespace packtrain {

struct ImageShape {
  uint32_t width = 0, height = 0;
  uint32_t channels = 0;
  bool operator==(const ImageShape&) const = default;
};
// From the header alone; nothing if it is no image or the header is cut short. Never decodes.
std::optional<ImageShape> image_shape(Bytes head);

// 8-bit pixels, rows from the top, channels interleaved (RGB or grey).
struct Image {
  ImageShape shape;
  std::vector<uint8_t> pixels;
};

enum class Chroma : uint8_t { s420, s422, s444, grey };
Result<std::vector<std::byte>> encode_jpeg(const Image& image, int quality, Chroma chroma);
// `largest_side` > 0: scaled down while decoding, to the smallest of libjpeg's scales that is not below it.
Result<Image> decode_jpeg(Bytes encoded, uint32_t largest_side = 0);
// A binary PGM (one channel) or PPM (three): a header of a few bytes, and the pixels as they are.
Result<std::vector<std::byte>> encode_pnm(const Image& image);

// Recodes a progressive JPEG as a baseline one with the same coefficients, so that every pixel stays;
// comments and application segments are kept. `out` is left empty where the file better stays as it is: it is
// not progressive, or its last scans were left away, which decoders smooth over. A damaged one is
// Code::corrupt; one whose coefficients take more than `memory` bytes Code::unsupported.
Status recode_as_baseline(Bytes jpeg, uint64_t memory, std::vector<std::byte>& out);

// Whole images to pixels, of every kind that is decoded. Grey stays one channel, alpha is dropped, EXIF's
// orientation is not applied. Keeps its decoders from image to image. One thread at a time.
class PixelReader {
 public:
  // `memory`: most bytes for one image, its pixels and what is held while it is decoded; one that takes more
  // is Code::unsupported. `kernels`: as for ImageReader.
  static Result<std::unique_ptr<PixelReader>> make(uint64_t memory, std::string_view kernels = {});
  virtual ~PixelReader() = default;
  // `max_side` > 0: the longer side becomes that long, if it is longer, by antialiased bilinear resizing.
  virtual Status read(Bytes encoded, uint32_t max_side, Image& image) = 0;
};
// The size that it gives: the shorter side in proportion, rounded, at least 1.
ImageShape within_side(ImageShape shape, uint32_t max_side);

}  // namespace packtrain
