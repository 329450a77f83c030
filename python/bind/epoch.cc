#include "epoch.h"

#include <nanobind/stl/shared_ptr.h>

#include <exception>

namespace packtrain::bind {
namespace {

constexpr const char* kOwnerName = "packtrain batch";

// A capsule: made and let go of with less than an instance of a class.
nb::object own(BatchPtr batch) {
  PyObject* const capsule = PyCapsule_New(batch.get(), kOwnerName, [](PyObject* self) {
    ReturnBatch()(static_cast<Batch*>(PyCapsule_GetPointer(self, kOwnerName)));
  });
  if (!capsule) throw nb::python_error();
  (void)batch.release();
  return nb::steal(capsule);
}

// Of a batch that is handed out: counted here, where no other thread of Python comes between.
nb::dict columns_of_taken(Course& course, const SharedLoader& engine, BatchPtr given) {
  const Batch& batch = *given;
  const auto& image = engine.loader().spec().image;
  nb::dict columns = columns_on(own(std::move(given)), batch, image ? &*image : nullptr, course.mask);
  ++course.taken;
  course.inside = true;
  return columns;
}

// What can be had at once and without a question; invalid if there is none.
nb::object next_at_once(const Epoch& epoch) {
  Course& course = *epoch.course;
  if (epoch.ended || epoch.generation != course.generation || !course.is_plain) return {};
  std::optional<Result<BatchPtr>> result = course.engine->next_if_ready();
  if (!result) return {};
  BatchPtr batch = value_or_raise(std::move(*result));
  if (!batch) return {};  // the end, which is told again
  return columns_of_taken(course, *course.engine, std::move(batch));
}

nb::object next_columns(Course& course, uint64_t generation) {
  const std::shared_ptr<SharedLoader> engine = course.engine;  // it may be given another one meanwhile
  bool interrupted = false;
  Result<BatchPtr> result = engine->next(interrupted);
  if (interrupted) throw nb::python_error();
  BatchPtr batch = value_or_raise(std::move(result));
  if (!batch || generation != course.generation) return nb::none();
  return columns_of_taken(course, *engine, std::move(batch));
}

// Not noexcept, and Python is called with nothing of C++ around it: when the interpreter ends, Python (before
// 3.14) takes the stack of a thread that asks for its lock apart, and this frame with it.
PyObject* next_of(PyObject* self) {
  if (!nb::inst_ready(self)) {
    PyErr_SetString(PyExc_TypeError, "an iterator is made by iter(loader)");
    return nullptr;
  }
  try {
    if (nb::object columns = next_at_once(*nb::inst_ptr<Epoch>(self)); columns.is_valid())
      return columns.release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
  static PyObject* const slowly = PyUnicode_InternFromString("_next_slowly");
  return PyObject_CallMethodObjArgs(self, slowly, nullptr);
}

PyType_Slot slots[] = {
    {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
    {Py_tp_iternext, reinterpret_cast<void*>(next_of)},
    {0, nullptr},
};

}  // namespace

void bind_epoch(nb::module_& module) {
  nb::class_<Course>(module, "Course", "How far a loader's newest iterator has come.")
      .def(nb::new_([](std::shared_ptr<SharedLoader> engine, const ColumnMask& mask, bool is_plain) {
             auto course = std::make_shared<Course>();
             course->engine = std::move(engine);
             course->mask = mask;
             course->is_plain = is_plain;
             return course;
           }),
           nb::arg("engine"), nb::arg("mask"), nb::arg("is_plain"))
      .def_rw("engine", &Course::engine)
      .def_ro("is_plain", &Course::is_plain, "Whether nothing is done in Python to what the engine gives.")
      .def_rw("generation", &Course::generation, "Of iterators in use: only the newest may go on.")
      .def_rw("taken", &Course::taken, "Batches of the newest iterator.")
      .def_rw("inside", &Course::inside, "Whether that is within an epoch, whose place the engine knows.")
      .def("next_columns", &next_columns, nb::arg("generation"),
           nb::sig("def next_columns(self, generation: int) -> dict[str, Any] | None"),
           "The columns of the next batch, which live as long as any of them; None at the end of the epoch, "
           "and where another generation has begun meanwhile.");
  nb::class_<Epoch>(module, "Epoch", nb::type_slots(slots),
                    "The base of an iterator: a batch that is there is handed over at once, for others "
                    "_next_slowly() of the subclass is called.")
      .def(nb::init<std::shared_ptr<Course>>(), nb::arg("course"))
      .def_rw("generation", &Epoch::generation, "0: it has not begun.")
      .def_rw("ended", &Epoch::ended);
}

}  // namespace packtrain::bind
