#include "arrays.h"

#include <algorithm>

namespace packtrain::bind {
namespace {

constexpr size_t kMostDimensions = 16;

// What NumPy's headers would declare. A place in the table never changes without another ABI version, and
// nothing of an array's own layout is touched here.
class NumpyTable {
 public:
  // Null if NumPy is not one that is known here. With the GIL, which guards it.
  static const NumpyTable* find() {
    static const NumpyTable table;
    return table.is_known_ ? &table : nullptr;
  }

  PyObject* make(nb::handle owner, void* data, std::span<const size_t> shape, int number) const {
    Py_ssize_t sizes[kMostDimensions];
    std::copy(shape.begin(), shape.end(), sizes);
    PyObject* const descriptor = describe_(number);
    if (!descriptor) return nullptr;
    PyObject* const array = make_(type_, descriptor, static_cast<int>(shape.size()), sizes, nullptr, data,
                                  kOrderedAlignedWritable, nullptr);  // takes the descriptor
    if (!array) return nullptr;
    if (set_base_(array, owner.inc_ref().ptr()) == 0) return array;  // takes the owner
    Py_DECREF(array);
    return nullptr;
  }

 private:
  static constexpr int kOrderedAlignedWritable = 0x1 | 0x100 | 0x400;
  static constexpr unsigned kVersion1 = 0x01000009, kVersion2 = 0x02000000;

  NumpyTable() {
    static_assert(sizeof(Py_ssize_t) == sizeof(void*));
    for (const char* name : {"numpy._core._multiarray_umath", "numpy.core._multiarray_umath"}) {
      PyObject* const module = PyImport_ImportModule(name);
      if (!module) {
        PyErr_Clear();
        continue;
      }
      const nb::object owned = nb::steal(module);
      const nb::object capsule = nb::getattr(owned, "_ARRAY_API", nb::none());
      if (PyCapsule_CheckExact(capsule.ptr()))
        take(static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr)));
      return;
    }
  }
  void take(void** table) {
    if (!table) return PyErr_Clear();
    const unsigned version = reinterpret_cast<unsigned (*)()>(table[0])();
    is_known_ = version == kVersion1 || version == kVersion2;
    if (!is_known_) return;
    type_ = static_cast<PyObject*>(table[2]);
    describe_ = reinterpret_cast<decltype(describe_)>(table[45]);
    make_ = reinterpret_cast<decltype(make_)>(table[94]);
    set_base_ = reinterpret_cast<decltype(set_base_)>(table[282]);
  }

  bool is_known_ = false;
  PyObject* type_ = nullptr;
  PyObject* (*describe_)(int number) = nullptr;
  PyObject* (*make_)(PyObject* type, PyObject* descriptor, int axes, const Py_ssize_t* sizes,
                     const Py_ssize_t* strides, void* data, int flags, PyObject* like) = nullptr;
  int (*set_base_)(PyObject* array, PyObject* base) = nullptr;
};

// How NumPy numbers its types; -1: not by this function.
int number_of(nb::dlpack::dtype type) {
  using Code = nb::dlpack::dtype_code;
  const int size = type.bits / 8;
  const auto by_size = [&](int one, int two, int four, int eight) {
    return size == 1 ? one : size == 2 ? two : size == 4 ? four : size == 8 ? eight : -1;
  };
  static_assert(sizeof(long) == 8, "int64 is NumPy's long here");
  switch (static_cast<Code>(type.code)) {
    case Code::Bool:
      return 0;
    case Code::Int:
      return by_size(1, 3, 5, 7);
    case Code::UInt:
      return by_size(2, 4, 6, 8);
    case Code::Float:
      return by_size(-1, 23, 11, 12);
    default:
      return -1;
  }
}

}  // namespace

nb::object array_on(nb::handle owner, void* data, std::span<const size_t> shape, nb::dlpack::dtype type) {
  const int number = number_of(type);
  const NumpyTable* const table =
      number >= 0 && shape.size() <= kMostDimensions ? NumpyTable::find() : nullptr;
  if (!table) {
    return nb::cast(nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner, nullptr, type,
                                           nb::device::cpu::value, 0),
                    nb::rv_policy::reference);
  }
  PyObject* const array = table->make(owner, data, shape, number);
  if (!array) throw nb::python_error();
  return nb::steal(array);
}

}  // namespace packtrain::bind
