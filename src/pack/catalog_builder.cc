#include "pack/catalog_builder.h"

#include <algorithm>
#include <unordered_set>

#include "base/words.h"

namespace packtrain {
namespace {

constexpr size_t kMostNamed = 1000;  // samples without their files that are named

// A name for a folder of the dataset's own names: no slash, never "." or "..".
std::string as_component(std::string_view name) {
  std::string component(name);
  std::replace(component.begin(), component.end(), '/', '_');
  if (component.empty() || component == "." || component == "..") component = "source";
  return component;
}

}  // namespace

void CatalogBuilder::reserve(uint64_t samples, uint64_t cells) {
  catalog_.samples.reserve(catalog_.samples.size() + samples);
  catalog_.cells.reserve(catalog_.cells.size() + cells);
}

uint32_t CatalogBuilder::add_root(std::string_view folder, std::string_view name) {
  for (size_t i = 0; i < catalog_.roots.size(); ++i)
    if (catalog_.roots[i].folder == folder) return static_cast<uint32_t>(i);
  catalog_.roots.push_back({std::string(folder), ""});
  root_names_.emplace_back(name);
  return static_cast<uint32_t>(catalog_.roots.size() - 1);
}

uint32_t CatalogBuilder::add_container(std::shared_ptr<Dataset> dataset, std::string_view name) {
  catalog_.containers.push_back(std::move(dataset));
  container_names_.emplace_back(name);
  return static_cast<uint32_t>(catalog_.containers.size() - 1);
}

uint32_t CatalogBuilder::add_stream(PieceFile file, std::string_view name) {
  catalog_.streams.push_back(std::move(file));
  stream_names_.emplace_back(name);
  return static_cast<uint32_t>(catalog_.streams.size() - 1);
}

uint32_t CatalogBuilder::split(std::string_view name) {
  const auto [at, added] =
      split_numbers_.try_emplace(std::string(name), static_cast<uint32_t>(catalog_.splits.size()));
  if (added) catalog_.splits.emplace_back(name);
  return at->second;
}

Result<uint16_t> CatalogBuilder::field(std::string_view name) {
  const auto known = field_numbers_.find(std::string(name));
  if (known != field_numbers_.end()) return known->second;
  if (catalog_.fields.size() > UINT16_MAX)
    return Status(Code::unsupported,
                  "the source has more than 65,535 different extensions (the last is \"" + printable(name) +
                      "\"); rename the files so that what follows the last dot says their kind");
  const auto number = static_cast<uint16_t>(catalog_.fields.size());
  catalog_.fields.emplace_back(name);
  field_numbers_.emplace(name, number);
  return number;
}

int64_t CatalogBuilder::class_id(std::string_view name) {
  const auto [at, added] =
      class_numbers_.try_emplace(std::string(name), static_cast<uint32_t>(class_names_.size()));
  if (added) class_names_.emplace_back(name);
  return at->second;
}

void CatalogBuilder::begin_source(std::string_view name) {
  sources_.push_back({catalog_.samples.size(), std::string(name), false});
}

void CatalogBuilder::begin_sample(NameRef stem, uint32_t split) {
  CatalogSample sample;
  sample.first_cell = catalog_.cells.size();
  sample.split = split & 0x7fffffff;
  sample.stem = stem;
  catalog_.samples.push_back(sample);
}

Status CatalogBuilder::add_text(std::string_view name, std::string_view text) {
  PACKTRAIN_ASSIGN(number, field(name));
  Cell cell;
  cell.origin = Origin::text;
  cell.field = number;
  cell.where = catalog_.texts.size();
  cell.size = text.size();
  catalog_.texts.append(text);
  add(cell);
  return {};
}

bool CatalogBuilder::has_field(std::string_view name) const {
  const auto number = field_numbers_.find(std::string(name));
  if (number == field_numbers_.end()) return false;
  const auto begin = catalog_.cells.begin() + static_cast<ptrdiff_t>(catalog_.samples.back().first_cell);
  return std::any_of(begin, catalog_.cells.end(),
                     [&](const Cell& cell) { return cell.field == number->second; });
}

Status CatalogBuilder::end_sample() {
  if (cls_field_ && catalog_.samples.back().label != kNoLabel && !has_field(kLabelField)) {
    PACKTRAIN_ASSIGN(number, field(kLabelField));
    catalog_.label_field = number;
    catalog_.samples.back().label_is_field = 1;
  }
  const auto begin = catalog_.cells.begin() + static_cast<ptrdiff_t>(catalog_.samples.back().first_cell);
  if (catalog_.cells.end() - begin > 1)
    std::sort(begin, catalog_.cells.end(), [&](const Cell& a, const Cell& b) {
      return catalog_.fields[a.field] < catalog_.fields[b.field];
    });
  return {};
}

Status CatalogBuilder::finish(const std::vector<std::string>& classes, std::string_view classes_file) {
  if (classes.empty()) PACKTRAIN_TRY(check_kinds_of_labels());
  PACKTRAIN_TRY(order_classes(classes, classes_file));
  PACKTRAIN_TRY(number_labels());
  set_prefixes();
  return {};
}

Status CatalogBuilder::order_classes(const std::vector<std::string>& classes, std::string_view classes_file) {
  std::vector<std::string>& order = catalog_.classes;
  const auto same = [&](const std::vector<std::string>& other) { return other == preferred_.front(); };
  if (!classes.empty()) {
    order = classes;
  } else if (!preferred_.empty() && std::all_of(preferred_.begin(), preferred_.end(), same)) {
    order = preferred_.front();
  }
  std::unordered_map<std::string_view, int64_t> numbers;
  for (size_t i = 0; i < order.size(); ++i) numbers.emplace(order[i], static_cast<int64_t>(i));
  const auto unknown = std::find_if(class_names_.begin(), class_names_.end(),
                                    [&](const std::string& name) { return numbers.count(name) == 0; });
  if (unknown != class_names_.end()) {
    if (!classes.empty())
      return Status(Code::invalid, "class \"" + printable(*unknown) + "\" is not in " +
                                       printable(classes_file) +
                                       "; add it there, or leave that class out of the source");
    order = class_names_;
    for (const auto& list : preferred_) order.insert(order.end(), list.begin(), list.end());
    std::sort(order.begin(), order.end());
    order.erase(std::unique(order.begin(), order.end()), order.end());
    numbers.clear();
    for (size_t i = 0; i < order.size(); ++i) numbers.emplace(order[i], static_cast<int64_t>(i));
  }
  final_numbers_.clear();
  for (const std::string& name : class_names_) final_numbers_.push_back(numbers.at(name));
  return {};
}

// A number of one source and a name of another may mean the same class or not; no order of the names says
// which, so that only the user can.
Status CatalogBuilder::check_kinds_of_labels() const {
  const auto named =
      std::find_if(sources_.begin(), sources_.end(), [](const Source& source) { return source.named; });
  if (named == sources_.end()) return {};
  for (size_t s = 0; s < sources_.size(); ++s) {
    if (sources_[s].named) continue;
    for (size_t i = sources_[s].first_sample; i < end_sample_of(s); ++i) {
      const CatalogSample& sample = catalog_.samples[i];
      if (sample.label == kNoLabel) continue;
      return Status(Code::invalid,
                    "its labels are numbers (sample \"" + printable(catalog_.name(sample.stem)) + "\" has " +
                        std::to_string(sample.label) + "), but those of " + named->name +
                        " are names of classes, and nothing says which name is which number; list the names "
                        "in the order of the numbers, one a line, in a file for --classes")
          .at(sources_[s].name);
    }
  }
  return {};
}

Status CatalogBuilder::number_labels() {
  for (size_t s = 0; s < sources_.size(); ++s) {
    for (size_t i = sources_[s].first_sample; i < end_sample_of(s); ++i) {
      CatalogSample& sample = catalog_.samples[i];
      if (sample.label == kNoLabel) continue;
      if (sources_[s].named) {
        sample.label = final_numbers_[static_cast<size_t>(sample.label)];
      } else if (!catalog_.classes.empty() &&
                 (sample.label < 0 || sample.label >= static_cast<int64_t>(catalog_.classes.size()))) {
        return Status(Code::invalid,
                      "sample \"" + printable(catalog_.name(sample.stem)) + "\" has label " +
                          std::to_string(sample.label) + ", but there are only " +
                          std::to_string(catalog_.classes.size()) +
                          " classes (0 is the first); pack sources whose labels mean the same classes");
      }
    }
  }
  return {};
}

void CatalogBuilder::set_prefixes() {
  catalog_.container_prefixes.assign(container_names_.size(), "");
  catalog_.stream_prefixes.assign(stream_names_.size(), "");
  if (root_names_.size() + container_names_.size() + stream_names_.size() < 2) return;
  std::unordered_set<std::string> taken;
  const auto unique = [&](std::string_view name) {
    const std::string wanted = as_component(name);
    std::string prefix = wanted;
    for (uint64_t number = 2; !taken.insert(prefix).second; ++number)
      prefix = wanted + "-" + std::to_string(number);
    return prefix;
  };
  for (size_t i = 0; i < root_names_.size(); ++i) catalog_.roots[i].prefix = unique(root_names_[i]);
  for (size_t i = 0; i < container_names_.size(); ++i)
    catalog_.container_prefixes[i] = unique(container_names_[i]);
  for (size_t i = 0; i < stream_names_.size(); ++i) catalog_.stream_prefixes[i] = unique(stream_names_[i]);
}

void CatalogBuilder::note_unreadable(BadSample bad) {
  ++catalog_.unreadable_count;
  if (catalog_.unreadable.size() < kMostNamed) catalog_.unreadable.push_back(std::move(bad));
}

void CatalogBuilder::settle_missing(const std::vector<LookFailure>& failures) {
  catalog_.bytes = 0;
  size_t samples_kept = 0;
  uint64_t cells_kept = 0;
  const auto take_out = [&](uint64_t number) {
    const auto failure = std::lower_bound(failures.begin(), failures.end(), number,
                                          [](const LookFailure& a, uint64_t cell) { return a.cell < cell; });
    if (failure != failures.end() && failure->cell == number) return note_unreadable(failure->bad);
    ++catalog_.missing_count;
    if (catalog_.missing.size() < kMostNamed)
      catalog_.missing.emplace_back(catalog_.name(catalog_.cells[number].path));
  };
  for (size_t i = 0; i < catalog_.samples.size(); ++i) {
    // Read before anything moves: what is kept never overtakes what is looked at.
    const uint64_t first = catalog_.samples[i].first_cell, end = catalog_.end_cell(i);
    uint64_t missing = first;
    while (missing < end && (catalog_.cells[missing].origin != Origin::file ||
                             catalog_.cells[missing].mtime_ns() != kNotThere))
      ++missing;
    if (missing < end) {
      take_out(missing);
      continue;
    }
    if (catalog_.samples[i].label_is_field) catalog_.bytes += catalog_.label_cell(i).size;
    CatalogSample sample = catalog_.samples[i];
    sample.first_cell = cells_kept;
    for (uint64_t c = first; c < end; ++c) {
      catalog_.bytes += catalog_.cells[c].size;
      catalog_.cells[cells_kept++] = catalog_.cells[c];
    }
    catalog_.samples[samples_kept++] = sample;
  }
  catalog_.samples.resize(samples_kept);
  catalog_.cells.resize(cells_kept);
}

}  // namespace packtrain
