#include "columns.h"

#include "pixels.h"

namespace packtrain::bind {
namespace {

// The words are made once; with the GIL, which guards them. Never let go of: they are needed up to the end.
nb::handle word(const char* name) { return PyUnicode_InternFromString(name); }

void put(nb::dict& columns, nb::handle name, const nb::object& column) {
  if (PyDict_SetItem(columns.ptr(), name.ptr(), column.ptr()) != 0) throw nb::python_error();
}

}  // namespace

nb::object image_on(nb::handle owner, const Batch& batch, const ImageSpec* spec) {
  if (!spec) return nb::none();
  const bool planes_first = spec->layout == PixelLayout::chw;
  const size_t shape[4] = {batch.size(), planes_first ? 3 : spec->height,
                           planes_first ? spec->height : spec->width, planes_first ? spec->width : 3};
  return array_on(owner, batch.images().data(), shape, dtype_of(spec->type));
}

nb::dict columns_on(nb::handle owner, const Batch& batch, const ImageSpec* spec, const ColumnMask& mask) {
  static const nb::handle image = word("image"), label = word("label"), index = word("index"),
                          source = word("source"), padding = word("padding"), replaced = word("replaced");
  nb::dict columns;
  if (mask.image) put(columns, image, image_on(owner, batch, spec));
  put(columns, label, numbers_on(owner, batch.labels()));
  put(columns, index, numbers_on(owner, batch.indices()));
  if (mask.source) put(columns, source, numbers_on(owner, batch.sources()));
  if (mask.padding) put(columns, padding, numbers_on(owner, batch.padding(), nb::dtype<bool>()));
  if (mask.replaced) put(columns, replaced, numbers_on(owner, batch.replaced(), nb::dtype<bool>()));
  return columns;
}

}  // namespace packtrain::bind
