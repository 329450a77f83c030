// Which arrays of a container belong together, and what each of them is for: the rules of array_table.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/array_table.h"
#include "format/columns.h"
#include "packtrain/status.h"

namespace packtrain {

using ArraysByName = std::map<std::string, const ArrayColumn*, std::less<>>;

// The arrays of one split, by their names without the split.
struct ArrayGroup {
  std::string split;
  ArraysByName arrays;
};
// One group, or one for each split where all names carry one; training comes first, then by name.
std::vector<ArrayGroup> array_groups(const ArrayTable& table);

bool is_split_name(std::string_view name);  // "train", "val", "test" and the like
// "x_train" and "train_x" divided into "x" and "train"; nothing where the name has no split.
std::optional<std::pair<std::string, std::string>> divide_split(std::string_view name);
// Whether the split stands in front of the others: that for training.
bool is_first_split(std::string_view split);

// Null if there is none.
const ArrayColumn* find_array(const ArraysByName& arrays, std::string_view name,
                              std::string_view suffix = "");
// Whether the array has offsets: samples are stretches of it, not rows.
bool is_ragged(const ArraysByName& arrays, const ArrayColumn& column, std::string_view name);
// Whether an array only says something about another one.
bool is_helper(const ArraysByName& arrays, std::string_view name);
ColumnRole role_of(const ArraysByName& arrays, const ArrayColumn& column, std::string_view name);
uint64_t samples_of(const ArraysByName& arrays, const ArrayColumn& column, std::string_view name);
// How many samples the arrays hold. Those with offsets say it, else those with several axes, else all; where
// these do not agree, Code::unsupported.
Result<uint64_t> count_samples(const ArraysByName& arrays);
// Whether an array says something about the whole, not about samples: one axis of another length, as the
// coordinates of xarray, means and lists of names have. Labels and keys of another length are a mistake.
bool is_aside(const ArraysByName& arrays, const ArrayColumn& column, std::string_view name, uint64_t samples);

// An array by its name, and a text that is the same for arrays of one type and shape.
struct NamedShape {
  std::string name, shape;
};
// Refuses a container that keeps an array for each sample: many of one type and shape whose names differ in a
// number that is counted up or filled with zeros. As columns they would make as many samples as one of them
// has rows. Other numbers tell columns apart, such as the levels of pressure in z50, z500, z1000.
Status check_not_one_each(const std::vector<NamedShape>& arrays);
// The same, for arrays that do not say themselves that they are a table: no labels, keys or offsets.
Status check_not_one_each(const ArraysByName& arrays);

}  // namespace packtrain
