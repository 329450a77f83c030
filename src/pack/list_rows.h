// ListRows: what all lists share: rows of a path, a label and further values, to samples of a catalog.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/json.h"
#include "pack/sources.h"

namespace packtrain {

// Names of columns that lists in the wild use, in the order in which they are tried.
std::span<const std::string_view> path_column_names();
std::span<const std::string_view> label_column_names();
std::span<const std::string_view> caption_column_names();
constexpr size_t kNoColumn = SIZE_MAX;
// The column called `wanted`, or if that is empty the first of `common` that is there, whatever its case.
size_t find_column(const std::vector<std::string>& columns, std::string_view wanted,
                   std::span<const std::string_view> common);
// The error for a list whose path column is not known.
Status no_path_column(const std::vector<std::string>& columns, std::string_view wanted);

// What paths of a list are relative to: --root; the list's folder; or a folder in it or beside it where
// `first_path` is, if it is not in the list's own folder (flickr30k_images/ beside results.csv, val2017/
// beside annotations/).
std::string find_root(ScanContext& context, const Source& source, std::string_view first_path);

// Takes the rows of one list, in order. Labels may be numbers or names; which, is known at the end: names if
// a single one is no number. One thread at a time.
class ListRows {
 public:
  ListRows(ScanContext& context, const Source& source) : context_(context), source_(source) {}

  // `where` names the row for errors. The first one decides the root.
  Status begin(std::string_view path, std::string_view where);
  void number_label(int64_t label);
  void text_label(std::string_view label);           // empty: none
  Status json_label(const Json& label, Json& rest);  // what is no label joins `rest` as "label"
  Status end(const Json& further);                   // an object: a field "json", unless it is empty
  CatalogBuilder& out() { return context_.out; }

  Status finish();

 private:
  ScanContext& context_;
  const Source& source_;
  bool begun_ = false;
  uint32_t root_ = 0, split_ = 0;
  size_t first_sample_ = 0;
  bool any_number_ = false;                            // as a number, not as digits
  bool any_word_ = false;                              // a text that is no whole number
  std::unordered_map<std::string, int64_t> text_ids_;  // provisional labels of texts
  std::vector<std::string> texts_;
  std::unordered_set<uint64_t> folders_;  // hashes
};

}  // namespace packtrain
