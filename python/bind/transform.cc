// include/packtrain/transform.h: one image at a time, by the code that a loader runs. The specs themselves
// are bound in image_spec.cc.
#include "packtrain/transform.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>

#include "gil.h"
#include "packtrain/place.h"
#include "pixels.h"

namespace packtrain::bind {

namespace {

using Box = std::tuple<double, double, double, double, bool>;

std::array<size_t, 3> shape_of(const ImageSpec& spec) {
  if (spec.layout == PixelLayout::chw) return {3, spec.height, spec.width};
  return {spec.height, spec.width, 3};
}

constexpr uint64_t kUsualMemory = uint64_t{64} << 20;

nb::ndarray<nb::numpy> transform_image(const nb::bytes& data, const ImageSpec& spec, uint64_t key,
                                       std::optional<uint64_t> memory) {
  const auto reader = value_or_raise(ImageReader::make(spec, memory.value_or(kUsualMemory)));
  auto* pixels = new std::byte[spec.bytes()];
  const nb::capsule owner(pixels, [](void* array) noexcept { delete[] static_cast<std::byte*>(array); });
  const Bytes encoded(reinterpret_cast<const std::byte*>(data.c_str()), data.size());
  check([&]() -> Status {
    const WithoutGil free;
    const MutableBytes slot(pixels, spec.bytes());
    const Status status = reader->read(encoded, key, slot);
    if (memory || reader->memory_wanted() == 0) return status;
    // It is large: only now it is worth asking how much there is.
    const auto larger = ImageReader::make(spec, granted().memory_available / 2);
    if (!larger.ok()) return larger.status();
    return (*larger)->read(encoded, key, slot);
  }());
  const auto shape = shape_of(spec);
  return {pixels, shape.size(), shape.data(), owner, nullptr, dtype_of(spec.type)};
}

Box crop_box(const ImageSpec& spec, uint32_t width, uint32_t height, uint64_t key) {
  if (width == 0 || height == 0) raise(Status(Code::invalid, "an image has at least one pixel"));
  const CropBox box = draw_crop(spec, width, height, key);
  return {box.left, box.top, box.width, box.height, box.mirrored};
}

}  // namespace

void bind_transform(nb::module_& module) {
  module.def(
      "image_decoders",
      [] {
        nb::typed<nb::dict, nb::str, bool> compiled_in;
        for (const ImageDecoderInfo& decoder : image_decoders())
          compiled_in[to_text(media_kind_name(decoder.kind))] = decoder.compiled_in;
        return compiled_in;
      },
      "Every kind of image, and whether its decoder is compiled in.");
  module.def("kernel_names", &kernel_names,
             "The instruction sets that images can be transformed with here, the best first.");
  module.def(
      "transform_image", transform_image, nb::arg("data"), nb::arg("spec"), nb::kw_only(), nb::arg("key") = 0,
      nb::arg("memory") = nb::none(),
      nb::sig("def transform_image(data: bytes, spec: ImageSpec, *, key: int = 0, memory: int | None = None) "
              "-> numpy.typing.NDArray[typing.Any]"),
      "Decodes and transforms one image, the bytes of a JPEG, PNG, WebP or PNM file, as a loader does. "
      "`key` settles\n"
      "every random choice. `memory`: the most bytes that may be held of it while it is decoded; none: "
      "half of\n"
      "what is available. bfloat16 comes as its bits, in uint16.");
  module.def(
      "media_kind",
      [](const nb::bytes& head) {
        return to_text(media_kind_name(
            media_kind(Bytes(reinterpret_cast<const std::byte*>(head.c_str()), head.size()))));
      },
      nb::arg("head"), "What the first bytes of a file say it is: jpeg, png, webp, wav, …, or unknown.");
  module.def("crop_box", crop_box, nb::arg("spec"), nb::arg("width"), nb::arg("height"), nb::kw_only(),
             nb::arg("key") = 0,
             "(left, top, width, height, mirrored): what part of an image of this size becomes the result.");
}

}  // namespace packtrain::bind
