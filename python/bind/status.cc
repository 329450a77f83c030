// include/packtrain/status.h: a Status becomes an exception; and the text that messages and names are made
// of.
#include "bind.h"

namespace packtrain::bind {

namespace {

const char* exception_name(Code code) {
  switch (code) {
    case Code::not_found:
      return "NotFoundError";
    case Code::invalid:
      return "InvalidError";
    case Code::corrupt:
      return "CorruptError";
    case Code::no_room:
      return "NoRoomError";
    case Code::io:
    case Code::limit:
      return "StorageError";
    case Code::unsupported:
      return "UnsupportedError";
    case Code::stopped:
      return "StoppedError";
    case Code::ok:
      break;
  }
  return "Error";
}

}  // namespace

void raise(const Status& status, nb::object report) {
  const nb::object type = nb::module_::import_("packtrain.errors").attr(exception_name(status.code()));
  const nb::object error = type(to_text(status.message()), to_text(status.where()));
  if (!report.is_none()) error.attr("report") = report;
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nb::python_error();
}

nb::str to_text(std::string_view bytes) {
  PyObject* text =
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape");
  if (text == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(text);
}

nb::list to_texts(const std::vector<std::string>& names) {
  nb::list texts;
  for (const std::string& name : names) texts.append(to_text(name));
  return texts;
}

std::string to_bytes(nb::handle text) {
  const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
  if (!bytes.is_valid()) throw nb::python_error();
  return {PyBytes_AsString(bytes.ptr()), static_cast<size_t>(PyBytes_Size(bytes.ptr()))};
}

}  // namespace packtrain::bind
