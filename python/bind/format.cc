// include/packtrain/format.h: existing containers become datasets in place.
#include "packtrain/format.h"

#include "arguments.h"
#include "report.h"

namespace packtrain::bind {

namespace {

struct IndexReport {
  std::string folder;
  uint64_t samples = 0, containers = 0, bytes = 0;
  std::vector<Damage> damage;
  uint64_t links_left_out = 0, without_extension_left_out = 0;
  std::vector<std::string> columns_left_out;
  std::vector<std::string> notes;
  uint64_t unlabelled_folders = 0;
};

Result<MakeIndexReport> index_all(const Sources& given, MakeIndexOptions& options) {
  std::vector<std::string> containers;
  for (const auto& [split, pattern] : given.named) {
    PACKTRAIN_ASSIGN(paths, expand_paths(posix_storage(), pattern));
    containers.insert(containers.end(), paths.begin(), paths.end());
    options.splits.resize(containers.size(), split);
  }
  return make_index(posix_storage(), containers, options);
}

}  // namespace

void bind_format(nb::module_& module) {
  ReportClass<Damage>(module, "Damage", "A stretch of a container that could not be understood.")
      .field("offset", &Damage::offset, "Where it begins.")
      .field("bytes", &Damage::bytes, "How long it is.")
      .field("what", &Damage::what, "What is wrong with it.");
  ReportClass<IndexReport>(module, "IndexReport", "What index() made.")
      .field("folder", &IndexReport::folder, "The dataset to open.")
      .field("samples", &IndexReport::samples, "How many samples it has.")
      .field("containers", &IndexReport::containers, "Of how many containers.")
      .field("bytes", &IndexReport::bytes, "How large these are.")
      .field("damage", &IndexReport::damage, "With recover: what could not be understood and was left out.")
      .field("links_left_out", &IndexReport::links_left_out,
             "Hard and symbolic links, which have no bytes of their own.")
      .field("without_extension_left_out", &IndexReport::without_extension_left_out,
             "Files without an extension, which would name the field; pack() keeps them.")
      .field("columns_left_out", &IndexReport::columns_left_out,
             "Columns of tables that hold no bytes, texts or labels; the first twenty.")
      .field("notes", &IndexReport::notes, "What else there is to know, a sentence each.")
      .field("unlabelled_folders", &IndexReport::unlabelled_folders,
             "Folders that the samples lie in, where none has a label: pack() takes folders as classes and\n"
             "splits, an index does not.");

  module.def(
      "index",
      [](const Sources& containers, const std::optional<Path>& out, bool checksum, bool recover,
         const ProgressCallback& progress) {
        std::vector<Damage> damage;
        const MakeIndexReport made = value_or_raise(call_long(progress, [&](const Progress& hook) {
          MakeIndexOptions options;
          options.out = out ? out->name : "";
          options.checksum = checksum;
          options.index.recover = recover;
          options.index.damage = &damage;
          options.index.progress = hook;
          return index_all(containers, options);
        }));
        return IndexReport{made.folder,
                           made.samples,
                           made.containers,
                           made.bytes,
                           std::move(damage),
                           made.links.count,
                           made.without_extension.count,
                           made.columns.names,
                           made.notes,
                           made.unlabelled_folders};
      },
      nb::arg("containers"), nb::kw_only(), nb::arg("out") = nb::none(), nb::arg("checksum") = false,
      nb::arg("recover") = false, nb::arg("progress") = nb::none(),
      "Makes existing containers a dataset in place, without copying them.\n\n"
      "`containers` is one path or several, or maps names of splits to them; globs and brace lists are\n"
      "expanded. `out` is the new folder, by default NAME.packtrain beside the first container. With "
      "`checksum` all payload is read once, and a\n"
      "check recorded for every field; with `recover` damage is passed over and reported.");

  module.def(
      "formats",
      [] {
        nb::typed<nb::dict, nb::str, nb::str> summaries;
        for (const Format* format : formats()) summaries[to_text(format->name)] = to_text(format->summary);
        return summaries;
      },
      "The name of every container format, and what it is.");
}

}  // namespace packtrain::bind
