#include "format/array_groups.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/words.h"

namespace packtrain {
namespace {

constexpr std::string_view kSplits[] = {"train", "training", "val", "valid", "validation", "test", "testing"};

ColumnKind kind_of(const ArrayColumn& column) {
  const bool one_each = column.shape.size() == 1 || (column.shape.size() == 2 && column.shape[1] == 1);
  if (column.type.is_integer() && one_each) return ColumnKind::integers;
  switch (column.type.kind) {
    case ArrayType::Kind::bytes:
    case ArrayType::Kind::text:
    case ArrayType::Kind::long_text:
      return column.shape.size() == 1 ? ColumnKind::text : ColumnKind::other;
    default:
      return ColumnKind::other;
  }
}

// How much an array's length counts for that of the table.
int weight(const ArraysByName& arrays, const ArrayColumn& column, std::string_view name) {
  if (is_ragged(arrays, column, name)) return 2;
  return column.shape.size() > 1 ? 1 : 0;
}

bool says_that_it_is_a_table(const ArraysByName& arrays) {
  for (const auto& [name, column] : arrays) {
    if (is_ragged(arrays, *column, name) || role_of(arrays, *column, name) != ColumnRole::field) return true;
  }
  return false;
}

}  // namespace

bool is_split_name(std::string_view name) {
  return std::find(std::begin(kSplits), std::end(kSplits), name) != std::end(kSplits);
}

std::optional<std::pair<std::string, std::string>> divide_split(std::string_view name) {
  for (std::string_view split : kSplits) {
    if (name.size() <= split.size() + 1) continue;
    if (name.starts_with(split) && name[split.size()] == '_')
      return std::pair(std::string(name.substr(split.size() + 1)), std::string(split));
    if (name.ends_with(split) && name[name.size() - split.size() - 1] == '_')
      return std::pair(std::string(name.substr(0, name.size() - split.size() - 1)), std::string(split));
  }
  return std::nullopt;
}

std::optional<std::pair<std::string, std::string>> divide_split(
    std::string_view name, const std::function<bool(const std::string&)>& exists) {
  for (std::string_view suffix : {kOffsetsSuffix, kHeaderSuffix, kPresentSuffix}) {
    if (!name.ends_with(suffix)) continue;
    const std::string base(name.substr(0, name.size() - suffix.size()));
    auto parts = exists(base) ? divide_split(base) : std::nullopt;
    if (!parts) continue;
    parts->first.append(suffix);
    return parts;
  }
  return divide_split(name);
}

bool is_class_list(std::string_view name) {
  return name == "classes" || name == "class_names" || name == "list_classes" || name == "label_names";
}

bool is_first_split(std::string_view split) { return split.starts_with("train"); }

const ArrayColumn* find_array(const ArraysByName& arrays, std::string_view name, std::string_view suffix) {
  const auto found = arrays.find(std::string(name).append(suffix));
  return found == arrays.end() ? nullptr : found->second;
}

bool is_ragged(const ArraysByName& arrays, const ArrayColumn& column, std::string_view name) {
  const ArrayColumn* offsets = find_array(arrays, name, kOffsetsSuffix);
  return offsets != nullptr && offsets->type.is_integer() && offsets->shape.size() == 1 &&
         offsets->rows() > 0 && column.shape.size() == 1;
}

bool is_helper(const ArraysByName& arrays, std::string_view name) {
  for (std::string_view suffix : {kOffsetsSuffix, kHeaderSuffix, kPresentSuffix}) {
    if (name.ends_with(suffix) && find_array(arrays, name.substr(0, name.size() - suffix.size())) != nullptr)
      return true;
  }
  return false;
}

ColumnRole role_of(const ArraysByName& arrays, const ArrayColumn& column, std::string_view name) {
  if (is_ragged(arrays, column, name))
    return column_role(name, ColumnKind::text) == ColumnRole::key ? ColumnRole::key : ColumnRole::field;
  return column_role(name, kind_of(column));
}

uint64_t samples_of(const ArraysByName& arrays, const ArrayColumn& column, std::string_view name) {
  return is_ragged(arrays, column, name) ? find_array(arrays, name, kOffsetsSuffix)->rows() - 1
                                         : column.rows();
}

Result<uint64_t> count_samples(const ArraysByName& arrays) {
  int heaviest = 0;
  for (const auto& [name, column] : arrays) {
    if (!is_helper(arrays, name)) heaviest = std::max(heaviest, weight(arrays, *column, name));
  }
  std::string_view first;
  uint64_t samples = 0;
  for (const auto& [name, column] : arrays) {
    if (is_helper(arrays, name) || weight(arrays, *column, name) < heaviest) continue;
    const uint64_t mine = samples_of(arrays, *column, name);
    if (!first.empty() && mine != samples) {
      return Status(Code::unsupported, "the array " + printable(first) + " has " + counted(samples, "row") +
                                           ", " + printable(name) + " has " + count_in_words(mine) +
                                           "; save arrays with one row for each sample");
    }
    samples = mine;
    first = name;
  }
  return samples;
}

bool is_aside(const ArraysByName& arrays, const ArrayColumn& column, std::string_view name,
              uint64_t samples) {
  if (column.shape.size() != 1 || samples_of(arrays, column, name) == samples) return false;
  // A "y" of whole numbers may be a label or a coordinate.
  return role_of(arrays, column, name) == ColumnRole::field || name == "y";
}

Status check_not_one_each(const std::vector<NamedShape>& arrays) {
  constexpr size_t kMany = 8;
  constexpr std::string_view kDigits = "0123456789";
  struct Alike {
    std::vector<std::string_view> names;
    std::set<uint64_t> numbers;  // the last in each name
    bool padded = false;
  };
  std::map<std::string, Alike> all;
  for (const NamedShape& array : arrays) {
    const std::string_view name = array.name;
    const size_t last = name.find_last_of(kDigits);
    if (last == std::string_view::npos) continue;
    std::string without;
    for (const char letter : name) {
      const bool digit = kDigits.find(letter) != std::string_view::npos;
      if (!digit || without.empty() || without.back() != '0') without += digit ? '0' : letter;
    }
    Alike& mine = all[without + '/' + array.shape];
    const size_t before = name.find_last_not_of(kDigits, last);
    const std::string_view number = name.substr(before + 1, last - before);
    uint64_t value = 0;
    std::from_chars(number.data(), number.data() + number.size(), value);
    mine.names.push_back(name);
    mine.numbers.insert(value);
    mine.padded = mine.padded || (number.size() > 1 && number.front() == '0');
  }
  for (const auto& [kind, mine] : all) {
    if (mine.names.size() < kMany) continue;
    const bool counted_up = mine.numbers.size() == mine.names.size() &&
                            *mine.numbers.rbegin() - *mine.numbers.begin() + 1 == mine.numbers.size();
    if (!counted_up && !mine.padded) continue;
    return Status(
        Code::unsupported,
        "holds " + count_in_words(mine.names.size()) + " arrays of one type and shape (" +
            printable(mine.names[0]) + ", " + printable(mine.names[1]) +
            ", …); packtrain takes an array for a column of all samples, not for one sample: save them "
            "as one array with a row for each sample (numpy.stack), with labels or keys beside it if "
            "there are any");
  }
  return {};
}

Status check_not_one_each(const ArraysByName& arrays) {
  if (says_that_it_is_a_table(arrays)) return {};
  std::vector<NamedShape> named;
  for (const auto& [name, column] : arrays) {
    std::string shape = column->word + "/" + std::to_string(column->type.item_bytes);
    for (const uint64_t size : column->shape) shape += "," + std::to_string(size);
    named.push_back({name, std::move(shape)});
  }
  return check_not_one_each(named);
}

Result<bool> are_divided(const std::vector<SplitCandidate>& arrays) {
  const auto any = [](const std::vector<const SplitCandidate*>& of, bool SplitCandidate::*what) {
    return std::any_of(of.begin(), of.end(), [&](const SplitCandidate* one) { return one->*what; });
  };
  std::vector<const SplitCandidate*> divided, others;
  std::map<std::string_view, std::set<std::string_view>> splits;  // of each column
  for (const SplitCandidate& array : arrays) {
    if (!array.split.empty()) {
      divided.push_back(&array);
      splits[array.column].insert(array.split);
    } else if (!is_class_list(array.name)) {
      others.push_back(&array);
    }
  }
  if (divided.empty()) return false;
  if (others.empty()) return true;
  const bool in_groups = any(divided, &SplitCandidate::in_group);
  const bool payload = any(divided, &SplitCandidate::payload);
  // Vectors beside arrays of rows say something about those: y, train_mask and test_index of x.
  const bool only_truths =
      std::all_of(divided.begin(), divided.end(), [](const auto* one) { return one->is_truth; });
  if (!in_groups && ((!payload && any(others, &SplitCandidate::payload)) || only_truths)) return false;
  const auto has_rows_of_all = [&](const SplitCandidate* other) {
    return std::all_of(divided.begin(), divided.end(), [&](const SplitCandidate* one) {
      return (payload && !one->payload) || one->samples == other->samples;
    });
  };
  // Groups leave no doubt, unless the arrays beside them are a table of their own.
  const bool other_table = !in_groups || any(others, &SplitCandidate::payload);
  const auto in_doubt = std::find_if(others.begin(), others.end(), [&](const SplitCandidate* other) {
    return (!in_groups && has_rows_of_all(other)) || (other_table && other->role);
  });
  if (in_doubt == others.end()) return true;
  const bool repeated =
      std::any_of(splits.begin(), splits.end(), [](const auto& column) { return column.second.size() > 1; });
  if (!repeated && !in_groups) return false;
  return Status(Code::unsupported,
                "the names of " + printable(divided.front()->name) +
                    " and other arrays carry a split, that of " + printable((*in_doubt)->name) +
                    " does not, so that it is not clear whether there is a table for each split or one of "
                    "all; save the arrays of each split under names like x_train, x_test, or put what "
                    "belongs to no split into another file");
}

Result<ArrayGroups> array_groups(const ArrayTable& table) {
  ArrayGroup all;
  for (const ArrayColumn& column : table.arrays) {
    if (!column.shape.empty()) all.arrays[column.name] = &column;
  }
  const auto exists = [&](const std::string& name) { return all.arrays.contains(name); };
  std::map<std::pair<int, std::string>, ArrayGroup> splits;
  std::vector<SplitCandidate> candidates;
  ArrayGroups groups;
  for (const auto& [name, column] : all.arrays) {
    SplitCandidate mine{.name = name, .in_group = !column->split.empty()};
    if (mine.in_group) {
      mine.column = name.substr(column->split.size() + 1);
      mine.split = column->split;
    } else if (auto parts = divide_split(name, exists)) {
      mine.column = parts->first;
      mine.split = parts->second;
    }
    if (mine.split.empty()) {
      if (!is_helper(all.arrays, name)) groups.aside.push_back(name);
    } else {
      ArrayGroup& group = splits[{is_first_split(mine.split) ? 0 : 1, mine.split}];
      group.split = mine.split;
      group.arrays[mine.column] = column;
    }
    if (is_helper(all.arrays, name)) continue;
    mine.samples = samples_of(all.arrays, *column, name);
    mine.payload = weight(all.arrays, *column, name) > 0;
    mine.role = role_of(all.arrays, *column, mine.split.empty() ? name : mine.column) != ColumnRole::field;
    mine.is_truth = column->type.kind == ArrayType::Kind::truth && column->shape.size() == 1;
    candidates.push_back(std::move(mine));
  }
  PACKTRAIN_ASSIGN(divided, are_divided(candidates));
  if (divided) {
    for (auto& [order, mine] : splits) groups.groups.push_back(std::move(mine));
  } else {
    groups.aside.clear();
    groups.groups.push_back(std::move(all));
  }
  return groups;
}

bool is_array_table(const ArrayTable& table) {
  uint64_t fewest = UINT64_MAX, arrays = 0;
  const auto groups = array_groups(table);
  if (!groups.ok()) return true;  // a table, though not clear which: who reads it says so
  for (const ArrayGroup& mine : groups->groups) {
    if (says_that_it_is_a_table(mine.arrays)) return true;
    const auto samples = count_samples(mine.arrays);
    if (!samples.ok()) return false;
    fewest = std::min(fewest, *samples);
    for (const auto& [name, column] : mine.arrays) {
      if (!is_aside(mine.arrays, *column, name, *samples)) ++arrays;
    }
  }
  return arrays > 0 && arrays <= fewest;
}

}  // namespace packtrain
