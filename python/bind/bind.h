// What the binding files share: text, errors, long calls. Each binding file converts, releases the GIL, maps
// the error and keeps the owner alive; nothing more.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "packtrain/progress.h"
#include "packtrain/status.h"

namespace packtrain::bind {

namespace nb = nanobind;

// An argument that is a path: str or os.PathLike.
struct Path {
  std::string name;  // as bytes, the way the filesystem has it
};

// One function per binding file; module.cc calls them.
void bind_codec(nb::module_& module);
void bind_format(nb::module_& module);
void bind_image_spec(nb::module_& module);
void bind_index(nb::module_& module);
void bind_load(nb::module_& module);
void bind_pack(nb::module_& module);
void bind_place(nb::module_& module);
void bind_progress(nb::module_& module);
void bind_storage(nb::module_& module);
void bind_transform(nb::module_& module);
void bind_values(nb::module_& module);

// Names are bytes to a filesystem and text to Python: bytes that are no UTF-8 travel as surrogates, the way
// os.fsdecode and os.fsencode do it.
nb::str to_text(std::string_view bytes);
nb::list to_texts(const std::vector<std::string>& names);
std::string to_bytes(nb::handle text);

// Raises the exception class of packtrain.errors that belongs to the status' code. The only place that does.
// `report`, if given, becomes the exception's attribute of that name.
[[noreturn]] void raise(const Status& status, nb::object report = nb::none());
inline void check(const Status& status) {
  if (!status.ok()) raise(status);
}
template <class T>
T value_or_raise(Result<T>&& result) {
  check(result.status());
  return std::move(result).value();
}

// A ProgressEvent that owns its words. A plain value.
struct ProgressReport {
  std::string phase;
  uint64_t items = 0, items_total = 0;
  uint64_t bytes = 0, bytes_total = 0;
  std::string unit;
};
// What the caller gave as `progress=`: None, or a function of one Progress.
using ProgressCallback = std::optional<nb::typed<nb::callable, nb::object(ProgressReport)>>;

// Runs `work` on a thread of its own, without the GIL. The calling thread waits for it, hands its progress to
// `callback` and looks for signals, so that a callback always runs in the thread of its caller and Ctrl-C is
// heard at once. A callback that returns False stops the work; what it raises, or a signal handler, stops the
// work and is raised here once the work has ended.
void run_long(const ProgressCallback& callback, const std::function<void(const Progress&)>& work);

template <class Work>
auto call_long(const ProgressCallback& callback, Work&& work) {
  std::optional<decltype(work(std::declval<const Progress&>()))> result;
  run_long(callback, [&](const Progress& progress) { result.emplace(work(progress)); });
  return std::move(*result);
}

}  // namespace packtrain::bind

template <>
struct nanobind::detail::type_caster<packtrain::bind::Path> {
  NB_TYPE_CASTER(packtrain::bind::Path, const_name("str | os.PathLike[str]"))
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
    PyObject* bytes = nullptr;
    if (PyUnicode_FSConverter(source.ptr(), &bytes) == 0) {
      PyErr_Clear();
      return false;
    }
    value.name.assign(PyBytes_AsString(bytes), static_cast<size_t>(PyBytes_Size(bytes)));
    Py_DECREF(bytes);
    return true;
  }
};
