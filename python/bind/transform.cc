// include/packtrain/transform.h: what a user asks of an image, as plain specs, and one image at a time.
#include "packtrain/transform.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <array>

#include "bind.h"

namespace packtrain::bind {

namespace {

using Side = std::variant<uint32_t, std::pair<uint32_t, uint32_t>>;  // a square, or (height, width)
using Range = std::pair<double, double>;
using Triple = std::optional<std::array<float, 3>>;
using Box = std::tuple<double, double, double, double, bool>;

// One Python class a kind, so that a spec says in its name what it does.
struct RandomResizedCrop : ImageSpec {};
struct CenterCrop : ImageSpec {};
struct Resize : ImageSpec {};

PixelType type_of(const std::string& name) {
  if (name == "uint8") return PixelType::uint8;
  if (name == "float16") return PixelType::float16;
  if (name == "bfloat16") return PixelType::bfloat16;
  if (name == "float32") return PixelType::float32;
  raise(Status(Code::invalid, "an image's dtype is uint8, float16, bfloat16 or float32, not '" + name + "'"));
}

PixelLayout layout_of(const std::string& name) {
  if (name == "CHW") return PixelLayout::chw;
  if (name == "HWC") return PixelLayout::hwc;
  raise(Status(Code::invalid, "an image's layout is CHW or HWC, not '" + name + "'"));
}

// What every kind of transform is told.
struct Output {
  const Side& size;
  double flip;
  const Triple &mean, &deviation;
  const std::string &type, &layout;
  bool exif_orientation, dct_scaling;
};

template <class Spec>
void finish(Spec* self, Spec spec, const Output& output) {
  if (const auto* side = std::get_if<uint32_t>(&output.size)) {
    spec.width = spec.height = *side;
  } else {
    std::tie(spec.height, spec.width) = std::get<1>(output.size);
  }
  spec.flip = output.flip;
  if (output.mean.has_value() != output.deviation.has_value())
    raise(Status(Code::invalid, "mean= and std= come together: give both or neither"));
  spec.normalise = output.mean.has_value();
  if (spec.normalise) {
    spec.mean = *output.mean;
    spec.deviation = *output.deviation;
  }
  spec.type = type_of(output.type);
  spec.layout = layout_of(output.layout);
  spec.exif_orientation = output.exif_orientation;
  spec.dct_scaling = output.dct_scaling;
  check(spec.check());
  new (self) Spec(spec);
}

std::array<size_t, 3> shape_of(const ImageSpec& spec) {
  if (spec.layout == PixelLayout::chw) return {3, spec.height, spec.width};
  return {spec.height, spec.width, 3};
}

nb::dlpack::dtype dtype_of(PixelType type) {
  switch (type) {
    case PixelType::uint8:
      return nb::dtype<uint8_t>();
    case PixelType::float16:
      return {uint8_t(nb::dlpack::dtype_code::Float), 16, 1};
    case PixelType::bfloat16:
      return nb::dtype<uint16_t>();  // NumPy has no such type: its bits
    case PixelType::float32:
      break;
  }
  return nb::dtype<float>();
}

nb::ndarray<nb::numpy> transform_image(const ImageSpec& spec, const nb::bytes& data, uint64_t key,
                                       uint64_t memory) {
  const auto reader = value_or_raise(ImageReader::make(spec, memory));
  auto* pixels = new std::byte[spec.bytes()];
  const nb::capsule owner(pixels, [](void* array) noexcept { delete[] static_cast<std::byte*>(array); });
  const Bytes encoded(reinterpret_cast<const std::byte*>(data.c_str()), data.size());
  check([&] {
    const nb::gil_scoped_release nogil;
    return reader->read(encoded, key, MutableBytes(pixels, spec.bytes()));
  }());
  const auto shape = shape_of(spec);
  return {pixels, shape.size(), shape.data(), owner, nullptr, dtype_of(spec.type)};
}

Box crop_box(const ImageSpec& spec, uint32_t width, uint32_t height, uint64_t key) {
  if (width == 0 || height == 0) raise(Status(Code::invalid, "an image has at least one pixel"));
  const CropBox box = draw_crop(spec, width, height, key);
  return {box.left, box.top, box.width, box.height, box.mirrored};
}

constexpr const char* kCommonArguments =
    "\n\n`size`: a side, or (height, width). `flip`: how likely the result is mirrored. `mean`, `std`: of "
    "each channel, of\n"
    "pixels in [0, 1]. `dtype`: uint8 (0 to 255), or float32, float16, bfloat16 (0 to 1, then normalised). "
    "`layout`: CHW\n"
    "or HWC. `exif_orientation`: turn the image upright first (torchvision does not). `dct_scaling`: decode "
    "large JPEGs\n"
    "at a half, a quarter or an eighth, which is faster and not exact.";

std::string documented(const char* text) { return std::string(text) + kCommonArguments; }

}  // namespace

#define PACKTRAIN_OUTPUT_ARGUMENTS                                                         \
  nb::arg("mean") = nb::none(), nb::arg("std") = nb::none(), nb::arg("dtype") = "float32", \
  nb::arg("layout") = "CHW", nb::arg("exif_orientation") = false, nb::arg("dct_scaling") = false

void bind_transform(nb::module_& module) {
  nb::class_<ImageSpec>(module, "ImageSpec",
                        "What becomes of an image: a RandomResizedCrop, CenterCrop or Resize. Immutable.")
      .def_ro("width", &ImageSpec::width)
      .def_ro("height", &ImageSpec::height)
      .def_prop_ro("nbytes", &ImageSpec::bytes, "What one image takes in a batch.")
      .def("apply", transform_image, nb::arg("data"), nb::kw_only(), nb::arg("key") = 0,
           nb::arg("memory") = 64 << 20,
           "Decodes and transforms one image, the bytes of a JPEG, PNG or WebP file, as a loader does. `key` "
           "settles\n"
           "every random choice. `memory`: the most bytes of its pixels that may be held while it is "
           "decoded. bfloat16\n"
           "comes as its bits, in uint16.")
      .def("box", crop_box, nb::arg("width"), nb::arg("height"), nb::kw_only(), nb::arg("key") = 0,
           "(left, top, width, height, mirrored): what part of an image of this size becomes the result.");

  nb::class_<RandomResizedCrop, ImageSpec>(
      module, "RandomResizedCrop",
      documented(
          "A box of random area and shape, resized: torchvision's RandomResizedCrop. `scale`: share of the\n"
          "image's area. `ratio`: width over height.")
          .c_str())
      .def(
          "__init__",
          [](RandomResizedCrop* self, const Side& size, Range scale, Range ratio, double flip,
             const Triple& mean, const Triple& deviation, const std::string& type, const std::string& layout,
             bool exif, bool dct) {
            RandomResizedCrop spec;
            spec.crop = CropKind::random_resized;
            std::tie(spec.scale_low, spec.scale_high) = scale;
            std::tie(spec.ratio_low, spec.ratio_high) = ratio;
            finish(self, spec, {size, flip, mean, deviation, type, layout, exif, dct});
          },
          nb::arg("size"), nb::kw_only(), nb::arg("scale") = Range(0.08, 1.0),
          nb::arg("ratio") = Range(3.0 / 4, 4.0 / 3), nb::arg("flip") = 0.5, PACKTRAIN_OUTPUT_ARGUMENTS);

  nb::class_<CenterCrop, ImageSpec>(
      module, "CenterCrop",
      documented(
          "The shorter side resized to `resize`, then the middle: torchvision's Resize and CenterCrop.")
          .c_str())
      .def(
          "__init__",
          [](CenterCrop* self, const Side& size, uint32_t resize, double flip, const Triple& mean,
             const Triple& deviation, const std::string& type, const std::string& layout, bool exif,
             bool dct) {
            CenterCrop spec;
            spec.crop = CropKind::centre;
            spec.resize = resize;
            finish(self, spec, {size, flip, mean, deviation, type, layout, exif, dct});
          },
          nb::arg("size"), nb::kw_only(), nb::arg("resize") = 256, nb::arg("flip") = 0.0,
          PACKTRAIN_OUTPUT_ARGUMENTS);

  nb::class_<Resize, ImageSpec>(
      module, "Resize",
      documented("The whole image to this size, whatever its shape: torchvision's Resize((h, w)).").c_str())
      .def(
          "__init__",
          [](Resize* self, const Side& size, double flip, const Triple& mean, const Triple& deviation,
             const std::string& type, const std::string& layout, bool exif, bool dct) {
            Resize spec;
            spec.crop = CropKind::resize;
            finish(self, spec, {size, flip, mean, deviation, type, layout, exif, dct});
          },
          nb::arg("size"), nb::kw_only(), nb::arg("flip") = 0.0, PACKTRAIN_OUTPUT_ARGUMENTS);
}

}  // namespace packtrain::bind
