// PixelReader: whole images, shrunk on the way if they are too large.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "base/words.h"
#include "decode/kernel_sets.h"
#include "decode/pixel_decoders.h"
#include "packtrain/decode.h"

namespace packtrain {
namespace {

// Rows into an image, of RGB or of grey as the image is.
class ImageSink final : public RowSink {
 public:
  void start(Image& image) {
    image_ = &image;
    image.pixels.clear();
    // A header may claim much: pages that no row comes for are never touched.
    image.pixels.reserve(size_t{image.shape.width} * image.shape.height * image.shape.channels);
  }
  void take_row(const uint8_t* rgb) override {
    std::vector<uint8_t>& pixels = image_->pixels;
    const uint32_t width = image_->shape.width;
    if (image_->shape.channels == 3) {
      pixels.insert(pixels.end(), rgb, rgb + size_t{3} * width);
      return;
    }
    const size_t at = pixels.size();
    pixels.resize(at + width);
    for (uint32_t x = 0; x < width; ++x) pixels[at + x] = rgb[size_t{3} * x];
  }

 private:
  Image* image_ = nullptr;
};

void set_axis(ResizeAxis& axis, uint32_t length, uint32_t resized) {
  ResizeAxis::Request request;
  request.length = length;
  request.clamp_end = length;
  request.resized = request.outputs = resized;
  axis.set(request);
}

class StandalonePixelReader final : public PixelReader {
 public:
  StandalonePixelReader(uint64_t memory, const KernelSet& kernels)
      : memory_(memory), resizer_(kernels.resample) {}

  Status read(Bytes encoded, uint32_t max_side, Image& image) override {
    PACKTRAIN_ASSIGN(decoder, decoders_.find(encoded));
    PACKTRAIN_ASSIGN(frame, decoder->open(encoded));
    const auto header = image_shape(encoded);
    const bool grey = header && header->channels <= 2;  // the second is alpha
    image.shape = within_side({frame.width, frame.height, grey ? 1u : 3u}, max_side);
    const uint64_t pixels = uint64_t{image.shape.width} * image.shape.height * image.shape.channels;
    PACKTRAIN_TRY(check_memory(frame, memory_));
    if (pixels > memory_ - frame.memory)
      return Status(
          Code::unsupported,
          fmt::format("an image of {} x {} pixels takes {}, and {} are allowed", frame.width, frame.height,
                      bytes_in_words(pixels + frame.memory), bytes_in_words(memory_)));
    set_axis(x_, frame.width, image.shape.width);
    set_axis(y_, frame.height, image.shape.height);
    sink_.start(image);
    const bool down_first = goes_down_first(frame.width, image.shape.width, frame.height, image.shape.height);
    resizer_.start(x_, y_, 0, down_first ? ResizeOrder::down_first : ResizeOrder::across_first, sink_);
    PACKTRAIN_TRY(decoder->read({0, 0, frame.width, frame.height, 1}, resizer_));
    assert(resizer_.done());
    return {};
  }

 private:
  const uint64_t memory_;
  PixelDecoders decoders_;
  ResizeAxis x_, y_;
  RowResizer resizer_;
  ImageSink sink_;
};

}  // namespace

ImageShape within_side(ImageShape shape, uint32_t max_side) {
  const uint32_t longer = std::max(shape.width, shape.height);
  if (max_side == 0 || longer <= max_side) return shape;
  const auto scaled = [&](uint32_t side) {
    return static_cast<uint32_t>(std::max<uint64_t>(1, (uint64_t{side} * max_side + longer / 2) / longer));
  };
  return {scaled(shape.width), scaled(shape.height), shape.channels};
}

Result<std::unique_ptr<PixelReader>> PixelReader::make(uint64_t memory, std::string_view kernels) {
  PACKTRAIN_ASSIGN(set, find_kernels(kernels));
  return std::unique_ptr<PixelReader>(std::make_unique<StandalonePixelReader>(memory, *set));
}

}  // namespace packtrain
