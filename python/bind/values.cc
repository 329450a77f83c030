// include/packtrain/values.h: how a field is decoded, and the arrays that its values become.
#include "packtrain/values.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/variant.h>

#include "arguments.h"
#include "held_batch.h"

namespace packtrain::bind {

namespace {

nb::dlpack::dtype dtype_of(NumberType type) {
  using Code = nb::dlpack::dtype_code;
  const auto of = [&](Code code) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), static_cast<uint8_t>(number_bytes(type) * 8), 1};
  };
  switch (type) {
    case NumberType::boolean:
      return of(Code::Bool);
    case NumberType::int8:
    case NumberType::int16:
    case NumberType::int32:
    case NumberType::int64:
      return of(Code::Int);
    case NumberType::uint8:
    case NumberType::uint16:
    case NumberType::uint32:
    case NumberType::uint64:
      return of(Code::UInt);
    case NumberType::complex64:
    case NumberType::complex128:
      return of(Code::Complex);
    default:
      return of(Code::Float);
  }
}

// `count` of them one behind the other, as one array; none: that value itself.
nb::object make_array(const HeldField& self, size_t place, const ArrayShape& shape,
                      std::optional<size_t> count) {
  size_t sizes[kMostAxes + 1] = {}, axes = 0;
  if (count) sizes[axes++] = *count;
  for (size_t axis = 0; axis < shape.axes; ++axis) sizes[axes++] = shape.sizes[axis];
  const Bytes bytes = self.held->batch->value(self.field, place);
  return nb::cast(nb::ndarray<nb::numpy>(const_cast<std::byte*>(bytes.data()), axes, sizes, self.owner,
                                         nullptr, dtype_of(shape.type), nb::device::cpu::value, 0),
                  nb::rv_policy::reference);
}

nb::object value_of(const HeldField& self, const Position& position) {
  const Batch& batch = *self.held->batch;
  const auto count = static_cast<int64_t>(self.size());
  int64_t place = position.number;
  if (place < 0) place += count;
  if (place < 0 || place >= count) throw nb::index_error("there are fewer samples in the batch");
  const size_t at = self.place_at(static_cast<size_t>(place));
  if (!batch.has(self.field, at)) return nb::none();
  const Bytes bytes = batch.value(self.field, at);
  return nb::cast(nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>(
                      reinterpret_cast<const uint8_t*>(bytes.data()), {bytes.size()}, self.owner),
                  nb::rv_policy::reference);
}

nb::object bytes_of(const HeldField& self) {
  const Batch& batch = *self.held->batch;
  nb::list all;
  for (size_t i = 0; i < self.size(); ++i) {
    const size_t at = self.place_at(i);
    if (!batch.has(self.field, at)) {
      all.append(nb::none());
      continue;
    }
    const Bytes bytes = batch.value(self.field, at);
    all.append(nb::bytes(bytes.data(), bytes.size()));
  }
  return all;
}

HeldField some_of(const HeldField& self, const std::vector<size_t>& places) {
  HeldField some = self;
  some.places.emplace();
  for (const size_t place : places) {
    if (place >= self.size()) throw nb::index_error("there are fewer samples in the batch");
    some.places->push_back(self.place_at(place));
  }
  return some;
}

nb::object arrays_of(const HeldField& self) {
  const Batch& batch = *self.held->batch;
  const size_t count = self.size();
  const BatchArray* const first = count > 0 ? batch.array(self.field, self.place_at(0)) : nullptr;
  bool as_one = first != nullptr;
  for (size_t i = 1; as_one && i < count; ++i) {
    const BatchArray* const array = batch.array(self.field, self.place_at(i));
    as_one = array != nullptr && array->shape == first->shape &&
             batch.value(self.field, self.place_at(i)).data() ==
                 batch.value(self.field, self.place_at(0)).data() + i * first->shape.bytes();
  }
  if (as_one) return make_array(self, self.place_at(0), first->shape, count);
  nb::list all;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = self.place_at(i);
    const Bytes bytes = batch.value(self.field, at);
    if (const BatchArray* const array = batch.array(self.field, at)) {
      all.append(make_array(self, at, array->shape, std::nullopt));
    } else if (batch.has(self.field, at)) {
      all.append(nb::bytes(bytes.data(), bytes.size()));
    } else {
      all.append(nb::none());
    }
  }
  return all;
}

// A number about every value of a field, as an array of its own.
template <class Fact>
nb::object facts_of(const HeldField& self, Fact fact) {
  const Batch& batch = *self.held->batch;
  auto* numbers = new int64_t[std::max<size_t>(self.size(), 1)];
  nb::capsule owner(numbers, [](void* memory) noexcept { delete[] static_cast<int64_t*>(memory); });
  for (size_t i = 0; i < self.size(); ++i) {
    const BatchArray* const array = batch.array(self.field, self.place_at(i));
    numbers[i] = array == nullptr ? 0 : static_cast<int64_t>(fact(*array));
  }
  return nb::cast(nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>(numbers, {self.size()}, owner),
                  nb::rv_policy::reference);
}

nb::object sizes_of(const HeldField& self) {
  const Batch& batch = *self.held->batch;
  auto* numbers = new int64_t[std::max<size_t>(self.size(), 1) * 2];
  nb::capsule owner(numbers, [](void* memory) noexcept { delete[] static_cast<int64_t*>(memory); });
  for (size_t i = 0; i < self.size(); ++i) {
    const BatchArray* const array = batch.array(self.field, self.place_at(i));
    for (size_t axis = 0; axis < 2; ++axis)
      numbers[i * 2 + axis] = array == nullptr ? 0 : static_cast<int64_t>(array->lengths[axis]);
  }
  return nb::cast(nb::ndarray<nb::numpy, int64_t, nb::ndim<2>>(numbers, {self.size(), 2}, owner),
                  nb::rv_policy::reference);
}

ValueKind kind_of(const std::string& name) {
  constexpr std::pair<std::string_view, ValueKind> kKinds[] = {
      {"bytes", ValueKind::bytes},   {"text", ValueKind::text},   {"npy", ValueKind::npy},
      {"raw", ValueKind::raw},       {"array", ValueKind::array}, {"audio", ValueKind::audio},
      {"pickle", ValueKind::pickle}, {"image", ValueKind::image}};
  for (const auto& [known, kind] : kKinds)
    if (known == name) return kind;
  raise(Status(Code::invalid, "there is no kind of values '" + name + "'"));
}

ValueSpec make_spec(const std::string& kind, const std::optional<std::string>& dtype, bool mono,
                    bool exif_orientation, std::optional<PadNumber> pad) {
  ValueSpec spec;
  spec.kind = kind_of(kind);
  if (dtype) {
    const auto type = number_type_of(*dtype);
    if (!type)
      raise(
          Status(Code::invalid, "there is no type of numbers '" + *dtype + "'; they are called as in NumPy"));
    spec.type = *type;
  }
  spec.mono = mono;
  spec.exif_orientation = exif_orientation;
  spec.pad = pad.has_value();
  spec.pad_with = pad.value_or(PadNumber());
  check(spec.check());
  return spec;
}

}  // namespace

void bind_values(nb::module_& module) {
  module.def("has_flac", &has_flac, "Whether FLAC can be decoded here.");
  nb::class_<ValueSpec>(module, "ValueSpec", "How the engine decodes a field.")
      .def(nb::new_(&make_spec), nb::arg("kind"), nb::kw_only(), nb::arg("dtype") = nb::none(),
           nb::arg("mono") = false, nb::arg("exif_orientation") = false, nb::arg("pad") = nb::none())
      .def_prop_ro(
          "is_bytes", [](const ValueSpec& self) { return self.kind == ValueKind::bytes; },
          "Whether the bytes are delivered as they are.");
  nb::class_<HeldField>(
      module, "BatchField",
      "One field of every sample of a batch: a sequence of arrays of bytes, without a copy.")
      .def("__len__", &HeldField::size)
      .def("__getitem__", &value_of, nb::arg("place"), nb::sig("def __getitem__(self, place: int) -> object"))
      .def("tolist", &bytes_of, nb::sig("def tolist(self) -> list[bytes | None]"),
           "The same as a list of bytes, copied; None where a sample has no such field.")
      .def("take", &some_of, nb::arg("places"), "The same of some of the samples only.")
      .def("arrays", &arrays_of, nb::sig("def arrays(self) -> object"),
           "What was decoded: one array if all have one shape, else a list, with bytes for what is no array "
           "and None where a sample has no such field.")
      .def(
          "lengths",
          [](const HeldField& self) {
            return facts_of(self, [](const BatchArray& a) { return a.lengths[0]; });
          },
          nb::sig("def lengths(self) -> object"), "Of each value before it was padded.")
      .def("sizes", &sizes_of, nb::sig("def sizes(self) -> object"),
           "Height and width of each image before it was padded.")
      .def(
          "rates",
          [](const HeldField& self) {
            return facts_of(self, [](const BatchArray& a) { return a.sample_rate; });
          },
          nb::sig("def rates(self) -> object"), "Samples a second, of audio.");
}

}  // namespace packtrain::bind
