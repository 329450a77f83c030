// Which arrays of a container belong together, and what each of them is for: the rules of array_table.h.
#pragma once

#include <cstdint>
#include <functional>
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
struct ArrayGroups {
  std::vector<ArrayGroup> groups;
  std::vector<std::string> aside;  // of no split, beside those that have one
};
// One group, or one for each split where are_divided says so; training comes first, then by name.
Result<ArrayGroups> array_groups(const ArrayTable& table);

bool is_split_name(std::string_view name);  // "train", "val", "test" and the like
// "x_train" and "train_x" divided into "x" and "train"; nothing where the name has no split.
std::optional<std::pair<std::string, std::string>> divide_split(std::string_view name);
// The same where `exists` says which other names there are: "x_train_offsets" goes with "x_train".
std::optional<std::pair<std::string, std::string>> divide_split(
    std::string_view name, const std::function<bool(const std::string&)>& exists);
// Whether the split stands in front of the others: that for training.
bool is_first_split(std::string_view split);
// "classes" and the like: names of classes, which are no rows of any split.
bool is_class_list(std::string_view name);

// An array, as far as it tells whether it and those beside it are divided into splits.
struct SplitCandidate {
  std::string name;
  std::string column, split;  // what its name, or the group that it lies in, is divided into; or empty
  bool in_group = false;      // a group that is a split holds it, which leaves no doubt
  uint64_t samples = 0;
  bool payload = false;   // several axes, or stretches: vectors may say something about other arrays
  bool role = false;      // labels or keys
  bool is_truth = false;  // one truth for each sample, as masks of splits are
};
// Whether arrays whose names carry a split (x_train, y_train, x_test, …) hold a table for each split; arrays
// of no split beside them are then left out. Such a name may also be that of a column (train_mask), and an
// array beside them may be one more column of a single table. Where both could be meant, and one of them
// would make one sample of rows of two splits, Code::unsupported.
Result<bool> are_divided(const std::vector<SplitCandidate>& arrays);

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
