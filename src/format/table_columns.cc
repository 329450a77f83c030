#include "format/table_columns.h"

#include <algorithm>

#include "base/json.h"
#include "base/words.h"
#include "format/table.h"

namespace packtrain {
namespace {

// Whether a feature of Hugging Face datasets is one of named classes.
bool is_class_label(const Json& feature) { return feature["_type"].as_string() == "ClassLabel"; }

// Of several columns with named classes, the one that is most likely meant: lower is more so.
size_t label_rank(std::string_view name) {
  constexpr std::string_view kRanks[] = {"label", "labels", "fine_label"};
  return static_cast<size_t>(std::find(std::begin(kRanks), std::end(kRanks), name) - std::begin(kRanks));
}

Json features_of(std::string_view huggingface) {
  if (huggingface.empty()) return {};
  auto parsed = Json::parse(huggingface);
  return parsed.ok() ? (*parsed)["info"]["features"] : Json();
}

}  // namespace

TableRoles table_roles(std::span<const TableColumn> columns, std::string_view huggingface) {
  const Json features = features_of(huggingface);
  TableRoles roles;
  size_t class_label = TableRoles::kNone;
  std::vector<size_t> labels;  // all columns that could be
  for (size_t i = 0; i < columns.size(); ++i) {
    const ColumnRole role = column_role(columns[i].name, columns[i].kind);
    if (role == ColumnRole::label && roles.label == TableRoles::kNone) roles.label = i;
    if (role == ColumnRole::key && roles.key == TableRoles::kNone) roles.key = i;
    const bool named = columns[i].kind == ColumnKind::integers && is_class_label(features[columns[i].name]);
    if (named && (class_label == TableRoles::kNone ||
                  label_rank(columns[i].name) < label_rank(columns[class_label].name)))
      class_label = i;
    if (named || role == ColumnRole::label) labels.push_back(i);
  }
  // What says that it is a label counts for more than what is only called so.
  if (class_label != TableRoles::kNone) roles.label = class_label;
  for (const size_t i : labels) {
    if (i != roles.label) roles.other_labels.emplace_back(columns[i].name);
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto& [name, kind] = columns[i];
    if (i == roles.label || i == roles.key) continue;
    if (kind != ColumnKind::bytes && kind != ColumnKind::text) {
      roles.left_out.emplace_back(name);
      continue;
    }
    if (name == "cls" && roles.label == TableRoles::kNone) roles.label_text = i;
    roles.fields.push_back(i);
  }
  if (roles.label == TableRoles::kNone) return roles;
  const Json& label = features[columns[roles.label].name];
  if (!is_class_label(label)) return roles;
  for (const Json& name : label["names"].items()) roles.classes.push_back(name.as_string());
  const std::set<std::string> different(roles.classes.begin(), roles.classes.end());
  if (different.size() != roles.classes.size() || different.contains("")) roles.classes.clear();
  return roles;
}

void note_columns(std::span<const TableColumn> columns, const TableRoles& roles,
                  const IndexOptions& options) {
  if (roles.label == TableRoles::kNone) {
    for (const auto& [name, kind] : columns) {
      if (!is_label_name(name) || (name == "cls" && kind != ColumnKind::other)) continue;
      note_no_labels(options, name,
                     kind == ColumnKind::text    ? "texts"
                     : kind == ColumnKind::bytes ? "bytes"
                                                 : "something else than whole numbers");
    }
  }
  for (const std::string& name : roles.other_labels) {
    add_note(options, "the labels are those of `" + printable(columns[roles.label].name) + "`; `" +
                          printable(name) +
                          "` holds labels too and is left out: to use it, write the table without the other");
  }
  if (options.columns == nullptr) return;
  for (const std::string& name : roles.left_out) {
    const auto& known = options.columns->names;
    if (std::find(known.begin(), known.end(), name) == known.end()) note_left_out(name, *options.columns);
  }
}

Status no_fields(std::span<const TableColumn> columns) {
  std::vector<std::string> names;
  for (const TableColumn& column : columns) {
    if (names.size() == MembersLeftOut::kNamed) break;
    names.emplace_back(column.name);
  }
  return Status(Code::unsupported,
                "has no column of bytes or texts, which could be a field of samples; its columns are " +
                    (names.empty() ? "none" : names_in_words(names, columns.size())));
}

Result<int64_t> named_label(int64_t label, const std::vector<std::string>& classes) {
  if (classes.empty()) return label;
  if (label < 0) return kNoLabel;
  if (static_cast<uint64_t>(label) < classes.size()) return label;
  return Status(Code::corrupt, "label " + std::to_string(label) + " is none of the " +
                                   count_in_words(classes.size()) + " classes that the table names");
}

TableFieldNames::TableFieldNames(std::span<const TableColumn> columns, const TableRoles& roles)
    : names_(roles.fields.size()) {
  for (const size_t column : roles.fields) columns_.emplace_back(columns[column].name);
  // Columns that say their field's name come first: no other is called so.
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!is_named_by_content(columns_[i])) names_[i] = unused(columns_[i]);
  }
}

void TableFieldNames::settle(size_t field, Bytes first) {
  std::string wanted = field_of_column(columns_[field], first);
  names_[field] = taken_.contains(wanted) ? unused(columns_[field]) : unused(wanted);
}

std::string TableFieldNames::unused(std::string_view wanted) {
  std::string name(wanted.empty() ? "bin" : wanted);
  for (int number = 2; !taken_.insert(name).second; ++number)
    name = std::string(wanted) + "_" + std::to_string(number);
  return name;
}

}  // namespace packtrain
