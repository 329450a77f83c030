// include/packtrain/load.h: the loader, its batches and its report.
#include "packtrain/load.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>

#include "columns.h"
#include "epoch.h"
#include "gil.h"
#include "held_batch.h"
#include "samples.h"
#include "turns.h"

namespace packtrain::bind {

namespace {

using Indices = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

OnError on_error_of(const std::string& name) {
  if (name == "raise") return OnError::raise;
  if (name == "skip") return OnError::skip;
  if (name == "replace") return OnError::replace;
  raise(Status(Code::invalid, "on_error is raise, skip or replace, not '" + name + "'"));
}

LastBatch last_of(const std::string& name) {
  if (name == "drop") return LastBatch::drop;
  if (name == "pad") return LastBatch::pad;
  if (name == "keep") return LastBatch::keep;
  raise(Status(Code::invalid, "last is drop, pad or keep, not '" + name + "'"));
}

const ImageSpec* spec_of(const HeldBatch& held) { return held.image ? &*held.image : nullptr; }

nb::object image_of(nb::handle self) {
  const auto& held = nb::cast<const HeldBatch&>(self);
  return image_on(self, *held.batch, spec_of(held));
}

nb::dict columns_of(nb::handle self, const ColumnMask& mask) {
  const auto& held = nb::cast<const HeldBatch&>(self);
  return columns_on(self, *held.batch, spec_of(held), mask);
}

LoadPart make_part(const Samples& samples, const std::vector<std::string>& image_fields,
                   const std::vector<std::string>& fields, std::optional<Indices> indices,
                   std::vector<double> weights, double fraction) {
  LoadPart part;
  part.dataset = samples.owner();
  part.first = samples.first();
  part.samples = samples.size();
  part.split = samples.split().value_or("");
  if (indices) part.selection = Selection::make({indices->data(), indices->size()});
  for (const std::string& field : image_fields) part.image_fields.push_back(samples.field_id(to_text(field)));
  for (const std::string& field : fields) part.fields.push_back(samples.field_id(to_text(field)));
  part.weights = std::move(weights);
  part.fraction = fraction;
  return part;
}

std::shared_ptr<SharedLoader> make_loader(std::vector<LoadPart> parts, bool mixed, uint64_t epoch_length,
                                          uint64_t global_batch_size, uint64_t seed, const std::string& order,
                                          const ImageSpec* image, uint32_t rank, uint32_t world_size,
                                          const std::string& last, const std::string& on_error,
                                          std::optional<uint64_t> max_errors, uint32_t threads,
                                          uint32_t prefetch, uint64_t memory, uint32_t processes_here,
                                          bool takes_over, bool check_bytes, uint32_t chains,
                                          uint64_t window_bytes, uint64_t piece_bytes,
                                          std::vector<ValueSpec> values) {
  LoadSpec spec;
  spec.parts = std::move(parts);
  spec.mixed = mixed;
  spec.epoch_length = epoch_length;
  if (image) spec.image = *image;
  spec.order.kind = value_or_raise(order_kind_of(order));
  spec.order.seed = seed;
  spec.order.global_batch = global_batch_size;
  spec.order.world = world_size;
  spec.order.last = last_of(last);
  spec.order.chains = chains;
  spec.order.window_bytes = window_bytes;
  spec.order.piece_bytes = piece_bytes;
  spec.rank = rank;
  spec.threads = threads;
  spec.prefetch = prefetch;
  spec.memory = memory;
  spec.processes_here = processes_here;
  spec.takes_over = takes_over;
  spec.on_error = on_error_of(on_error);
  if (max_errors) spec.max_errors = *max_errors;
  spec.check = check_bytes;
  spec.values = std::move(values);
  auto loader = [&] {
    const WithoutGil free;
    return Loader::make(std::move(spec));
  }();
  return SharedLoader::make(value_or_raise(std::move(loader)));
}

nb::object next_batch(SharedLoader& shared) {
  bool interrupted = false;
  Result<BatchPtr> result = shared.next(interrupted);
  if (interrupted) throw nb::python_error();
  BatchPtr batch = value_or_raise(std::move(result));
  if (!batch) return nb::none();
  return nb::cast(HeldBatch{std::move(batch), shared.loader().spec().image});
}

void bind_report(nb::module_& module) {
  nb::class_<BadLoad>(module, "BadLoad", "A sample that could not be loaded.")
      .def_ro("source", &BadLoad::source, "Which dataset of a mix it belongs to; else 0.")
      .def_ro("index", &BadLoad::index, "Its position in the split.")
      .def_prop_ro("key", [](const BadLoad& self) { return to_text(self.key); })
      .def_prop_ro("what", [](const BadLoad& self) { return to_text(self.what); })
      .def("__repr__", [](const BadLoad& self) {
        return to_text("sample " + std::to_string(self.index) + " (" + self.key + "): " + self.what);
      });
  nb::class_<LoadReport>(module, "LoadReport", "Where the time of a run went. Prints as text.")
      .def_ro("samples", &LoadReport::samples)
      .def_ro("batches", &LoadReport::batches)
      .def_ro("bytes", &LoadReport::bytes, "Read from storage.")
      .def_ro("seconds", &LoadReport::seconds, "From the first batch asked for to the last one given.")
      .def_ro("seconds_waited", &LoadReport::seconds_waited, "That next() waited for a batch.")
      .def_ro("read_wait", &LoadReport::read_wait, "Thread seconds without bytes to decode.")
      .def_ro("decode", &LoadReport::decode, "Thread seconds of decoding.")
      .def_ro("blocked", &LoadReport::blocked, "Thread seconds with all batches ahead made.")
      .def_ro("threads", &LoadReport::threads)
      .def_ro("prefetch", &LoadReport::prefetch)
      .def_ro("memory", &LoadReport::memory, "Bytes held for batches and for reading ahead.")
      .def_ro("warnings", &LoadReport::warnings)
      .def_ro("errors", &LoadReport::errors)
      .def_ro("replaced", &LoadReport::replaced, "Of the errors: places that another sample took.")
      .def_ro("bad", &LoadReport::bad, "The bad samples, up to a hundred.")
      .def_prop_ro(
          "limit", [](const LoadReport& self) { return to_text(self.limit()); },
          "The verdict in one word: storage, decode, training or unknown.")
      .def("__str__", [](const LoadReport& self) { return to_text(self.text()); });
}

}  // namespace

void bind_load(nb::module_& module) {
  bind_report(module);
  nb::class_<ColumnMask>(module, "ColumnMask", "What of a batch is wanted beside label, index and fields.")
      .def(nb::new_([](bool image, bool source, bool padding, bool replaced) {
             return ColumnMask{image, source, padding, replaced};
           }),
           nb::kw_only(), nb::arg("image"), nb::arg("source"), nb::arg("padding"), nb::arg("replaced"));
  nb::class_<HeldBatch>(module, "Batch", "One batch. Its arrays are views that keep its memory alive.")
      .def("__len__", [](const HeldBatch& self) { return self.batch->size(); })
      .def_prop_ro("epoch", [](const HeldBatch& self) { return self.batch->epoch(); })
      .def_prop_ro("step", [](const HeldBatch& self) { return self.batch->step(); })
      .def_prop_ro("image", [](nb::handle self) { return image_of(self); })
      .def_prop_ro(
          "label",
          [](nb::handle self) { return numbers_on(self, nb::cast<HeldBatch&>(self).batch->labels()); })
      .def_prop_ro(
          "index",
          [](nb::handle self) { return numbers_on(self, nb::cast<HeldBatch&>(self).batch->indices()); })
      .def_prop_ro(
          "source",
          [](nb::handle self) { return numbers_on(self, nb::cast<HeldBatch&>(self).batch->sources()); })
      .def_prop_ro(
          "padding",
          [](nb::handle self) { return numbers_on(self, nb::cast<HeldBatch&>(self).batch->padding()); })
      .def_prop_ro(
          "replaced",
          [](nb::handle self) { return numbers_on(self, nb::cast<HeldBatch&>(self).batch->replaced()); })
      .def("columns", &columns_of, nb::arg("mask"),
           nb::sig("def columns(self, mask: ColumnMask) -> dict[str, Any]"),
           "What it holds beside its fields, by name.")
      .def(
          "field",
          [](nb::handle self, size_t field) {
            return HeldField{nb::borrow(self), &nb::cast<const HeldBatch&>(self), field, std::nullopt};
          },
          nb::arg("field"), "The field with this number, in the order in which fields were asked for.");
  nb::class_<LoadPart>(module, "LoadPart", "A dataset to load, or one of those that are mixed.")
      .def(nb::new_(&make_part), nb::arg("dataset"), nb::kw_only(),
           nb::arg("image_fields") = std::vector<std::string>(),
           nb::arg("fields") = std::vector<std::string>(), nb::arg("indices") = nb::none(),
           nb::arg("weights") = std::vector<double>(), nb::arg("fraction") = 1.0)
      .def("__len__", &LoadPart::size);
  module.def("leave_loaders", &SharedLoader::leave_all, nb::call_guard<WithoutGil>(),
             "For the end of the interpreter: stops every loader, in whichever thread it is.");
  nb::class_<SharedLoader>(module, "Loader", "The loading engine. packtrain.Loader is its comfortable form.")
      .def(nb::new_(&make_loader), nb::arg("parts"), nb::kw_only(), nb::arg("mixed") = false,
           nb::arg("epoch_length") = 0, nb::arg("global_batch_size"), nb::arg("seed") = 0,
           nb::arg("order") = "global", nb::arg("image").none() = nb::none(), nb::arg("rank") = 0,
           nb::arg("world_size") = 1, nb::arg("last") = "drop", nb::arg("on_error") = "raise",
           nb::arg("max_errors") = nb::none(), nb::arg("threads") = 0, nb::arg("prefetch") = 0,
           nb::arg("memory") = 0, nb::arg("processes_here") = 1, nb::arg("takes_over") = false,
           nb::arg("check") = true, nb::arg("chains") = 0, nb::arg("window_bytes") = 0,
           nb::arg("piece_bytes") = 0, nb::arg("values") = std::vector<ValueSpec>())
      .def(
          "start",
          [](SharedLoader& self, uint64_t epoch, uint64_t consumed, std::optional<uint64_t> then) {
            Status status;
            {
              const WithoutGil free;
              status = self.start(epoch, consumed, then);
            }
            check(status);
          },
          nb::arg("epoch"), nb::arg("consumed") = 0, nb::arg("then") = nb::none(),
          "`then`: the epoch to be read ahead after it, and after that one too; None: the next one.")
      .def("stop", &SharedLoader::stop, nb::call_guard<WithoutGil>(),
           "Ends the epoch where it is: threads and read-ahead are given back.")
      .def("next", &next_batch, nb::sig("def next(self) -> Batch | None"),
           "The next batch, or None at the end of the epoch.")
      .def_prop_ro(
          "place",
          [](const SharedLoader& self) { return nb::make_tuple(self.place().epoch, self.place().consumed); },
          nb::sig("def place(self) -> tuple[int, int]"),
          "Epoch and consumed samples, over all ranks, with the batch that was given last.")
      .def(
          "note_bad",
          [](SharedLoader& self, uint32_t source, uint64_t index, nb::str what) {
            check(self.loader().note_bad(source, index, Status(Code::corrupt, to_bytes(what))));
          },
          nb::arg("source"), nb::arg("index"), nb::arg("what"),
          "Counts a sample on which a Python function failed; an error if it is one too many.")
      .def_prop_ro(
          "steps", [](const SharedLoader& self) { return self.loader().steps(); },
          "Of the epoch that was started, on this rank.")
      .def_prop_ro("steps_of_whole_epoch",
                   [](const SharedLoader& self) { return self.loader().steps_of_whole_epoch(); })
      .def_prop_ro("consumed", [](const SharedLoader& self) { return self.loader().consumed(); })
      .def_prop_ro("epoch", [](const SharedLoader& self) { return self.loader().epoch(); })
      .def(
          "state", [](const SharedLoader& self) { return to_text(self.loader().state().encode()); },
          "Where it stands, as JSON of less than 1 KB.")
      .def(
          "resume",
          [](const SharedLoader& self, const std::string& json) {
            const OrderState state = value_or_raise(OrderState::decode(json));
            check(self.loader().check(state));
            return nb::make_tuple(state.epoch, state.consumed);
          },
          nb::arg("state"), nb::sig("def resume(self, state: str) -> tuple[int, int]"),
          "Epoch and consumed samples of a state, if it belongs to this dataset, split and order.")
      .def("report", [](const SharedLoader& self) { return self.loader().report(); });
  bind_epoch(module);
}

}  // namespace packtrain::bind
