// JPEG through libjpeg-turbo: the only file that knows of it. Thread-safe: each thread keeps a handle of its
// own.
#include <turbojpeg.h>

#include <algorithm>
#include <memory>
#include <string>

#include "decode/jpeg_header.h"
#include "packtrain/decode.h"

namespace packtrain {

namespace {

constexpr uint32_t kLargestSide = 65500;                  // what libjpeg takes
constexpr uint64_t kLargestPixels = uint64_t{256} << 20;  // a header may claim 4 Gpixel in 100 bytes

// A progressive file may hold endless empty scans; older versions of the library cannot limit them.
#ifdef TJFLAG_LIMITSCANS
constexpr int kDecodeFlags = TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS;
#else
constexpr int kDecodeFlags = TJFLAG_ACCURATEDCT;
#endif

struct DestroyHandle {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using Handle = std::unique_ptr<void, DestroyHandle>;

// Making a handle costs more than a small image: one per thread, made at first use.
tjhandle thread_compressor() {
  thread_local Handle handle(tjInitCompress());
  return handle.get();
}
tjhandle thread_decompressor() {
  thread_local Handle handle(tjInitDecompress());
  return handle.get();
}

int sampling_of(Chroma chroma) {
  switch (chroma) {
    case Chroma::s420:
      return TJSAMP_420;
    case Chroma::s422:
      return TJSAMP_422;
    case Chroma::s444:
      return TJSAMP_444;
    case Chroma::grey:
      break;
  }
  return TJSAMP_GRAY;
}

// Oddities that leave every pixel in place: real photo collections hold such files. Told by the message, as
// the library's code for a warning is also what it gives for an error that came after one.
bool is_harmless(std::string_view message) {
  for (const std::string_view oddity : {"extraneous bytes before marker", "unknown JFIF revision number",
                                        "Unknown Adobe color transform code"})
    if (message.find(oddity) != std::string_view::npos) return true;
  return false;
}

uint8_t times(uint32_t a, uint32_t b) { return static_cast<uint8_t>((a * b + 127) / 255); }

// To the plain RGB that a printer's ink on white paper gives, in place; no colour profile is applied.
void cmyk_to_rgb(std::vector<uint8_t>& pixels, bool inverted) {
  const size_t count = pixels.size() / 4;
  const uint8_t flip = inverted ? 0 : 255;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* from = &pixels[i * 4];
    const uint8_t white = from[3] ^ flip;
    const uint8_t red = times(from[0] ^ flip, white), green = times(from[1] ^ flip, white),
                  blue = times(from[2] ^ flip, white);
    uint8_t* to = &pixels[i * 3];
    to[0] = red;
    to[1] = green;
    to[2] = blue;
  }
  pixels.resize(count * 3);
}

// The smallest of libjpeg's scales that leaves the larger side at `least` or above; 1/1 if none does.
tjscalingfactor choose_scale(uint32_t largest_side, uint32_t least) {
  tjscalingfactor best{1, 1};
  int count = 0;
  const tjscalingfactor* factors = tjGetScalingFactors(&count);
  for (int i = 0; i < count; ++i) {
    const tjscalingfactor factor = factors[i];
    const bool smaller = factor.num * best.denom < best.num * factor.denom;
    if (smaller && static_cast<uint32_t>(TJSCALED(static_cast<int>(largest_side), factor)) >= least)
      best = factor;
  }
  return best;
}

}  // namespace

Result<std::vector<std::byte>> encode_jpeg(const Image& image, int quality, Chroma chroma) {
  const ImageShape& shape = image.shape;
  if (shape.channels != 1 && shape.channels != 3)
    return Status(Code::invalid,
                  "a JPEG is made from 1 or 3 channels, not " + std::to_string(shape.channels));
  if (shape.width == 0 || shape.height == 0 || shape.width > kLargestSide || shape.height > kLargestSide)
    return Status(Code::invalid, "a JPEG's sides are between 1 and 65500 pixels");
  if (image.pixels.size() != uint64_t{shape.width} * shape.height * shape.channels)
    return Status(Code::invalid, "the number of pixels does not fit the shape");
  if (quality < 1 || quality > 100) return Status(Code::invalid, "JPEG quality is between 1 and 100");
  const tjhandle handle = thread_compressor();
  if (handle == nullptr) return Status(Code::no_room, "no memory for a JPEG encoder");

  const int width = static_cast<int>(shape.width), height = static_cast<int>(shape.height);
  const int sampling = sampling_of(shape.channels == 1 ? Chroma::grey : chroma);
  const int format = shape.channels == 1 ? TJPF_GRAY : TJPF_RGB;
  std::vector<std::byte> encoded(tjBufSize(width, height, sampling));
  auto* buffer = reinterpret_cast<unsigned char*>(encoded.data());
  unsigned long bytes = encoded.size();
  // The accurate DCT: its SIMD and C versions agree to the bit, so that every machine writes the same file.
  constexpr int kFlags = TJFLAG_NOREALLOC | TJFLAG_ACCURATEDCT;
  if (tjCompress2(handle, image.pixels.data(), width, 0, height, format, &buffer, &bytes, sampling, quality,
                  kFlags) != 0)
    return Status(Code::invalid, std::string("cannot encode as JPEG: ") + tjGetErrorStr2(handle));
  encoded.resize(bytes);
  return encoded;
}

Result<Image> decode_jpeg(Bytes encoded, uint32_t largest_side) {
  const auto header = read_jpeg_header(encoded);
  if (!header) return Status(Code::corrupt, "no JPEG, or its header is cut short");
  const ImageShape& full = header->shape;
  const bool cmyk = full.channels == 4;
  if (header->bits != 8 || (full.channels != 1 && full.channels != 3 && !cmyk))
    return Status(Code::unsupported, "a JPEG of " + std::to_string(full.channels) + " components of " +
                                         std::to_string(header->bits) + " bits; 1, 3 or 4 of 8 are read");
  if (full.width > kLargestSide || full.height > kLargestSide ||
      uint64_t{full.width} * full.height > kLargestPixels)
    return Status(Code::unsupported, "a JPEG of " + std::to_string(full.width) + " x " +
                                         std::to_string(full.height) + " pixels; 256 Mpixel are the limit");
  const tjhandle handle = thread_decompressor();
  if (handle == nullptr) return Status(Code::no_room, "no memory for a JPEG decoder");

  tjscalingfactor scale{1, 1};
  if (largest_side > 0) scale = choose_scale(std::max(full.width, full.height), largest_side);
  const int width = TJSCALED(static_cast<int>(full.width), scale);
  const int height = TJSCALED(static_cast<int>(full.height), scale);
  const int format = cmyk ? TJPF_CMYK : full.channels == 1 ? TJPF_GRAY : TJPF_RGB;
  Image image;
  image.pixels.resize(size_t(width) * size_t(height) * full.channels);
  if (tjDecompress2(handle, reinterpret_cast<const unsigned char*>(encoded.data()),
                    static_cast<unsigned long>(encoded.size()), image.pixels.data(), width, 0, height, format,
                    kDecodeFlags) != 0) {
    const std::string reason = tjGetErrorStr2(handle);
    if (!is_harmless(reason)) return Status(Code::corrupt, "cannot decode the JPEG: " + reason);
  }
  if (cmyk) cmyk_to_rgb(image.pixels, header->has_adobe);
  image.shape = {static_cast<uint32_t>(width), static_cast<uint32_t>(height), cmyk ? 3 : full.channels};
  return image;
}

}  // namespace packtrain
