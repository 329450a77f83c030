// include/packtrain/index.h: Dataset and what it gives without reading payload.
#include "packtrain/index.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <filesystem>

#include "arguments.h"
#include "gil.h"
#include "packtrain/format.h"
#include "report.h"
#include "samples.h"

namespace packtrain::bind {

namespace {

using Labels = nb::ndarray<nb::numpy, const int64_t, nb::ndim<1>, nb::c_contig>;
using Numbers = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>, nb::c_contig>;
using State = std::tuple<Path, std::optional<std::string>, std::string>;  // path, split, id

// The keys of a dataset or a split, in order, read when asked for.
struct Keys {
  std::shared_ptr<const Samples> samples;
};

struct Shard {
  std::string path, format;
  uint64_t bytes = 0, samples = 0;
};

// "a-{000..127}.tar::b.tar" names the same files from any working folder.
std::string absolute(std::string_view pattern) {
  std::string result;
  for (size_t begin = 0; begin <= pattern.size();) {
    const size_t end = std::min(pattern.find("::", begin), pattern.size());
    if (begin > 0) result += "::";
    if (end > begin) result += std::filesystem::absolute(pattern.substr(begin, end - begin)).native();
    begin = end + 2;
  }
  return result;
}

std::shared_ptr<Samples> open(const Path& path, std::optional<std::string> split, bool cache,
                              const ProgressCallback& progress, bool tell) {
  std::string note;
  const std::string where = absolute(path.name);
  auto dataset = value_or_raise(call_long(progress, [&](const Progress& hook) {
    return open_dataset(posix_storage(), where, {.cache = cache, .progress = hook, .note = &note});
  }));
  if (tell && !note.empty() && PyErr_WarnEx(PyExc_UserWarning, note.c_str(), 1) != 0)
    throw nb::python_error();
  return std::make_shared<Samples>(value_or_raise(Samples::of(std::move(dataset), where, std::move(split))));
}

std::vector<uint64_t> samples_at(const Samples& samples, std::span<const int64_t> positions) {
  std::vector<uint64_t> result;
  result.reserve(positions.size());
  for (const int64_t position : positions) result.push_back(samples.sample_at(position));
  return result;
}

std::vector<uint64_t> samples_in(const Samples& samples, const nb::slice& slice) {
  const auto [start, stop, step, length] = slice.compute(samples.size());
  std::vector<uint64_t> result;
  result.reserve(length);
  for (size_t i = 0; i < length; ++i) {
    result.push_back(samples.first() +
                     static_cast<uint64_t>(static_cast<int64_t>(start) + static_cast<int64_t>(i) * step));
  }
  return result;
}

SampleList to_list(std::vector<SampleDict> dicts) {
  SampleList list;
  for (SampleDict& dict : dicts) list.append(std::move(dict));
  return list;
}

Labels labels_of(const Samples& samples) {
  using Owner = std::shared_ptr<Dataset>;
  const nb::capsule owner(new Owner(samples.owner()),
                          [](void* held) noexcept { delete static_cast<Owner*>(held); });
  const auto labels = samples.labels().subspan(samples.first(), samples.size());
  return Labels(labels.data(), {labels.size()}, owner);
}

// A number about every sample, from the index, as an array of its own.
template <class Fact>
Numbers numbers_of(const Samples& samples, Fact fact) {
  auto numbers = std::make_unique<int64_t[]>(std::max<size_t>(samples.size(), 1));
  {
    const WithoutGil free;
    for (uint64_t i = 0; i < samples.size(); ++i)
      numbers[i] = static_cast<int64_t>(fact(samples.dataset(), samples.first() + i));
  }
  int64_t* const data = numbers.release();
  const nb::capsule owner(data, [](void* held) noexcept { delete[] static_cast<int64_t*>(held); });
  return Numbers(data, {samples.size()}, owner);
}

nb::object iterator_over(nb::handle self) {
  nb::object iterator = nb::steal(PySeqIter_New(self.ptr()));
  if (!iterator.is_valid()) throw nb::python_error();
  return iterator;
}

// As a list has it: whatever is no text is in no dataset.
const nb::sig kContains("def __contains__(self, key: object) -> bool");
bool has_key(const Samples& samples, nb::handle key) {
  return nb::isinstance<nb::str>(key) && samples.has_key(nb::borrow<nb::str>(key));
}

void bind_keys(nb::module_& module) {
  nb::class_<Keys>(module, "Keys", "The keys of a dataset, in order: a sequence that reads them when asked.")
      .def("__len__", [](const Keys& self) { return self.samples->size(); })
      .def(
          "__getitem__",
          [](const Keys& self, const Position& position) {
            return self.samples->key(self.samples->sample_at(position.number));
          },
          nb::arg("position"))
      .def(
          "__getitem__",
          [](const Keys& self, const nb::slice& part) {
            nb::typed<nb::list, nb::str> keys;
            for (const uint64_t sample : samples_in(*self.samples, part))
              keys.append(self.samples->key(sample));
            return keys;
          },
          nb::arg("part"))
      .def("__iter__", &iterator_over, nb::sig("def __iter__(self) -> collections.abc.Iterator[str]"))
      .def(
          "__contains__", [](const Keys& self, nb::handle key) { return has_key(*self.samples, key); },
          nb::arg("key").none(), kContains)
      .def(
          "index",
          [](const Keys& self, const nb::str& key) {
            return self.samples->sample_with(key) - self.samples->first();
          },
          nb::arg("key"), "The position of a key, found by hash; NotFoundError if there is none.")
      .def("__repr__",
           [](const Keys& self) { return nb::str("Keys({} of them)").format(self.samples->size()); });
}

// Functions are told of by calls.py. A constructor cannot be put into another function: what it does not take
// comes here.
void refuse_arguments(nb::pointer_and_handle<Samples> self, const nb::args& given, const nb::kwargs& named) {
  const nb::object type = self.h.type().attr("__init__");
  const nb::object what = nb::module_::import_("packtrain.signatures").attr("what_is_wrong");
  const nb::object wrong = what(type, nb::make_tuple(self.h) + given, named);
  PyErr_SetObject(wrong.type().ptr(), wrong.ptr());
  throw nb::python_error();
}

// What is known of a dataset without its payload.
void bind_facts(nb::class_<Samples>& dataset) {
  dataset
      .def_prop_ro("labels", &labels_of, nb::rv_policy::reference,
                   "Every sample's label, NO_LABEL where it has none: a read-only view of the index.")
      .def_prop_ro(
          "keys", [](std::shared_ptr<Samples> self) { return Keys{std::move(self)}; },
          "Every sample's key, in order; found by hash with `in` and index().")
      .def_prop_ro(
          "classes",
          [](const Samples& self) -> nb::typed<nb::list, nb::str> {
            return nb::borrow<nb::typed<nb::list, nb::str>>(to_texts(self.dataset().manifest().classes));
          },
          "The names of the classes: label i is classes[i]. Empty if labels are plain numbers or absent.")
      .def_prop_ro(
          "fields",
          [](const Samples& self) {
            nb::typed<nb::list, nb::str> names;
            for (const FieldSpec& field : self.dataset().manifest().fields) names.append(to_text(field.name));
            return names;
          },
          "The names of the fields that samples may have.")
      .def_prop_ro(
          "splits",
          [](const Samples& self) {
            nb::typed<nb::dict, nb::str, int> counts;
            for (const SplitSpec& split : self.dataset().manifest().splits)
              counts[to_text(split.name)] = split.count;
            return counts;
          },
          "Every split of the whole dataset and its number of samples, in order.")
      .def_prop_ro(
          "shards",
          [](const Samples& self) {
            std::vector<Shard> shards;
            for (const ShardSpec& spec : self.dataset().manifest().shards)
              shards.push_back({spec.path, spec.format, spec.bytes, spec.samples});
            return shards;
          },
          "The files of the whole dataset that hold samples.")
      .def_prop_ro(
          "split",
          [](const Samples& self) -> std::optional<nb::str> {
            return self.split() ? std::optional(to_text(*self.split())) : std::nullopt;
          },
          "The split this is, or None for the whole dataset.")
      .def_prop_ro(
          "path", [](const Samples& self) { return to_text(self.path()); },
          "What was opened, as an absolute path.")
      .def_prop_ro(
          "id", [](const Samples& self) { return to_text(self.dataset().manifest().id); },
          "The hash of the manifest: equal for equal datasets.")
      .def(
          "image_size",
          [](const Samples& self, const Position& position) {
            return self.dataset().image_size(self.sample_at(position.number));
          },
          nb::arg("position"), "Width and height of a sample's image from the index; (0, 0) if not recorded.")
      .def_prop_ro(
          "widths",
          [](const Samples& self) {
            return numbers_of(self,
                              [](const Dataset& of, uint64_t sample) { return of.image_size(sample).first; });
          },
          nb::rv_policy::reference, "The width of every sample's image, 0 where it is not recorded.")
      .def_prop_ro(
          "heights",
          [](const Samples& self) {
            return numbers_of(
                self, [](const Dataset& of, uint64_t sample) { return of.image_size(sample).second; });
          },
          nb::rv_policy::reference, "The height of every sample's image, 0 where it is not recorded.")
      .def(
          "sizes",
          [](const Samples& self, const nb::str& field) {
            return numbers_of(self, [id = self.field_id(field)](const Dataset& of, uint64_t sample) {
              const FieldLocation location = of.locate(sample, id);
              return location.present ? location.length : 0;
            });
          },
          nb::arg("field"), nb::rv_policy::reference,
          "The bytes of a field in every sample, 0 where a sample lacks it.")
      .def(
          "source",
          [](const Samples& self, const Position& position, const nb::str& field) {
            return to_text(
                value_or_raise(self.dataset().path(self.sample_at(position.number), self.field_id(field))));
          },
          nb::arg("position"), nb::arg("field"),
          "The relative path a field's bytes had where they were packed from; '' if packtrain made them.");
}

void bind_pickling(nb::class_<Samples>& dataset) {
  dataset
      .def("__getstate__",
           [](const Samples& self) -> std::tuple<nb::str, std::optional<std::string>, nb::str> {
             return {to_text(self.path()), self.split(), to_text(self.dataset().manifest().id)};
           })
      .def("__setstate__", [](nb::pointer_and_handle<Samples> self, const State& state) {
        const auto& [path, split, id] = state;
        auto samples = open(path, split, true, std::nullopt, false);
        if (samples->dataset().manifest().id != id) {
          raise(Status(Code::invalid, "is another dataset than when it was pickled; open it again")
                    .at(samples->path()));
        }
        new (self.p) Samples(std::move(*samples));
      });
}

}  // namespace

void bind_index(nb::module_& module) {
  module.attr("NO_LABEL") = kNoLabel;
  ReportClass<Shard>(module, "Shard", "A file that holds samples.")
      .field("path", &Shard::path, "Relative to the dataset's folder, or absolute.")
      .field("format", &Shard::format, "The name of its format.")
      .field("bytes", &Shard::bytes, "Its size.")
      .field("samples", &Shard::samples, "How many samples it holds.");
  bind_keys(module);

  nb::class_<Samples> dataset(
      module, "Dataset",
      "Samples by position or key, each in one read, every byte checked.\n\n"
      "`path` is a packtrain dataset, a container (tar, zip), or a glob or brace list of them; `split` one "
      "of its\n"
      "splits. A sample is a dict: its fields' bytes by name, the label of a field 'cls' as an int, and\n"
      "'__key__'. Nothing is ever written through it. Safe from many threads (reads run without the GIL) "
      "and\n"
      "after fork(); pickles by path. A container without an index is indexed first, and with `cache` that "
      "index\n"
      "is kept for the next time.");
  dataset
      .def(
          "__init__",
          [](nb::pointer_and_handle<Samples> self, const Path& path, std::optional<std::string> split,
             bool cache, const ProgressCallback& progress) {
            new (self.p) Samples(std::move(*open(path, std::move(split), cache, progress, true)));
          },
          nb::arg("path"), nb::arg("split") = nb::none(), nb::kw_only(), nb::arg("cache") = true,
          nb::arg("progress") = nb::none())
      .def("__init__", &refuse_arguments)
      .def("__len__", &Samples::size)
      .def(
          "__getitem__",
          [](const Samples& self, const Position& position) -> SampleDict {
            const uint64_t sample = self.sample_at(position.number);
            return std::move(self.read({&sample, 1}, nb::none(), true).front());
          },
          nb::arg("position"))
      .def(
          "__getitem__",
          [](const Samples& self, const nb::str& key) -> SampleDict {
            const uint64_t sample = self.sample_with(key);
            return std::move(self.read({&sample, 1}, nb::none(), true).front());
          },
          nb::arg("key"))
      .def(
          "__getitem__",
          [](const Samples& self, const nb::slice& part) {
            return to_list(self.read(samples_in(self, part), nb::none(), true));
          },
          nb::arg("part"))
      .def(
          "__getitems__",
          [](const Samples& self, const Positions& positions) {
            return to_list(self.read(samples_at(self, positions.numbers), nb::none(), true));
          },
          nb::arg("positions"), "As read(positions); torch's DataLoader fetches a whole batch by it.")
      .def("__iter__", &iterator_over,
           nb::sig("def __iter__(self) -> collections.abc.Iterator[dict[str, typing.Any]]"))
      .def(
          "__contains__", [](const Samples& self, nb::handle key) { return has_key(self, key); },
          nb::arg("key").none(), kContains)
      .def(
          "read",
          [](const Samples& self, const Positions& positions,
             const std::optional<nb::typed<nb::sequence, nb::str>>& fields, bool check) {
            return to_list(self.read(samples_at(self, positions.numbers),
                                     fields ? nb::handle(*fields) : nb::none(), check));
          },
          nb::arg("positions"), nb::arg("fields") = nb::none(), nb::kw_only(), nb::arg("check") = true,
          "Many samples at once, with many reads in flight, in the order of `positions`.\n\n"
          "`fields` names what each dict has ('__key__' too); without it, the key and every field. With\n"
          "check=False recorded checksums are not compared.")
      .def(
          "field",
          [](const Samples& self, const Position& position, const nb::str& name, bool check) {
            return self.read_field(self.sample_at(position.number), self.field_id(name), check);
          },
          nb::arg("position"), nb::arg("name"), nb::kw_only(), nb::arg("check") = true,
          "The bytes of one field of one sample, as they are stored.")
      .def("__repr__", [](const Samples& self) {
        const nb::object split = self.split() ? nb::object(to_text(*self.split())) : nb::none();
        return nb::str("packtrain.Dataset({!r}, split={!r}, samples={})")
            .format(to_text(self.path()), split, self.size());
      });
  bind_facts(dataset);
  bind_pickling(dataset);
}

}  // namespace packtrain::bind
