// Samples that are samples already: datasets, WebDataset shards, labelled zips. They keep their keys, fields,
// labels, splits and classes.
#include <algorithm>
#include <set>

#include "base/words.h"
#include "pack/sources.h"
#include "pack/stems.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

// The dataset's fields as fields of the catalog: normalised, and still different from each other.
Result<std::vector<uint16_t>> map_fields(CatalogBuilder& out, const Manifest& manifest) {
  std::set<std::string> taken;
  for (const FieldSpec& field : manifest.fields)
    if (field_name(field.name) == field.name) taken.insert(field.name);
  std::vector<uint16_t> numbers;
  for (const FieldSpec& field : manifest.fields) {
    std::string name = field_name(field.name);
    if (name != field.name) {
      const std::string wanted = name;
      for (int number = 2; !taken.insert(name).second; ++number) name = wanted + "_" + std::to_string(number);
    }
    PACKTRAIN_ASSIGN(number, out.field(name));
    numbers.push_back(number);
  }
  return numbers;
}

// What is known of the values of the dataset's fields, in agreement with the sources before it: `numbers` are
// its fields in the catalog. A field that is not of arrays here is not of arrays at all.
void map_arrays(Catalog& catalog, const Manifest& manifest, const std::vector<uint16_t>& numbers,
                size_t known_fields) {
  for (size_t i = 0; i < manifest.fields.size(); ++i) {
    const std::string& name = catalog.fields[numbers[i]];
    const auto& array = manifest.fields[i].array;
    const auto found = catalog.arrays.find(name);
    if (array && numbers[i] >= known_fields) catalog.arrays.emplace(name, *array);
    if (found != catalog.arrays.end() && array != found->second) catalog.arrays.erase(found);
  }
}

// An index of containers that have no splits calls the whole of it "all".
bool has_splits(const Manifest& manifest) {
  return manifest.splits.size() > 1 || (manifest.splits.size() == 1 && manifest.splits[0].name != "all");
}

// A folder with what is in it, or the containers alone: an index that was made of them just now is no file.
uint64_t inodes_of(Storage& storage, const std::string& path, const Manifest& manifest) {
  const auto info = storage.stat(path);
  if (!info.ok() || info->kind != FileKind::folder) return manifest.shards.size();
  uint64_t inodes = 1;
  const Status listed = storage.list(path, [&](FolderEntry&&) { return ++inodes > 0; });
  return listed.ok() ? inodes : 1 + manifest.shards.size() + manifest.files.size();
}

std::string split_names(const Manifest& manifest) {
  std::string names;
  for (const SplitSpec& split : manifest.splits) names += (names.empty() ? "" : ", ") + printable(split.name);
  return names;
}

}  // namespace

Status add_container(ScanContext& context, const Source& source) {
  OpenOptions options;
  options.cache = false;
  std::vector<std::string> found;
  options.found = &found;
  PACKTRAIN_ASSIGN(dataset, open_dataset(context.storage, source.path, options));
  std::vector<std::string>& warnings = context.out.catalog().warnings;
  for (std::string& note : found) warnings.push_back(printable(source.path) + ": " + std::move(note));
  // Containers are numbered in the order in which they are added: this is the number of the one to come.
  const auto number = static_cast<uint32_t>(context.out.catalog().containers.size());
  PACKTRAIN_TRY(add_samples_of(context, source, *dataset,
                               [&](uint64_t sample, uint32_t field, const FieldLocation&, Cell& cell) {
                                 cell.origin = Origin::container;
                                 cell.source = number;
                                 cell.inner_field = field;
                                 cell.where = sample;
                               }));
  context.out.add_container(std::move(dataset), source.name);
  return {};
}

Status add_samples_of(ScanContext& context, const Source& source, const Dataset& dataset,
                      const FillField& fill) {
  // Bytes have checks of their own; a wrong label or key would be packed, and be called sound ever after.
  PACKTRAIN_TRY(dataset.sound(IndexPart::index));
  PACKTRAIN_TRY(dataset.sound(IndexPart::names));
  const Manifest& manifest = dataset.manifest();
  CatalogBuilder& out = context.out;
  Catalog& catalog = out.catalog();
  if (!source.split.empty() && manifest.splits.size() > 1)
    return Status(Code::invalid, "has splits of its own (" + split_names(manifest) + "); give it without \"" +
                                     source.split + "=\"")
        .at(printable(source.path));
  if (dataset.samples() == 0)
    return Status(Code::invalid, "holds no samples; is it the right one?").at(printable(source.path));

  const size_t known_fields = catalog.fields.size();
  PACKTRAIN_ASSIGN(fields, map_fields(out, manifest));
  map_arrays(catalog, manifest, fields, known_fields);
  catalog.files += inodes_of(context.storage, source.path, manifest);
  std::vector<int64_t> class_ids;
  for (const std::string& name : manifest.classes) class_ids.push_back(out.class_id(name));
  if (!manifest.classes.empty()) {
    out.labels_are_named();
    out.prefer_classes(manifest.classes);
  }
  out.reserve(dataset.samples(), dataset.samples() * (fields.size() + 1));

  size_t split_position = 0;
  uint64_t empty = 0;
  for (uint64_t sample = 0; sample < dataset.samples(); ++sample) {
    PACKTRAIN_TRY(context.progress.tick(sample, dataset.samples()));
    std::string split = source.split_or_default();
    if (source.split.empty() && has_splits(manifest)) {
      while (split_position + 1 < manifest.splits.size() &&
             sample >= manifest.splits[split_position].first + manifest.splits[split_position].count)
        ++split_position;
      split = manifest.splits[split_position].name;
    }
    const int64_t label = dataset.label(sample);
    // A row of a table may hold nothing at all.
    bool any = label != kNoLabel;
    for (uint32_t field = 0; field < fields.size() && !any; ++field)
      any = dataset.locate(sample, field).present;
    if (!any) {
      ++empty;
      continue;
    }
    PACKTRAIN_ASSIGN(key, dataset.key(sample));
    while (key.starts_with("./")) key.remove_prefix(2);  // tar cf x.tar . names its members so
    out.begin_sample(catalog.keep(key), out.split(split));
    if (label != kNoLabel && class_ids.empty()) out.set_label(label);
    if (label != kNoLabel && !class_ids.empty()) {
      if (label < 0 || label >= static_cast<int64_t>(class_ids.size()))
        return Status(Code::corrupt, "sample " + printable(key) + " has label " + std::to_string(label) +
                                         ", which is none of its classes; run packtrain verify on it")
            .at(printable(source.path));
      out.set_label(class_ids[static_cast<size_t>(label)]);
    }
    for (uint32_t field = 0; field < fields.size(); ++field) {
      const FieldLocation location = dataset.locate(sample, field);
      if (!location.present) continue;
      PACKTRAIN_ASSIGN(path, dataset.path(sample, field));
      Cell cell;
      cell.field = fields[field];
      cell.size = location.length;
      fill(sample, field, location, cell);
      cell.path = catalog.keep(path);
      out.add(cell);
    }
    PACKTRAIN_TRY(out.end_sample());
  }
  if (empty == dataset.samples())
    return Status(Code::invalid,
                  "holds samples, but none has a field or a label: there is nothing to pack; is it the right "
                  "one?")
        .at(printable(source.path));
  if (empty > 0)
    catalog.warnings.push_back(counted(empty, "sample") + " of " + printable(source.path) +
                               " left out, which have neither a field nor a label");
  return {};
}

}  // namespace packtrain
