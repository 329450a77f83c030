#include "format/array_groups.h"

#include <algorithm>

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

std::vector<ArrayGroup> array_groups(const ArrayTable& table) {
  ArrayGroup all;
  std::map<std::pair<int, std::string>, ArrayGroup> splits;
  bool divided = true;
  for (const ArrayColumn& column : table.arrays) {
    if (column.shape.empty()) continue;
    all.arrays[column.name] = &column;
    const auto parts = divide_split(column.name);
    divided = divided && parts;
    if (!divided) continue;
    ArrayGroup& mine = splits[{is_first_split(parts->second) ? 0 : 1, parts->second}];
    mine.split = parts->second;
    mine.arrays[parts->first] = &column;
  }
  std::vector<ArrayGroup> groups;
  if (divided && !splits.empty()) {
    for (auto& [order, mine] : splits) groups.push_back(std::move(mine));
  } else {
    groups.push_back(std::move(all));
  }
  return groups;
}

bool is_array_table(const ArrayTable& table) {
  uint64_t fewest = UINT64_MAX, arrays = 0;
  for (const ArrayGroup& mine : array_groups(table)) {
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
