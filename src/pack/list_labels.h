// ListLabels: what the labels of one list are: numbers, or names of classes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json.h"
#include "pack/catalog_builder.h"

namespace packtrain {

// Takes the labels of a list in the order of its samples; the same rule for every kind of list. All are whole
// numbers, or all are names: a stray word among numbers would renumber every class in silence, so a mixture
// is an error, unless --classes says that each of them is a name. One thread at a time.
class ListLabels {
 public:
  explicit ListLabels(bool classes_are_given) : classes_are_given_(classes_are_given) {}

  // Each is for the sample that `out` began last; `where` names its row for errors.
  void add_number(CatalogBuilder& out, int64_t label, std::string_view where);
  void add_text(CatalogBuilder& out, std::string_view text, std::string_view where);  // empty: none
  // False for what can be no label: several, a box. Null is none.
  bool add_json(CatalogBuilder& out, const Json& label, std::string_view where);

  // Once the list is read, whose samples are those from `first_sample` on: Code::invalid for labels that are
  // not of one kind, with the first that is not.
  Status finish(CatalogBuilder& out, size_t first_sample, std::string_view list) const;

 private:
  struct Kind {  // how many there are, and the first of them
    uint64_t count = 0;
    std::string first, where;
    void note(std::string_view text, std::string_view place);
  };
  int64_t word_id(std::string_view text);
  void add_whole_number(CatalogBuilder& out, int64_t label, std::string_view text, std::string_view where);
  Status mixture(const Kind& odd, std::string_view is, std::string_view others_are,
                 std::string_view advice) const;

  const bool classes_are_given_;
  Kind numbers_, words_, fractions_, structures_;  // fractions: numbers that are not whole, or too large
  // With classes, where a number may turn out to be a name: sample, and its position in distinct_words_.
  std::vector<std::pair<size_t, int64_t>> number_words_;
  std::unordered_map<std::string, int64_t> word_ids_;
  std::vector<std::string> distinct_words_;  // by the provisional label of the samples that have one
};

}  // namespace packtrain
