#include "format/hdf5_sets.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/words.h"
#include "format/array_groups.h"
#include "format/columns.h"
#include "format/grouping.h"
#include "format/hdf5_chunks.h"

namespace packtrain {
namespace {

using Datasets = std::map<std::string, Hdf5Object>;

constexpr size_t kMostObjects = 10'000;  // opened in all
constexpr size_t kMostGroups = 1000;
constexpr std::string_view kHelperSuffixes[] = {kOffsetsSuffix, kPresentSuffix};

// How likely a group is to be meant as a set of samples.
enum class Strength : uint8_t { none, weak, strong };

bool is_fixed(const Hdf5Type& type) {
  return type.kind == Hdf5Type::Kind::integer || type.kind == Hdf5Type::Kind::raw ||
         type.kind == Hdf5Type::Kind::text;
}

bool is_vector(const Hdf5Object& dataset) { return dataset.shape.size() == 1; }

// One number or text for each sample.
bool is_one_each(const Hdf5Object& dataset) {
  return is_vector(dataset) || (dataset.shape.size() == 2 && dataset.shape[1] == 1);
}

ColumnKind column_kind(const Hdf5Object& dataset) {
  switch (dataset.type.kind) {
    case Hdf5Type::Kind::integer:
      return is_one_each(dataset) ? ColumnKind::integers : ColumnKind::other;
    case Hdf5Type::Kind::text:
    case Hdf5Type::Kind::string:
      return is_vector(dataset) ? ColumnKind::text : ColumnKind::other;
    case Hdf5Type::Kind::sequence:
      return ColumnKind::bytes;
    case Hdf5Type::Kind::raw:
    case Hdf5Type::Kind::other:
      break;
  }
  return ColumnKind::other;
}

// The dataset of that name, taken out; nothing if there is none or it is of another kind.
template <class Fits>
std::optional<Hdf5Object> take(Datasets& datasets, const std::string& name, Fits fits) {
  auto found = datasets.find(name);
  if (found == datasets.end() || !fits(found->second)) return std::nullopt;
  return std::move(datasets.extract(found).mapped());
}

bool is_integer_vector(const Hdf5Object& dataset) {
  return dataset.type.kind == Hdf5Type::Kind::integer && is_vector(dataset);
}

// Columns that are found by the names beside them.
void take_slices(Datasets& datasets, Hdf5Set& set) {
  std::vector<std::string> names;
  for (const auto& [name, dataset] : datasets) {
    if (is_vector(dataset) && is_fixed(dataset.type)) names.push_back(name);
  }
  for (const std::string& name : names) {
    if (!datasets.contains(name)) continue;
    auto offsets = take(datasets, name + std::string(kOffsetsSuffix), [](const Hdf5Object& dataset) {
      return is_integer_vector(dataset) && hdf5_rows(dataset) > 0;
    });
    if (!offsets) continue;
    set.fields.push_back({.name = name,
                          .kind = Hdf5Column::Kind::slices,
                          .data = std::move(datasets.extract(name).mapped()),
                          .offsets = std::move(offsets),
                          .present = {}});
  }
}

void take_roles(Datasets& datasets, Hdf5Set& set) {
  for (auto at = datasets.begin(); at != datasets.end();) {
    auto here = at++;
    const ColumnRole role = column_role(here->first, column_kind(here->second));
    auto& place = role == ColumnRole::label ? set.labels : set.keys;
    if (role == ColumnRole::field || place) continue;
    set.named = set.named || here->first == kKeyColumn;
    if (role == ColumnRole::label) set.label_name = here->first;
    place = std::move(datasets.extract(here).mapped());
  }
}

void take_values(Datasets& datasets, Hdf5Set& set) {
  for (auto at = datasets.begin(); at != datasets.end();) {
    auto here = at++;
    if (!here->second.type.variable() || !is_vector(here->second)) continue;
    auto taken = datasets.extract(here);
    set.fields.push_back({.name = taken.key(),
                          .kind = Hdf5Column::Kind::values,
                          .data = std::move(taken.mapped()),
                          .offsets = {},
                          .present = {}});
  }
}

void take_present(Datasets& datasets, Hdf5Set& set) {
  for (Hdf5Column& column : set.fields) {
    column.present = take(datasets, column.name + std::string(kPresentSuffix), [](const Hdf5Object& dataset) {
      return is_integer_vector(dataset) && dataset.type.size == 1;
    });
  }
}

uint64_t samples_of(const Hdf5Column& column) {
  return column.kind == Hdf5Column::Kind::slices ? hdf5_rows(*column.offsets) - 1 : hdf5_rows(column.data);
}

Status differs(const std::string& name, uint64_t rows, uint64_t samples) {
  return Status(Code::corrupt, "`" + printable(name) + "` has " + count_in_words(rows) +
                                   " rows where there are " + counted(samples, "sample"));
}

// Makes a set of the datasets of one group.
Result<Strength> make_set(Datasets datasets, Hdf5Set& set) {
  take_slices(datasets, set);
  take_roles(datasets, set);
  take_values(datasets, set);
  take_present(datasets, set);
  Strength strength = set.fields.empty() ? Strength::none : Strength::strong;
  if (!set.fields.empty()) {
    set.samples = samples_of(set.fields.front());
  } else if (set.labels || set.keys) {
    set.samples = hdf5_rows(set.labels ? *set.labels : *set.keys);
    strength = Strength::weak;
  } else {
    // Arrays alone: a set if they have the same number of rows.
    for (const auto& [name, dataset] : datasets) {
      if (dataset.shape.size() < 2 || !is_fixed(dataset.type)) continue;
      if (strength == Strength::weak && hdf5_rows(dataset) != set.samples) return Strength::none;
      strength = Strength::weak;
      set.samples = hdf5_rows(dataset);
    }
  }
  if (strength == Strength::none) return strength;
  // Where each sample has a group of its own, its array would pass for a table of rows.
  const bool labelled = set.labels || set.keys;
  if (set.fields.empty() && !labelled && !set.split.empty() && !is_split_name(set.split))
    return Strength::none;
  if (set.fields.empty() && !labelled) {
    std::vector<NamedShape> arrays;
    for (const auto& [name, dataset] : datasets) {
      std::string shape = dataset.type.numpy_word() + "/" + std::to_string(dataset.type.size);
      for (const uint64_t size : dataset.shape) shape += "," + std::to_string(size);
      if (!dataset.shape.empty()) arrays.push_back({name, std::move(shape)});
    }
    PACKTRAIN_TRY(check_not_one_each(arrays));
  }
  std::string other_rows;  // an array that would be a field, had it as many rows as there are labels
  for (auto& [name, dataset] : datasets) {
    if (dataset.shape.size() > 1 && is_fixed(dataset.type) && hdf5_rows(dataset) != set.samples)
      other_rows = name;
    if (dataset.shape.empty() || !is_fixed(dataset.type) || hdf5_rows(dataset) != set.samples) {
      set.left_out.push_back(name);
      continue;
    }
    if (set.labels) strength = Strength::strong;
    set.fields.push_back({.name = name, .data = std::move(dataset), .offsets = {}, .present = {}});
  }
  if (set.fields.empty() && set.samples > 0) {
    if (other_rows.empty()) return Strength::none;  // labels of nothing
    return differs(other_rows, hdf5_rows(datasets.at(other_rows)), set.samples);
  }
  if (set.fields.size() > kMostFields) {
    return Status(Code::unsupported,
                  "has " + count_in_words(set.fields.size()) +
                      " columns; packtrain takes a dataset for a column of all samples, not "
                      "for one: read it by h5py and pack the samples");
  }
  for (const Hdf5Column& column : set.fields) {
    if (samples_of(column) != set.samples) return differs(column.name, samples_of(column), set.samples);
    if (column.present && hdf5_rows(*column.present) != set.samples) {
      return differs(column.name + std::string(kPresentSuffix), hdf5_rows(*column.present), set.samples);
    }
  }
  if (set.labels && hdf5_rows(*set.labels) != set.samples) {
    return differs("labels", hdf5_rows(*set.labels), set.samples);
  }
  if (set.keys && hdf5_rows(*set.keys) != set.samples) {
    return differs("keys", hdf5_rows(*set.keys), set.samples);
  }
  std::sort(set.fields.begin(), set.fields.end(),
            [](const Hdf5Column& a, const Hdf5Column& b) { return a.name < b.name; });
  return strength;
}

// The numbers in a name, and what is left without them.
std::pair<std::string, std::vector<uint64_t>> name_and_numbers(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  std::pair<std::string, std::vector<uint64_t>> parts;
  while (!name.empty()) {
    const size_t digits = std::min(name.find_first_not_of(kDigits), name.size());
    if (digits == 0) {
      parts.first += name.front();
      name.remove_prefix(1);
      continue;
    }
    uint64_t number = UINT64_MAX;  // also where it is larger
    std::from_chars(name.data(), name.data() + digits, number);
    parts.first += '0';
    parts.second.push_back(number);
    name.remove_prefix(digits);
  }
  return parts;
}

// In the order in which they were made: writers lay headers out one behind the other, but put some into gaps
// that have become free. Where names differ in numbers alone (fold0, fold1, …), those say the order.
void sort_groups(std::vector<Hdf5Link>& groups) {
  if (groups.empty()) return;
  const auto [alike, first_numbers] = name_and_numbers(groups.front().name);
  const bool counted = std::all_of(groups.begin(), groups.end(), [&, &name = alike](const Hdf5Link& group) {
    return name_and_numbers(group.name).first == name;
  });
  std::sort(groups.begin(), groups.end(), [&](const Hdf5Link& a, const Hdf5Link& b) {
    if (!counted) return a.address < b.address;
    const auto numbers_a = name_and_numbers(a.name).second, numbers_b = name_and_numbers(b.name).second;
    return numbers_a != numbers_b ? numbers_a < numbers_b : a.name < b.name;
  });
}

// Finds the sets of one file. One thread at a time.
class SetFinder {
 public:
  explicit SetFinder(Hdf5File& file) : file_(file) {}

  Result<std::vector<Hdf5Set>> run() {
    std::vector<Hdf5Link> groups;
    PACKTRAIN_TRY(add_group("", file_.root(), &groups));
    if (!found_.empty() && found_.front().first == Strength::strong) return pick(Strength::strong);
    if (groups.size() > kMostGroups) {
      return Status(Code::unsupported, "holds " + count_in_words(groups.size()) +
                                           " groups; packtrain takes a group for a split, not for a sample: "
                                           "read it by h5py and pack the samples");
    }
    sort_groups(groups);
    for (const Hdf5Link& group : groups) PACKTRAIN_TRY(add_group(group.name, group.address, nullptr));
    drop_weak_root();
    for (Strength strength : {Strength::strong, Strength::weak}) {
      auto sets = pick(strength);
      if (!sets.empty()) return sets;
    }
    return Status(
        Code::unsupported,
        "holds no samples that packtrain can find: it looks for datasets of variable length, for NAME "
        "with NAME_offsets, and for arrays with labels beside them, in the root or in groups of the "
        "top; it holds " +
            (names_.empty() ? "nothing" : names_in_words(names_, names_count_)) + deeper_in_words());
  }

 private:
  std::vector<Hdf5Set> pick(Strength strength) {
    std::vector<Hdf5Set> sets;
    bool of_root = false;
    for (auto& [found, set] : found_) {
      if (found != strength || (of_root && !set.split.empty())) continue;
      of_root = set.split.empty();
      sets.push_back(std::move(set));
    }
    if (sets.empty()) return sets;
    std::vector<std::string>& left_out = sets.front().left_out;
    if (!of_root) left_out.insert(left_out.end(), of_no_split_.begin(), of_no_split_.end());
    return sets;
  }

  // Arrays of the root alone, such as a mean, are no samples where groups are called as splits are.
  void drop_weak_root() {
    const bool splits = std::any_of(found_.begin(), found_.end(),
                                    [](const auto& one) { return is_split_name(one.second.split); });
    if (splits && found_.front().second.split.empty()) found_.erase(found_.begin());
  }

  Status add_group(const std::string& name, uint64_t address, std::vector<Hdf5Link>* groups) {
    PACKTRAIN_ASSIGN(group, file_.object(address));
    if (!group.is_group) return Status(Code::corrupt, "`" + printable(name) + "/` is no group");
    PACKTRAIN_TRY(group.trouble);
    PACKTRAIN_ASSIGN(links, file_.links(group));
    Datasets datasets;
    for (const Hdf5Link& link : links) {
      if (++opened_ > kMostObjects) {
        return Status(Code::unsupported, "holds more than " + count_in_words(kMostObjects) +
                                             " objects; packtrain takes a dataset for a column, not for a "
                                             "sample: read it by h5py and pack the samples");
      }
      if (!seen_.insert(link.address).second) continue;  // a second name of the same object
      PACKTRAIN_ASSIGN(object, file_.object(link.address));
      if (object.is_group && groups != nullptr) groups->push_back(link);
      if (object.is_group && groups == nullptr && deeper_.size() < kNamed) {
        deeper_.push_back(link);
        deeper_.back().name.insert(0, name + "/");
      }
      if (!object.is_dataset) continue;
      if (names_.size() < kNamed) names_.push_back(name.empty() ? link.name : name + "/" + link.name);
      ++names_count_;
      datasets.emplace(link.name, std::move(object));
    }
    if (!name.empty()) return add_set(name, std::move(datasets)).status();
    const std::vector<SplitCandidate> candidates = split_candidates(datasets);
    PACKTRAIN_ASSIGN(divided, are_divided(candidates));
    for (const SplitCandidate& array : candidates) {
      if (!divided || array.split.empty()) of_no_split_.push_back(array.name);
    }
    if (divided) return add_splits(std::move(datasets));
    const bool splits = groups != nullptr && std::any_of(groups->begin(), groups->end(), [](const auto& one) {
                          return is_split_name(one.name);
                        });
    if (splits) std::erase_if(datasets, [](const auto& one) { return is_class_list(one.first); });
    return add_set(name, std::move(datasets)).status();
  }

  static std::optional<std::pair<std::string, std::string>> divide(const std::string& name,
                                                                   const Datasets& datasets) {
    return divide_split(name, [&](const std::string& other) { return datasets.contains(other); });
  }

  // The datasets of the root, as far as they may be columns.
  static std::vector<SplitCandidate> split_candidates(const Datasets& datasets) {
    std::vector<SplitCandidate> candidates;
    for (const auto& [name, dataset] : datasets) {
      if (dataset.shape.empty()) continue;
      SplitCandidate mine{.name = name, .samples = hdf5_rows(dataset)};
      if (auto parts = divide(name, datasets)) {
        mine.column = parts->first;
        mine.split = parts->second;
      }
      const auto offsets = datasets.find(name + std::string(kOffsetsSuffix));
      const bool ragged = offsets != datasets.end() && is_integer_vector(offsets->second) &&
                          hdf5_rows(offsets->second) > 0 && is_vector(dataset) && is_fixed(dataset.type);
      if (ragged) mine.samples = hdf5_rows(offsets->second) - 1;
      const bool helps =
          std::any_of(std::begin(kHelperSuffixes), std::end(kHelperSuffixes), [&, &name = name](auto suffix) {
            return name.ends_with(suffix) && datasets.contains(name.substr(0, name.size() - suffix.size()));
          });
      if (helps) continue;
      const ColumnKind kind = column_kind(dataset);
      mine.payload = ragged || !is_vector(dataset) || kind == ColumnKind::bytes;
      mine.role = !ragged && column_role(mine.split.empty() ? name : mine.column, kind) != ColumnRole::field;
      candidates.push_back(std::move(mine));
    }
    return candidates;
  }

  // A split of the root that has no labels counts as much as those that have some.
  Status add_splits(Datasets&& datasets) {
    std::map<std::pair<bool, std::string>, Datasets> splits;
    std::map<std::string, std::optional<std::pair<std::string, std::string>>> names;
    for (const auto& [name, dataset] : datasets) names[name] = divide(name, datasets);
    for (auto& [name, dataset] : datasets) {
      const auto parts = names.at(name);
      if (!parts) continue;
      splits[{!is_first_split(parts->second), parts->second}].emplace(parts->first, std::move(dataset));
    }
    Strength most = Strength::none;
    for (auto& [split, columns] : splits) {
      PACKTRAIN_ASSIGN(strength, add_set(split.second, std::move(columns)));
      most = std::max(most, strength);
    }
    for (auto& [strength, set] : found_) strength = most;
    return {};
  }

  Result<Strength> add_set(const std::string& name, Datasets datasets) {
    Hdf5Set set;
    set.split = name;
    auto strength = make_set(std::move(datasets), set);
    if (!strength.ok()) return name.empty() ? strength.status() : strength.status().at(printable(name));
    if (*strength == Strength::none) return strength;
    // A value takes a byte at least. Datasets that share their elements could claim any number.
    const uint64_t most = 4 * file_.bytes();
    uint64_t values = 0;
    if (__builtin_mul_overflow(set.samples, set.fields.size() + 1, &values) || values > most ||
        values_ > most - values) {
      return Status(Code::corrupt, "has more values than bytes");
    }
    values_ += values;
    found_.emplace_back(*strength, std::move(set));
    return strength;
  }

  // Adds the groups at or below one that hold datasets, down to a depth that no one nests data to.
  void find_data(const Hdf5Link& link, int depth, std::vector<std::string>& paths) {
    if (depth == 0 || paths.size() == kNamed) return;
    const auto group = file_.object(link.address);
    if (!group.ok() || !group->is_group || !group->trouble.ok()) return;
    const auto links = file_.links(*group);
    if (!links.ok()) return;
    bool data = false;
    for (Hdf5Link below : *links) {
      if (++opened_ > kMostObjects) break;
      if (!seen_.insert(below.address).second) continue;
      const auto object = file_.object(below.address);
      if (!object.ok()) continue;
      if (object->is_dataset && !data) paths.push_back(link.name);
      data = data || object->is_dataset;
      below.name.insert(0, link.name + "/");
      if (object->is_group) find_data(below, depth - 1, paths);
    }
  }

  std::string deeper_in_words() {
    constexpr int kDeepest = 16;
    std::vector<std::string> with_data;
    for (const Hdf5Link& group : deeper_) find_data(group, kDeepest, with_data);
    if (with_data.empty()) return "";
    return " there, and the groups " + names_in_words(with_data, with_data.size()) +
           " below, which are not read: copy what they hold to groups of the top, such as train and val "
           "(h5copy "
           "-i IN -s " +
           printable(with_data.front()) + " -o OUT -d train)";
  }

  static constexpr size_t kNamed = 5;
  std::vector<std::string> of_no_split_;  // datasets of the root, where groups or other names have the splits
  std::vector<Hdf5Link> deeper_;          // groups inside of groups, for a message
  Hdf5File& file_;
  std::vector<std::pair<Strength, Hdf5Set>> found_;
  std::set<uint64_t> seen_;         // addresses of objects
  std::vector<std::string> names_;  // of the first datasets, for a message
  size_t names_count_ = 0, opened_ = 0;
  uint64_t values_ = 0;  // of all sets
};

}  // namespace

Result<std::vector<Hdf5Set>> find_hdf5_sets(Hdf5File& file) { return SetFinder(file).run(); }

bool has_variable_length(const std::vector<Hdf5Set>& sets) {
  return std::any_of(sets.begin(), sets.end(), [](const Hdf5Set& set) {
    // A set without samples may have no field at all.
    if (set.fields.empty()) return set.keys && set.keys->type.variable();
    return std::any_of(set.fields.begin(), set.fields.end(),
                       [](const Hdf5Column& column) { return column.kind == Hdf5Column::Kind::values; });
  });
}

}  // namespace packtrain
