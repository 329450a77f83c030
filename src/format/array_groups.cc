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
