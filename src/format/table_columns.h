// From the columns of a table to fields, labels and keys, for formats that are tables: Arrow and Parquet.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/columns.h"
#include "packtrain/format.h"
#include "packtrain/status.h"

namespace packtrain {

struct TableColumn {
  std::string_view name;
  ColumnKind kind = ColumnKind::other;
};

// Which column is what, by its place in the table.
struct TableRoles {
  static constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> fields;  // bytes and texts
  size_t label = kNone, key = kNone;
  size_t label_text = kNone;              // a field "cls", where no column of numbers is the label
  std::vector<std::string> classes;       // names of the labels, if the table has them
  std::vector<std::string> left_out;      // names of the columns that are none of these
  std::vector<std::string> other_labels;  // those among them that hold labels too
};
// `huggingface`: what Hugging Face datasets has put into the table's metadata, JSON that tells which column
// holds labels and what they are called; may be empty.
TableRoles table_roles(std::span<const TableColumn> columns, std::string_view huggingface);

// Tells the caller which columns are left out, and which are no labels although they are called so.
void note_columns(std::span<const TableColumn> columns, const TableRoles& roles, const IndexOptions& options);

// A table with rows, and nothing in it that could be a field.
Status no_fields(std::span<const TableColumn> columns);

// The label as the index has it: none for a negative one where labels have names, which is how test sets are
// marked. One that has no name is Code::corrupt.
Result<int64_t> named_label(int64_t label, const std::vector<std::string>& classes);

// Names for the fields of one table, all different. One thread at a time.
class TableFieldNames {
 public:
  TableFieldNames(std::span<const TableColumn> columns, const TableRoles& roles);
  // Whether the name of a field (by its place in roles.fields) waits for the first bytes of a value.
  bool waits(size_t field) const { return names_[field].empty(); }
  void settle(size_t field, Bytes first);
  const std::string& name(size_t field) const { return names_[field]; }

 private:
  std::string unused(std::string_view wanted);

  std::vector<std::string> columns_;  // of the fields
  std::vector<std::string> names_;    // empty: not settled
  std::set<std::string> taken_;
};

}  // namespace packtrain
