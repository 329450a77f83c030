// Arguments that Python callers may give in several shapes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bind.h"

namespace packtrain::bind {

struct Paths {  // one path, or a sequence of them
  std::vector<std::string> names;
};
struct Sources {  // paths, or a mapping of a split's name to its path or paths
  std::vector<std::pair<std::string, std::string>> named;
};
struct Positions {  // any iterable of whole numbers: a list, a range, a NumPy array
  std::vector<int64_t> numbers;
};
struct Position {  // anything that stands for a whole number
  int64_t number = 0;
};
struct Size {  // a number of bytes, or words such as "512M"
  uint64_t bytes = 0;
};

// Appends what `given` names; false if it is neither a path nor a sequence of paths.
bool append_paths(nb::handle given, std::vector<std::string>& names);
bool append_sources(nb::handle given, std::vector<std::pair<std::string, std::string>>& named);
// Raises IndexError for a number that no list is long enough for.
bool read_position(nb::handle given, int64_t& number);
bool append_positions(nb::handle given, std::vector<int64_t>& numbers);
bool read_size(nb::handle given, uint64_t& bytes);  // raises InvalidError for words that are no size

}  // namespace packtrain::bind

namespace nanobind::detail {

#define PACKTRAIN_ANY_PATH "str | os.PathLike[str] | collections.abc.Sequence[str | os.PathLike[str]]"

template <>
struct type_caster<packtrain::bind::Paths> {
  NB_TYPE_CASTER(packtrain::bind::Paths, const_name(PACKTRAIN_ANY_PATH))
  bool from_python(handle source, uint32_t, cleanup_list*) {
    return packtrain::bind::append_paths(source, value.names);
  }
};

template <>
struct type_caster<packtrain::bind::Sources> {
  NB_TYPE_CASTER(packtrain::bind::Sources,
                 const_name(PACKTRAIN_ANY_PATH " | collections.abc.Mapping[str, " PACKTRAIN_ANY_PATH "]"))
  bool from_python(handle source, uint32_t, cleanup_list*) {
    return packtrain::bind::append_sources(source, value.named);
  }
};

template <>
struct type_caster<packtrain::bind::Positions> {
  NB_TYPE_CASTER(packtrain::bind::Positions, const_name("collections.abc.Iterable[int]"))
  bool from_python(handle source, uint32_t, cleanup_list*) {
    return packtrain::bind::append_positions(source, value.numbers);
  }
};

template <>
struct type_caster<packtrain::bind::Position> {
  NB_TYPE_CASTER(packtrain::bind::Position, const_name("int"))
  bool from_python(handle source, uint32_t, cleanup_list*) {
    return packtrain::bind::read_position(source, value.number);
  }
};

template <>
struct type_caster<packtrain::bind::Size> {
  NB_TYPE_CASTER(packtrain::bind::Size, const_name("int | str"))
  bool from_python(handle source, uint32_t, cleanup_list*) {
    return packtrain::bind::read_size(source, value.bytes);
  }
};

#undef PACKTRAIN_ANY_PATH

}  // namespace nanobind::detail
