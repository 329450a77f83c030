// Image transform: an encoded image to numbers in a batch's slot, in one pass. Decodes only what the crop
// needs; results equal torchvision's on Pillow images to one grey level.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "packtrain/decode.h"
#include "packtrain/status.h"

namespace packtrain {

enum class PixelType : uint8_t { uint8, float16, bfloat16, float32 };
enum class PixelLayout : uint8_t { chw, hwc };
size_t pixel_bytes(PixelType type);

enum class CropKind : uint8_t {
  random_resized,  // a random box of random area and shape, resized to the output
  centre,          // the shorter side resized to `resize`, then the middle
  resize,          // the whole image to the output's size, whatever its shape
};

// A plain value: what a user asks for.
struct ImageSpec {
  CropKind crop = CropKind::random_resized;
  uint32_t width = 224, height = 224;  // of the output
  uint32_t resize = 256;               // centre only: the shorter side before the crop
  double scale_low = 0.08, scale_high = 1.0;
  double ratio_low = 3.0 / 4, ratio_high = 4.0 / 3;
  double flip = 0.0;  // how likely it is mirrored
  bool normalise = false;
  std::array<float, 3> mean{0, 0, 0}, deviation{1, 1, 1};  // of pixels in [0, 1]
  bool scale_to_one = true;  // floats are in [0, 1] before mean and deviation; otherwise 0 to 255
  PixelType type = PixelType::uint8;
  PixelLayout layout = PixelLayout::chw;
  bool exif_orientation = false;  // torchvision ignores it
  bool dct_scaling = false;       // decode at 1/2, 1/4, 1/8 where the crop stays larger than the output

  size_t bytes() const { return size_t{3} * width * height * pixel_bytes(type); }
  Status check() const;
};

// What part of an image becomes the output. In pixels of the image as it is seen (after orientation).
struct CropBox {
  double left = 0, top = 0, width = 0,
         height = 0;  // whole numbers but for `centre`, which crops after resizing
  bool mirrored = false;
};
// `key` settles every random choice: see position_key.
CropBox draw_crop(const ImageSpec& spec, uint32_t width, uint32_t height, uint64_t key);

// The instruction sets that this build and this processor can transform images with, the best first;
// "scalar", the reference, is the last. All give the same bits.
std::vector<std::string> kernel_names();

// The kinds of images that ImageReader knows; one whose library was absent when this was built is refused.
struct ImageDecoderInfo {
  MediaKind kind;
  bool compiled_in;
  std::string_view library;  // what it needs, for doctor
  std::string_view package;  // of Debian and Ubuntu, that has it; "" where nothing is needed
};
std::vector<ImageDecoderInfo> image_decoders();

// Decodes and transforms, image after image. Keeps its decoder objects and buffers: in steady state it
// allocates nothing. One thread at a time.
class ImageReader {
 public:
  // `memory`: most bytes for what is held of one image while it is decoded; one that takes more is
  // Code::unsupported. A baseline JPEG and a PNG that is not interlaced are held in rows, whatever their
  // size. `kernels`: one of kernel_names(); empty: the one that the environment's PACKTRAIN_KERNELS names,
  // else the best.
  static Result<std::unique_ptr<ImageReader>> make(const ImageSpec& spec, uint64_t memory = 64 << 20,
                                                   std::string_view kernels = {});
  virtual ~ImageReader() = default;

  // Fills `slot`, which is spec.bytes() long. A damaged image is Code::corrupt, and the slot is undefined
  // then.
  virtual Status read(Bytes encoded, uint64_t key, MutableBytes slot) = 0;
  // Bytes that the last image would have taken, if read() refused it because `memory` is less; else 0.
  virtual uint64_t memory_wanted() const = 0;
  // Oddities of files that were passed over, as Pillow does, since the reader was made.
  virtual uint64_t warnings() const = 0;
};

}  // namespace packtrain
