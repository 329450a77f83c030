#include "decode/pickle_objects.h"

#include <algorithm>

#include "base/words.h"

namespace packtrain {
namespace {

enum class Name : int64_t { reconstruct, ndarray, dtype, scalar, from_buffer, encode, bytes };

struct Known {
  std::string_view module, name;
  Name meaning;
};
constexpr Known kKnown[] = {
    {"numpy.core.multiarray", "_reconstruct", Name::reconstruct},
    {"numpy._core.multiarray", "_reconstruct", Name::reconstruct},
    {"numpy.core.multiarray", "scalar", Name::scalar},
    {"numpy._core.multiarray", "scalar", Name::scalar},
    {"numpy.core.numeric", "_frombuffer", Name::from_buffer},
    {"numpy._core.numeric", "_frombuffer", Name::from_buffer},
    {"numpy", "ndarray", Name::ndarray},
    {"numpy", "dtype", Name::dtype},
    {"_codecs", "encode", Name::encode},
    {"__builtin__", "bytes", Name::bytes},
    {"builtins", "bytes", Name::bytes},
    {"__builtin__", "bytearray", Name::bytes},
    {"builtins", "bytearray", Name::bytes},
};

Status not_understood(std::string_view what) {
  return Status(Code::corrupt, std::string(what) + " is not pickled as Python and NumPy do it");
}

bool is_latin1(const PickleValue& value) {
  if (value.kind != PickleKind::text) return false;
  const std::string_view name = Pickle::text(value);
  return name == "latin1" || name == "latin-1";
}

bool is_flag(const PickleValue& value) {
  return value.kind == PickleKind::boolean || value.kind == PickleKind::integer;
}

// UTF-8 of characters below 256, a byte each; false if there are others.
bool to_latin1(std::string_view text, std::string& out) {
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    const auto lead = static_cast<uint8_t>(text[at]);
    if (lead < 0x80) {
      out += text[at];
      continue;
    }
    if ((lead & 0xFC) != 0xC0 || ++at == text.size()) return false;
    const auto next = static_cast<uint8_t>(text[at]);
    if ((next & 0xC0) != 0x80) return false;
    out += static_cast<char>((lead & 3) << 6 | (next & 0x3F));
  }
  return true;
}

}  // namespace

bool PickleObjects::find(std::string_view module, std::string_view name, PickleValue& out) {
  for (const Known& known : kKnown) {
    if (known.module != module || known.name != name) continue;
    out.kind = PickleKind::named;
    out.integer = static_cast<int64_t>(known.meaning);
    return true;
  }
  return false;
}

PickleValue PickleObjects::add_array(const StoredArray& array) {
  PickleValue value;
  value.kind = PickleKind::array;
  value.container = pickle_.arrays_.size();
  pickle_.arrays_.push_back(array);
  return value;
}

Status PickleObjects::call(const PickleValue& named, const PickleValue& arguments, PickleValue& made) {
  if (named.kind != PickleKind::named || arguments.kind != PickleKind::tuple)
    return Status(Code::corrupt, "it calls what is no name");
  const auto given = pickle_.items(arguments);
  switch (static_cast<Name>(named.integer)) {
    case Name::reconstruct: {
      const bool plain = given.size() == 3 && given[0].kind == PickleKind::named &&
                         static_cast<Name>(given[0].integer) == Name::ndarray;
      if (!plain) return not_understood("an array");
      StoredArray empty;
      empty.shape.type = NumberType::int8;
      if (!add_axis(empty.shape, 0)) return not_understood("an array");
      made = add_array(empty);
      return {};
    }
    case Name::dtype:
      return make_type(given, made);
    case Name::scalar:
      return make_scalar(given, made);
    case Name::from_buffer:
      return make_from_buffer(given, made);
    case Name::encode:
      if (given.size() != 2) return not_understood("a value of bytes");
      return make_bytes(given, made);
    case Name::bytes:
      return make_bytes(given, made);
    case Name::ndarray:
      break;
  }
  return not_understood("an array");
}

Status PickleObjects::make_bytes(std::span<const PickleValue> arguments, PickleValue& made) {
  made = {};
  made.kind = PickleKind::bytes;
  made.text = "";
  if (arguments.empty()) return {};
  if (arguments.size() == 1 && arguments[0].kind == PickleKind::bytes) {
    made = arguments[0];
    return {};
  }
  if (arguments.size() != 2 || arguments[0].kind != PickleKind::text || !is_latin1(arguments[1]))
    return not_understood("a value of bytes");
  const std::string_view text = Pickle::text(arguments[0]);
  // One text may be recalled again and again, and would grow without end.
  if (text.size() > bytes_left_) return Status(Code::corrupt, "it makes more bytes than it holds");
  bytes_left_ -= text.size();
  std::string& bytes = pickle_.unescaped_.emplace_back();
  if (!to_latin1(text, bytes)) return Status(Code::corrupt, "bytes are written as text that is no Latin-1");
  made.count = static_cast<uint32_t>(bytes.size());
  made.text = bytes.data();
  return {};
}

Status PickleObjects::make_type(std::span<const PickleValue> arguments, PickleValue& made) {
  if (arguments.empty() || arguments.size() > 3 || arguments[0].kind != PickleKind::text)
    return not_understood("a type of numbers");
  PACKTRAIN_ASSIGN(number, parse_number(Pickle::text(arguments[0])));
  made = {};
  made.kind = PickleKind::number_type;
  made.container = pickle_.types_.size();
  pickle_.types_.push_back(number);
  return {};
}

Status PickleObjects::set_shape(const PickleValue& shape, StoredArray& array) const {
  if (shape.kind != PickleKind::tuple) return not_understood("the shape of an array");
  if (shape.count > kMostAxes) {
    return Status(Code::unsupported, "the array has more than " + std::to_string(kMostAxes) +
                                         " axes; reshape it before you pickle it");
  }
  array.shape.axes = 0;
  array.shape.sizes = {};
  for (const PickleValue& size : pickle_.items(shape)) {
    if (size.kind != PickleKind::integer || size.integer < 0 ||
        !add_axis(array.shape, static_cast<uint64_t>(size.integer)))
      return Status(Code::corrupt, "the array has an impossible shape");
  }
  array.use_c_order();
  return {};
}

Status PickleObjects::set_data(const PickleValue& type, const PickleValue& shape, const PickleValue& data,
                               StoredArray& array) const {
  if (type.kind != PickleKind::number_type || data.kind != PickleKind::bytes)
    return not_understood("an array");
  const StoredNumber& number = pickle_.types_[static_cast<size_t>(type.container)];
  array.shape.type = number.type;
  array.swapped = number.swapped;
  PACKTRAIN_TRY(set_shape(shape, array));
  const std::string_view bytes = Pickle::text(data);
  if (bytes.size() != array.shape.bytes()) {
    return Status(Code::corrupt, array.shape.text() + " takes " + count_in_words(array.shape.bytes()) +
                                     " bytes, and " + count_in_words(bytes.size()) + " are there");
  }
  array.data = std::as_bytes(std::span(bytes));
  return {};
}

Status PickleObjects::make_scalar(std::span<const PickleValue> arguments, PickleValue& made) {
  if (arguments.size() != 2) return not_understood("a number");
  PickleValue no_axes;
  no_axes.kind = PickleKind::tuple;
  StoredArray array;
  PACKTRAIN_TRY(set_data(arguments[0], no_axes, arguments[1], array));
  made = add_array(array);
  return {};
}

Status PickleObjects::make_from_buffer(std::span<const PickleValue> arguments, PickleValue& made) {
  if (arguments.size() < 4 || arguments.size() > 5 || arguments[3].kind != PickleKind::text)
    return not_understood("an array");
  StoredArray array;
  PACKTRAIN_TRY(set_data(arguments[1], arguments[2], arguments[0], array));
  const std::string_view order = Pickle::text(arguments[3]);
  if (order == "F") {
    array.use_fortran_order();
  } else if (order == "K" && arguments.size() == 5 && arguments[4].kind == PickleKind::tuple) {
    std::vector<uint64_t> axes;
    for (const PickleValue& axis : pickle_.items(arguments[4]))
      axes.push_back(axis.kind == PickleKind::integer ? static_cast<uint64_t>(axis.integer) : UINT64_MAX);
    if (!array.use_axis_order(axes)) return not_understood("the order of an array's axes");
  } else if (order != "C") {
    return not_understood("the order of an array's axes");
  }
  made = add_array(array);
  return {};
}

Status PickleObjects::set_state(const PickleValue& object, const PickleValue& state) {
  const auto given = pickle_.items(state);
  if (state.kind != PickleKind::tuple) return not_understood("a state");
  if (object.kind == PickleKind::number_type) {
    // Version, order of bytes, and five facts about records, which numbers do not have.
    if (given.size() < 8 || given[1].kind != PickleKind::text) return not_understood("a type of numbers");
    const bool has_parts = std::any_of(given.begin() + 2, given.begin() + 5,
                                       [](const PickleValue& part) { return part.kind != PickleKind::none; });
    if (has_parts)
      return Status(Code::unsupported, "it is an array of records; pickle one array for each field");
    StoredNumber& number = pickle_.types_[static_cast<size_t>(object.container)];
    number.swapped = Pickle::text(given[1]) == ">" && number_bytes(number.type) > 1;
    return {};
  }
  if (object.kind != PickleKind::array || given.size() != 5 || !is_flag(given[3]))
    return not_understood("an array");
  StoredArray& array = pickle_.arrays_[static_cast<size_t>(object.container)];
  PACKTRAIN_TRY(set_data(given[2], given[1], given[4], array));
  if (given[3].integer != 0) array.use_fortran_order();
  return {};
}

}  // namespace packtrain
