#include <algorithm>
#include <cmath>

#include "base/words.h"
#include "decode/pickle.h"
#include "decode/python_text.h"
#include "pack/captions.h"
#include "pack/list_rows.h"
#include "pack/table_text.h"
#include "packtrain/storage.h"

namespace packtrain {
namespace {

Status to_be_mended(const Status& status) {
  return Status(status.code(), status.message() + "; mend the list").at(status.where());
}

bool is_text(const PickleValue& value) {
  return value.kind == PickleKind::text || value.kind == PickleKind::bytes;
}

Status take_pickled_label(const PickleValue& label, ListRows& rows) {
  switch (label.kind) {
    case PickleKind::none:
      return {};
    case PickleKind::boolean:
    case PickleKind::integer:
      rows.number_label(label.integer);
      return {};
    case PickleKind::real:
      if (std::abs(label.real) < 9e15 && label.real == std::floor(label.real)) {
        rows.number_label(static_cast<int64_t>(label.real));
        return {};
      }
      break;
    case PickleKind::text:
    case PickleKind::bytes:
      rows.text_label(Pickle::text(label));
      return {};
    default:
      break;
  }
  return Status(Code::unsupported, "a label is a " + std::string(pickle_kind_name(label.kind)) +
                                       "; labels are whole numbers or names");
}

Status take_pickled_row(const PickleValue& path, const PickleValue* label, size_t number, ListRows& rows) {
  const std::string where = "entry " + std::to_string(number);
  if (!is_text(path))
    return Status(Code::unsupported, "a path is a " + std::string(pickle_kind_name(path.kind)) +
                                         "; packtrain reads {path: label}, [(path, label)] and [path]")
        .at(where);
  PACKTRAIN_TRY(rows.begin(fs_encode(Pickle::text(path)), where));
  if (label != nullptr) PACKTRAIN_TRY(take_pickled_label(*label, rows).at(where));
  return rows.end(Json::object());
}

Status take_pickled_rows(const Pickle& pickle, ListRows& rows) {
  const std::span<const PickleValue> items = pickle.items(pickle.root());
  switch (pickle.root().kind) {
    case PickleKind::dict:
      for (size_t i = 0; i + 1 < items.size(); i += 2)
        PACKTRAIN_TRY(take_pickled_row(items[i], &items[i + 1], i / 2, rows));
      return {};
    case PickleKind::list:
    case PickleKind::tuple:
      for (size_t i = 0; i < items.size(); ++i) {
        const std::span<const PickleValue> pair = pickle.items(items[i]);
        if (items[i].kind != PickleKind::dict && pair.size() == 2) {
          PACKTRAIN_TRY(take_pickled_row(pair[0], &pair[1], i, rows));
        } else {
          PACKTRAIN_TRY(take_pickled_row(items[i], nullptr, i, rows));
        }
      }
      return {};
    default:
      return Status(Code::unsupported, "holds a " + std::string(pickle_kind_name(pickle.root().kind)) +
                                           "; packtrain reads {path: label}, [(path, label)] and [path]");
  }
}

// Takes entries of a JSON list: objects, [path, label] pairs, or paths alone. One thread at a time.
class JsonRows {
 public:
  JsonRows(ScanContext& context, const Source& source)
      : context_(context), source_(source), rows_(context, source) {}

  Status take(const Json& entry, std::string_view where) {
    if (entry.is_string()) return take_labelled(entry.as_string(), Json(), Json::object(), where);
    if (entry.is_array() && entry.items().size() == 2 && entry.items()[0].is_string())
      return take_labelled(entry.items()[0].as_string(), entry.items()[1], Json::object(), where);
    if (!entry.is_object())
      return Status(Code::corrupt, "is neither an object, a [path, label] pair nor a path; write one of them")
          .at(where);
    const std::vector<std::string> names = names_of(entry);
    if (path_.empty()) {
      const size_t path = find_column(names, context_.options.path_column, path_column_names());
      if (path == kNoColumn) return no_path_column(names, context_.options.path_column).at(where);
      path_ = names[path];
    }
    if (!entry[path_].is_string())
      return Status(Code::corrupt, "has no text \"" + printable(path_) +
                                       "\"; give it one, or name another with --path-column")
          .at(where);
    return take_object(entry[path_].as_string(), entry, names, where);
  }

  // One member of {path: label} or {path: {"label": …, …}}.
  Status take_member(const std::string& path, const Json& value) {
    if (!value.is_object()) return take_labelled(path, value, Json::object(), path);
    return take_object(path, value, names_of(value), path);
  }

  Status finish() {
    PACKTRAIN_TRY(rows_.finish());
    if (!split_wanted_.ok()) return split_wanted_.at(printable(source_.path));
    if (!label_.empty()) note_several_labels(context_, source_, columns_, label_);
    if (!label_.empty() || columns_.empty() || no_label_wanted(context_.options, columns_)) return {};
    if (!context_.options.label_column.empty())
      return no_label_column(columns_, context_.options.label_column).at(printable(source_.path));
    if (columns_.size() > 1 || path_.empty()) note_missing_label(context_, source_, columns_);
    return {};
  }

 private:
  static std::vector<std::string> names_of(const Json& object) {
    std::vector<std::string> names;
    for (const auto& [name, value] : object.members()) names.push_back(name);
    return names;
  }

  // Most readers take the last of two members of one name, some the first: a label would be a guess.
  static Status check_members(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice == names.end()) return {};
    return Status(Code::corrupt,
                  "has \"" + printable(*twice) +
                      "\" more than once, and readers disagree on which one counts; leave one");
  }

  // The first object that has a label decides what it is called: not every sample needs one.
  Status take_object(const std::string& path, const Json& object, const std::vector<std::string>& names,
                     std::string_view where) {
    PACKTRAIN_TRY(check_members(names).at(where));
    if (columns_.size() < names.size()) columns_ = names;
    if (label_.empty() && !no_label_wanted(context_.options, names)) {
      const size_t label = find_column(names, context_.options.label_column, label_column_names());
      if (label != kNoColumn && names[label] != path_) label_ = names[label];
    }
    if (split_.empty()) {
      const auto split = find_split_column(context_.options, names, path_, label_);
      split_wanted_ = split.status();  // a later object may have it
      if (split.ok() && *split != kNoColumn) split_ = names[*split];
    }
    const bool splits = !split_.empty() && source_.split.empty();
    Json further = Json::object();
    for (const auto& [name, value] : object.members())
      if ((path_.empty() || name != path_) && (label_.empty() || name != label_) &&
          (!splits || name != split_))
        further.set(name, value);
    return take_labelled(path, label_.empty() ? Json() : object[label_], std::move(further), where,
                         split_.empty() ? Json() : object[split_]);
  }

  Status take_labelled(const std::string& path, const Json& label, Json further, std::string_view where,
                       const Json& split = Json()) {
    PACKTRAIN_TRY(rows_.begin(path, where));
    if (!split_.empty())
      rows_.row_split(split.is_string()    ? trimmed(split.as_string())
                      : split.is_integer() ? split.dump()
                                           : std::string(),
                      split_);
    if (!context_.options.label_column.empty() && no_label_wanted(context_.options, columns_)) {
      if (!label.is_null()) further.set("label", label);  // of a pair, which has no columns
    } else {
      rows_.json_label(label, further);
    }
    return rows_.end(further);
  }

  ScanContext& context_;
  const Source& source_;
  ListRows rows_;
  std::string path_, label_, split_;  // names of members; "" until one is found
  Status split_wanted_;               // unless --split-column names what no object has
  std::vector<std::string> columns_;  // of the object with most members
};

Status take_table_rows(ListRows& rows, TableText& table, const std::vector<std::string>& columns, size_t path,
                       size_t label, size_t split) {
  for (std::vector<std::string> row;;) {
    PACKTRAIN_ASSIGN(more, table.next(row));
    if (!more) break;
    const std::string where = "line " + std::to_string(table.line());
    if (row.size() != columns.size())
      return Status(Code::corrupt, where + " has " + std::to_string(row.size()) +
                                       " cells, but the header has " + std::to_string(columns.size()) +
                                       "; quote cells that hold the separator");
    PACKTRAIN_TRY(rows.begin(row[path], where));
    Json further = Json::object();
    for (size_t i = 0; i < row.size(); ++i) {
      if (i == label) {
        rows.text_label(trimmed(row[i]));
      } else if (i == split) {
        rows.row_split(trimmed(row[i]), columns[i]);
        if (rows.is_named()) further.set(columns[i], row[i]);
      } else if (i != path) {
        further.set(columns[i].empty() ? "column_" + std::to_string(i) : columns[i], row[i]);
      }
    }
    PACKTRAIN_TRY(rows.end(further));
  }
  return {};
}

}  // namespace

Status add_pickle_list(ScanContext& context, const Source& source) {
  PACKTRAIN_ASSIGN(bytes, read_whole(context.storage, source.path));
  auto pickle = Pickle::parse(bytes);
  if (!pickle.ok()) return pickle.status().at(printable(source.path));
  ListRows rows(context, source);
  const Status taken = take_pickled_rows(*pickle, rows);
  if (!taken.ok()) return taken.at(printable(source.path));
  return rows.finish();
}

Status add_table_list(ScanContext& context, const Source& source) {
  PACKTRAIN_ASSIGN(text, read_whole(context.storage, source.path));
  const char separator = source.path.ends_with(".tsv") ? '\t' : guess_separator(text);
  TableText table(text, separator, separator == '|' ? Quotes::none : Quotes::rfc4180);
  std::vector<std::string> columns;
  auto header = table.next(columns);
  if (!header.ok()) return header.status().at(printable(source.path));
  if (!*header)
    return Status(Code::corrupt, "the list is empty; write a row for each sample, or name another list")
        .at(printable(source.path));
  for (std::string& column : columns) column = std::string(trimmed(column));

  const ScanOptions& options = context.options;
  PACKTRAIN_TRY(check_heading(columns, path_column_names()).at(printable(source.path)));
  const size_t path = find_column(columns, options.path_column, path_column_names());
  if (path == kNoColumn) return no_path_column(columns, options.path_column).at(printable(source.path));
  const bool label_wanted = !no_label_wanted(options, columns);
  size_t label = label_wanted ? find_column(columns, options.label_column, label_column_names()) : kNoColumn;
  if (label == path) label = kNoColumn;
  if (label_wanted && label == kNoColumn && !options.label_column.empty())
    return no_label_column(columns, options.label_column).at(printable(source.path));
  auto split = find_split_column(options, columns, columns[path], label == kNoColumn ? "" : columns[label]);
  if (!split.ok()) return split.status().at(printable(source.path));
  const size_t caption = find_column(columns, "", caption_column_names());
  if (label == kNoColumn && caption != kNoColumn && caption != path)
    return add_caption_table(context, source, table, columns, {path, caption, *split});
  if (label != kNoColumn) note_several_labels(context, source, columns, columns[label]);
  if (label_wanted && label == kNoColumn && columns.size() > 1) note_missing_label(context, source, columns);
  ListRows rows(context, source);
  PACKTRAIN_TRY(take_table_rows(rows, table, columns, path, label, *split).at(printable(source.path)));
  return rows.finish();
}

Status add_json_list(ScanContext& context, const Source& source) {
  PACKTRAIN_ASSIGN(text, read_whole(context.storage, source.path));
  auto document = Json::parse(text);
  if (!document.ok()) return to_be_mended(document.status()).at(printable(source.path));
  if (is_coco_captions(*document)) return add_coco_captions(context, source, *document);
  if (document->is_object() && document->has("annotations"))
    return Status(Code::unsupported,
                  "is a COCO file without captions; write a list of {\"path\": …, \"label\": …} from it")
        .at(printable(source.path));
  JsonRows rows(context, source);
  Status taken;
  if (document->is_object()) {
    for (const auto& [path, value] : document->members()) {
      taken = rows.take_member(path, value);
      if (!taken.ok()) break;
    }
  } else if (document->is_array()) {
    for (size_t i = 0; i < document->items().size() && taken.ok(); ++i)
      taken = rows.take(document->items()[i], "entry " + std::to_string(i));
  } else {
    taken = Status(
        Code::unsupported,
        "holds neither a list nor an object; packtrain reads {path: label}, [[path, label]] and [path]");
  }
  if (!taken.ok()) return taken.at(printable(source.path));
  return rows.finish();
}

Status add_json_lines_list(ScanContext& context, const Source& source) {
  PACKTRAIN_ASSIGN(text, read_whole(context.storage, source.path));
  JsonRows rows(context, source);
  uint64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(std::string_view(text).substr(at, end - at));
    at = end + 1;
    ++number;
    if (line.empty()) continue;
    const std::string where = "line " + std::to_string(number);
    auto entry = Json::parse(line);
    Status taken = entry.ok() ? rows.take(*entry, where) : to_be_mended(entry.status()).at(where);
    if (!taken.ok()) return taken.at(printable(source.path));
  }
  return rows.finish();
}

}  // namespace packtrain
