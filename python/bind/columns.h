// The columns of a batch: a dict of arrays on its memory.
#pragma once

#include <span>

#include "arrays.h"
#include "packtrain/load.h"

namespace packtrain::bind {

// What a batch holds beside its fields. As a mask, since it is the same for every batch.
struct ColumnMask {
  bool image, source, padding, replaced;
};

// `owner` keeps the batch alive. `spec`: null without images, which are None then.
nb::object image_on(nb::handle owner, const Batch& batch, const ImageSpec* spec);
template <class T>
nb::object numbers_on(nb::handle owner, std::span<T> values, nb::dlpack::dtype type = nb::dtype<T>()) {
  const size_t shape[1] = {values.size()};
  return array_on(owner, values.data(), shape, type);
}
nb::dict columns_on(nb::handle owner, const Batch& batch, const ImageSpec* spec, const ColumnMask& mask);

}  // namespace packtrain::bind
