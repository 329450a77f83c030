#include "arguments.h"

#include "base/words.h"

namespace packtrain::bind {

bool append_paths(nb::handle given, std::vector<std::string>& names) {
  Path path;
  if (nb::try_cast(given, path)) {
    names.push_back(path.name);
    return true;
  }
  if (!PySequence_Check(given.ptr()) || PyBytes_Check(given.ptr())) return false;
  for (nb::handle each : given) {
    if (!nb::try_cast(each, path)) return false;
    names.push_back(path.name);
  }
  return true;
}

bool append_sources(nb::handle given, std::vector<std::pair<std::string, std::string>>& named) {
  std::vector<std::string> names;
  if (append_paths(given, names)) {
    for (std::string& name : names) named.emplace_back("", std::move(name));
    return true;
  }
  if (!PyMapping_Check(given.ptr()) || !nb::hasattr(given, "items")) return false;
  for (nb::handle item : given.attr("items")()) {
    const nb::object split = item[0], paths = item[1];
    if (!nb::isinstance<nb::str>(split)) return false;
    names.clear();
    if (!append_paths(paths, names)) return false;
    for (std::string& name : names) named.emplace_back(to_bytes(split), std::move(name));
  }
  return true;
}

bool read_position(nb::handle given, int64_t& number) {
  const nb::object whole = nb::steal(PyNumber_Index(given.ptr()));
  if (!whole.is_valid()) {
    PyErr_Clear();
    return false;
  }
  int overflow = 0;
  number = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
  if (overflow != 0) throw nb::index_error("there is no sample with a number of more than 64 bits");
  return true;
}

bool append_positions(nb::handle given, std::vector<int64_t>& numbers) {
  const nb::object iterator = nb::steal(PyObject_GetIter(given.ptr()));
  if (!iterator.is_valid()) {
    PyErr_Clear();
    return false;
  }
  while (PyObject* item = PyIter_Next(iterator.ptr())) {
    if (!read_position(nb::steal(item), numbers.emplace_back())) return false;
  }
  if (PyErr_Occurred()) throw nb::python_error();
  return true;
}

bool read_size(nb::handle given, uint64_t& bytes) {
  if (nb::isinstance<nb::str>(given)) {
    bytes = value_or_raise(parse_bytes(to_bytes(given)));
    return true;
  }
  return nb::try_cast(given, bytes);
}

}  // namespace packtrain::bind
