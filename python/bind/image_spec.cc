// include/packtrain/transform.h: what a user asks of an image.
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>

#include "bind.h"
#include "packtrain/transform.h"

namespace packtrain::bind {

namespace {

CropKind crop_of(const std::string& name) {
  if (name == "random_resized") return CropKind::random_resized;
  if (name == "centre") return CropKind::centre;
  if (name == "resize") return CropKind::resize;
  raise(Status(Code::invalid, "there is no crop '" + name + "'; choose random_resized, centre or resize"));
}

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

using Triple = std::array<float, 3>;

}  // namespace

void bind_image_spec(nb::module_& module) {
  nb::class_<ImageSpec>(
      module, "ImageSpec",
      "What becomes of an image: crop, size, numbers. Made by the classes RandomResizedCrop, "
      "CenterCrop and Resize.")
      .def(
          "__init__",
          [](ImageSpec* self, const std::string& crop, uint32_t width, uint32_t height, uint32_t resize,
             std::pair<double, double> scale, std::pair<double, double> ratio, double flip,
             std::optional<Triple> mean, std::optional<Triple> deviation, const std::string& dtype,
             const std::string& layout, bool exif, bool dct_scaling) {
            ImageSpec spec;
            spec.crop = crop_of(crop);
            spec.width = width;
            spec.height = height;
            spec.resize = resize;
            std::tie(spec.scale_low, spec.scale_high) = scale;
            std::tie(spec.ratio_low, spec.ratio_high) = ratio;
            spec.flip = flip;
            spec.normalise = mean.has_value() || deviation.has_value();
            if (mean) spec.mean = *mean;
            if (deviation) spec.deviation = *deviation;
            spec.type = type_of(dtype);
            spec.layout = layout_of(layout);
            spec.exif_orientation = exif;
            spec.dct_scaling = dct_scaling;
            check(spec.check());
            new (self) ImageSpec(spec);
          },
          nb::kw_only(), nb::arg("crop"), nb::arg("width"), nb::arg("height"), nb::arg("resize") = 256,
          nb::arg("scale") = std::pair(0.08, 1.0), nb::arg("ratio") = std::pair(3.0 / 4, 4.0 / 3),
          nb::arg("flip") = 0.0, nb::arg("mean") = nb::none(), nb::arg("std") = nb::none(),
          nb::arg("dtype") = "float32", nb::arg("layout") = "CHW", nb::arg("exif") = false,
          nb::arg("dct_scaling") = false)
      .def_ro("width", &ImageSpec::width)
      .def_ro("height", &ImageSpec::height)
      .def_prop_ro("nbytes", &ImageSpec::bytes, "What one image takes in a batch.");
}

}  // namespace packtrain::bind
