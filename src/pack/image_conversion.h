// Conversion of images on their way into a dataset: what is asked for, which fields it concerns, and the one
// that does it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pack/catalog.h"
#include "packtrain/decode.h"
#include "packtrain/pack.h"

namespace packtrain {

enum class ImageForm : uint8_t { keep, jpeg, raw };

// What a user asks for. A plain value.
struct ImageConversion {
  ImageForm form = ImageForm::keep;
  int quality = 90;       // of JPEGs that are made
  uint32_t max_side = 0;  // 0: none is too large
  bool baseline = false;

  bool any() const { return form != ImageForm::keep || max_side > 0 || baseline; }
};
Result<ImageConversion> parse_conversion(const PackOptions& options);

// Decides by name which cells are converted and what their fields are called afterwards: the image of each
// sample, which is the first that it has of jpg, jpeg, png, webp, ppm, pgm, pnm. Cells stay sorted by field.
Status mark_images(Catalog& catalog, const ImageConversion& conversion);

// How far two images are apart, in grey levels: sums over all values of all channels.
// What an image holds that 8-bit pixels of colour cannot: of PNG and WebP, from their headers.
struct BeyondPixels {
  bool depth = false, alpha = false;
};
BeyondPixels beyond_pixels(Bytes encoded);

struct PixelDifference {
  uint64_t values = 0, sum = 0;
  uint32_t largest = 0;
};

// Converts image after image; the result depends on the source's bytes and the conversion alone. One thread
// at a time.
class ImageConverter {
 public:
  static Result<ImageConverter> make(const ImageConversion& conversion);

  // `out` stays empty where the source's bytes are to be kept. A source that cannot be decoded is
  // Code::corrupt or Code::unsupported.
  Status convert(Bytes source, std::vector<std::byte>& out);
  // Adds the difference between the source, shrunk as it shall be, and what convert() made of it.
  Status compare(Bytes source, Bytes converted, PixelDifference& difference);

 private:
  explicit ImageConverter(const ImageConversion& conversion, std::unique_ptr<PixelReader> reader)
      : conversion_(conversion), reader_(std::move(reader)) {}
  Status to_jpeg(Bytes source, std::vector<std::byte>& out);
  Status to_baseline(Bytes source, std::vector<std::byte>& out) const;

  ImageConversion conversion_;
  std::unique_ptr<PixelReader> reader_;
  Image image_, other_;
};

}  // namespace packtrain
