// ListRows: what all lists share: rows of a path, a label and further values, to samples of a catalog.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/json.h"
#include "pack/list_labels.h"
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
// A first line that names a file is no heading: packing it as one would lose the file.
Status check_heading(const std::vector<std::string>& columns, std::span<const std::string_view> path_names);
Status no_path_column(const std::vector<std::string>& columns, std::string_view wanted);

// --label-column none: no column is the label, unless one has that very name.
inline constexpr std::string_view kNoLabelColumn = "none";
bool no_label_wanted(const ScanOptions& options, const std::vector<std::string>& columns);
// The error for a label column that is named and not there.
Status no_label_column(const std::vector<std::string>& columns, std::string_view wanted);
// Tells among the catalog's warnings that nothing in a list was taken for labels.
void note_missing_label(ScanContext& context, const Source& source, const std::vector<std::string>& columns);

// Tells that several columns may hold labels, and that `label` was taken.
void note_several_labels(ScanContext& context, const Source& source, const std::vector<std::string>& columns,
                         std::string_view label);

// The column that says which split a row belongs to: the one that --split-column names, else one called
// "split", unless that is the column of paths or labels. kNoColumn if there is none, and where the user named
// the source's split: that a column is not used then, or was guessed, is told once the list is read.
Result<size_t> find_split_column(const ScanOptions& options, const std::vector<std::string>& columns,
                                 std::string_view path, std::string_view label);

// Takes the rows of one list, in order. What the paths are relative to and what the labels mean is known at
// the end. One thread at a time.
class ListRows {
 public:
  ListRows(ScanContext& context, const Source& source)
      : context_(context), source_(source), labels_(!context.options.classes_file.empty()) {}

  // `where` names the row for errors.
  Status begin(std::string_view path, std::string_view where);
  void number_label(int64_t label) { labels_.add_number(context_.out, label, where_); }
  void text_label(std::string_view label) { labels_.add_text(context_.out, label, where_); }
  void json_label(const Json& label, Json& rest);  // what is no label joins `rest` as "label"
  // Which split the row says it belongs to, if the list has a column for it; called `column` in notes.
  void row_split(std::string_view split, std::string_view column);
  Status end(const Json& further);                          // an object: a field "json", unless it is empty
  bool is_named() const { return !source_.split.empty(); }  // by the user: its rows make no splits
  CatalogBuilder& out() { return context_.out; }

  Status finish();

 private:
  // What a row says in a column that is neither its path, label nor split, and may be the name of a file.
  struct FurtherFile {
    std::string column, path;
  };
  Status settle_root();
  Status settle_split();
  Status check_splits();
  void note_further_files(const std::string& root);

  ScanContext& context_;
  const Source& source_;
  ListLabels labels_;
  bool begun_ = false;
  std::string root_folder_;  // what absolute paths may lie in: --root or the list's folder
  std::string where_;        // the row begun last
  std::string split_column_, split_, row_split_, first_without_split_;  // split_: the last one settled
  uint32_t split_number_ = 0;
  uint64_t rows_ = 0, rows_with_split_ = 0;
  std::vector<std::string> splits_;         // that the column names, in the order of first use
  std::vector<FurtherFile> further_files_;  // of the first rows
  std::string path_;                        // of the row begun last, tidied
  size_t first_sample_ = 0;
  std::unordered_set<uint64_t> folders_;  // hashes
};

}  // namespace packtrain
