#include "pack/written_fields.h"

#include <algorithm>
#include <iterator>

#include "format/columns.h"

namespace packtrain {
namespace {

// Whether a "cls" says no more than the label: digits that packtrain made, or as many as the label has in a
// container of samples. A file of the user's is kept, so that it can be extracted.
bool says_only(const CatalogSample& sample, const Cell& cell) {
  return sample.label != kNoLabel &&
         (cell.origin == Origin::label || cell.origin == Origin::text || cell.origin == Origin::container) &&
         cell.size == label_text(sample.label).size();
}

}  // namespace

WrittenFields written_fields(const Plan& plan, const Format& format) {
  const Catalog& catalog = plan.catalog;
  WrittenFields written;
  std::vector<bool> used(catalog.fields.size());
  const auto cls = std::find(catalog.fields.begin(), catalog.fields.end(), "cls");
  const auto cls_number = static_cast<uint64_t>(cls - catalog.fields.begin());
  written.label_is_number = format.label_column && cls != catalog.fields.end();
  bool one_each = true;  // but for labels
  for (const uint64_t number : plan.order) {
    const CatalogSample& sample = catalog.samples[number];
    written.labels |= sample.label != kNoLabel;
    uint64_t payload = 0;
    for (const Cell& cell : SampleCells(catalog, number)) {
      used[cell.field] = true;
      if (cell.field != cls_number) ++payload;
      if (cell.field == cls_number && !says_only(sample, cell)) written.label_is_number = false;
    }
    one_each &= payload == 1;
  }
  for (size_t field = 0; field < used.size(); ++field)
    if (used[field] && written.has(catalog.fields[field])) written.names.push_back(catalog.fields[field]);
  std::sort(written.names.begin(), written.names.end());
  for (const std::string& name : written.names) {
    if (const auto array = catalog.arrays.find(name); array != catalog.arrays.end())
      written.arrays.insert(*array);
  }
  written.one_image = one_each && are_several_images(written.names);
  return written;
}

bool are_several_images(const std::vector<std::string>& fields) {
  return fields.size() > 1 && std::all_of(fields.begin(), fields.end(),
                                          [](const std::string& field) { return is_image_field(field); });
}

std::vector<uint32_t> pair_fields(const std::vector<std::string>& known, const Manifest& container) {
  std::vector<uint32_t> paired;
  std::vector<bool> taken(container.fields.size());
  size_t lonely = 0, lonely_known = 0;
  for (size_t i = 0; i < known.size(); ++i) {
    paired.push_back(known[i].empty() ? UINT32_MAX : container.field_id(known[i]));
    if (known[i].empty()) continue;
    if (paired.back() != UINT32_MAX) {
      taken[paired.back()] = true;
      continue;
    }
    ++lonely;
    lonely_known = i;
  }
  std::vector<std::string> names;
  std::copy_if(known.begin(), known.end(), std::back_inserter(names),
               [](const std::string& name) { return !name.empty(); });
  if (container.fields.size() == 1 && are_several_images(names)) {
    for (size_t i = 0; i < known.size(); ++i) paired[i] = known[i].empty() ? UINT32_MAX : 0;
    return paired;
  }
  const auto left = std::count(taken.begin(), taken.end(), false);
  if (lonely == 1 && left == 1)
    paired[lonely_known] =
        static_cast<uint32_t>(std::find(taken.begin(), taken.end(), false) - taken.begin());
  return paired;
}

}  // namespace packtrain
