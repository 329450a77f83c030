// Which samples --split and --class leave.
#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <vector>

#include "base/words.h"
#include "packtrain/pack.h"

namespace packtrain {
namespace {

// "; it has a, b and 7 more", or that there is none.
std::string what_there_is(const std::vector<std::string>& names, std::string_view none) {
  if (names.empty()) return "; " + std::string(none);
  return "; it has " + names_in_words(names, names.size());
}

std::vector<std::string> labels_in_use(const Dataset& dataset) {
  std::set<int64_t> labels;
  for (const int64_t label : dataset.labels())
    if (label != kNoLabel) labels.insert(label);
  std::vector<std::string> words;
  words.reserve(labels.size());
  for (const int64_t label : labels) words.push_back(std::to_string(label));
  return words;
}

Result<int64_t> label_of(const Dataset& dataset, std::string_view name) {
  const std::vector<std::string>& classes = dataset.manifest().classes;
  if (const auto named = std::find(classes.begin(), classes.end(), name); named != classes.end())
    return named - classes.begin();
  // Or as it is shown: a manifest holds no other bytes than UTF-8, and a class with others is called so
  // there.
  const std::string shown = printable(name);
  const auto same = std::find_if(classes.begin(), classes.end(),
                                 [&](const std::string& each) { return printable(each) == shown; });
  if (same != classes.end()) return same - classes.begin();
  int64_t label = kNoLabel;
  const auto is_number = [&label](std::string_view text) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
    return error == std::errc() && end == text.data() + text.size();
  };
  // Where classes are called by numbers, a number is a name: class number 2 may be called "10".
  if (std::none_of(classes.begin(), classes.end(), is_number) && is_number(name)) {
    const auto labels = dataset.labels();
    const bool is_class = label >= 0 && label < static_cast<int64_t>(classes.size());
    if (is_class || std::find(labels.begin(), labels.end(), label) != labels.end()) return label;
  }
  return Status(Code::not_found, "there is no class '" + printable(name) + "'" +
                                     what_there_is(classes.empty() ? labels_in_use(dataset) : classes,
                                                   "the dataset has no classes"));
}

}  // namespace

Result<Selection> select_samples(const Dataset& dataset, std::string_view split,
                                 std::string_view class_name) {
  Selection selection{0, dataset.samples(), kNoLabel};
  if (!split.empty()) {
    const std::vector<SplitSpec>& splits = dataset.manifest().splits;
    const auto at =
        std::find_if(splits.begin(), splits.end(), [&](const SplitSpec& each) { return each.name == split; });
    if (at == splits.end()) {
      std::vector<std::string> names;
      names.reserve(splits.size());
      for (const SplitSpec& each : splits) names.push_back(each.name);
      return Status(Code::not_found, "there is no split '" + printable(split) + "'" +
                                         what_there_is(names, "the dataset has no splits"));
    }
    selection.first = at->first;
    selection.end = at->first + at->count;
  }
  if (class_name.empty()) return selection;
  PACKTRAIN_ASSIGN(label, label_of(dataset, class_name));
  selection.label = label;
  return selection;
}

}  // namespace packtrain
