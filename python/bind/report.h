// Plain results as Python classes: read-only attributes and a repr.
#pragma once

#include <type_traits>

#include "bind.h"

namespace packtrain::bind {

template <class Value>
nb::object to_python(const Value& value) {
  if constexpr (std::is_same_v<Value, std::string>) {
    return to_text(value);
  } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
    return to_texts(value);
  } else {
    return nb::cast(value);
  }
}

inline nb::str repr_of(nb::handle self) {
  const nb::handle type = self.type();
  nb::list parts;
  for (nb::handle name : type.attr("_fields"))
    parts.append(nb::str("{}={!r}").format(name, nb::getattr(self, nb::borrow<nb::str>(name))));
  return nb::str("{}({})").format(type.attr("__name__"), nb::str(", ").attr("join")(parts));
}

// The class of T with one attribute per call of field(); `_fields` names them in order.
template <class T>
class ReportClass {
 public:
  ReportClass(nb::module_& module, const char* name, const char* doc) : class_(module, name, doc) {
    class_.def("__repr__", [](nb::handle_t<T> self) { return repr_of(self); });
  }
  ~ReportClass() { class_.attr("_fields") = nb::tuple(names_); }
  ReportClass(const ReportClass&) = delete;
  ReportClass& operator=(const ReportClass&) = delete;

  template <class Value>
  ReportClass& field(const char* name, Value T::*member, const char* doc) {
    using Shown = std::conditional_t<std::is_same_v<Value, std::string>, nb::str,
                                     std::conditional_t<std::is_same_v<Value, std::vector<std::string>>,
                                                        nb::typed<nb::list, nb::str>, Value>>;
    class_.def_prop_ro(
        name, [member](const T& self) { return nb::cast<Shown>(to_python(self.*member)); }, doc);
    names_.append(nb::str(name));
    return *this;
  }
  // A figure that follows from the others; not part of the repr.
  template <class Function>
  ReportClass& property(const char* name, Function function, const char* doc) {
    class_.def_prop_ro(name, function, doc);
    return *this;
  }

 private:
  nb::class_<T> class_;
  nb::list names_;
};

}  // namespace packtrain::bind
