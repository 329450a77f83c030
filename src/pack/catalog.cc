#include "pack/catalog.h"

#include <charconv>

namespace packtrain {
namespace {

// In which a label of 64 bits has its digits, with its sign.
struct LabelDigits {
  explicit LabelDigits(int64_t label) : end(std::to_chars(text, text + sizeof text, label).ptr) {}
  char text[24];
  char* end;
  uint64_t size() const { return static_cast<uint64_t>(end - text); }
};

}  // namespace

std::string label_text(int64_t label) {
  const LabelDigits digits(label);
  return {digits.text, digits.size()};
}

Cell Catalog::label_cell(uint64_t sample) const {
  const int64_t label = samples[sample].label;
  Cell cell;
  cell.origin = Origin::label;
  cell.field = label_field;
  cell.where = static_cast<uint64_t>(label);
  cell.size = LabelDigits(label).size();
  return cell;
}

uint64_t Catalog::count_fields() const {
  uint64_t count = cells.size();
  for (const CatalogSample& sample : samples) count += sample.label_is_field;
  return count;
}

SampleCells::SampleCells(const Catalog& catalog, uint64_t sample)
    : catalog_(catalog),
      first_(catalog.samples[sample].first_cell),
      count_(catalog.end_cell(sample) - first_) {
  if (!catalog.samples[sample].label_is_field) return;
  label_ = catalog.label_cell(sample);
  label_place_ = 0;
  while (label_place_ < count_ &&
         catalog.fields[catalog.cells[first_ + label_place_].field] < catalog.fields[label_.field])
    ++label_place_;
  ++count_;
}

}  // namespace packtrain
