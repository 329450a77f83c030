#include "pack/list_rows.h"

#include <algorithm>

#include "base/hash.h"
#include "base/words.h"
#include "index/split_name.h"
#include "pack/file_facts.h"
#include "pack/list_repeats.h"
#include "pack/list_root.h"
#include "pack/stems.h"
#include "pack/table_text.h"

namespace packtrain {
namespace {

constexpr std::string_view kPathColumns[] = {"path",       "file",       "filename", "file_name",
                                             "filepath",   "file_path",  "image",    "img",
                                             "image_name", "image_path", "img_path", "audio"};
constexpr std::string_view kLabelColumns[] = {"label", "class",  "target",  "category",
                                              "y",     "labels", "class_id"};
constexpr std::string_view kSplitColumns[] = {"split"};
constexpr uint64_t kRowsLookedAt = 4;  // for further columns that name files
constexpr std::string_view kCaptionColumns[] = {"caption", "captions", "comment", "sentence", "text"};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return lower(x) == lower(y);
  });
}

// Without "." and doubled slashes, and relative to `root` if it lies there.
std::string tidy(std::string_view path, std::string_view root) {
  std::string out;
  if (path.starts_with('/')) out = "/";
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (!part.empty() && part != ".") {
      if (!out.empty() && out.back() != '/') out += '/';
      out += part;
    }
    at = end + 1;
  }
  while (root.size() > 1 && root.ends_with('/')) root.remove_suffix(1);
  if (root.starts_with('/') && out.size() > root.size() + 1 && out.starts_with(root) &&
      out[root.size()] == '/')
    out.erase(0, root.size() + 1);
  return out;
}

// Whether it may be the name of a file: something in front of a dot and behind it.
bool may_be_file(std::string_view text) {
  constexpr size_t kLongestPath = 4096;
  const size_t name = text.rfind('/') + 1, dot = text.rfind('.');
  return text.size() <= kLongestPath && dot != std::string_view::npos && dot > name &&
         dot + 1 < text.size() && text.find_first_of(std::string_view("\0\n", 2)) == std::string_view::npos;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + printable(name);
  return text;
}

}  // namespace

std::span<const std::string_view> path_column_names() { return kPathColumns; }
std::span<const std::string_view> label_column_names() { return kLabelColumns; }
std::span<const std::string_view> caption_column_names() { return kCaptionColumns; }

size_t find_column(const std::vector<std::string>& columns, std::string_view wanted,
                   std::span<const std::string_view> common) {
  const auto position = [&](std::string_view name) {
    const auto at = std::find_if(columns.begin(), columns.end(), [&](const std::string& column) {
      return equal_ignoring_case(column, name);
    });
    return at == columns.end() ? kNoColumn : static_cast<size_t>(at - columns.begin());
  };
  if (!wanted.empty()) {
    const auto exact = std::find(columns.begin(), columns.end(), wanted);
    return exact != columns.end() ? static_cast<size_t>(exact - columns.begin()) : position(wanted);
  }
  for (const std::string_view name : common)
    if (const size_t at = position(name); at != kNoColumn) return at;
  return kNoColumn;
}

Status check_heading(const std::vector<std::string>& columns, std::span<const std::string_view> path_names) {
  if (find_column(columns, "", path_names) != kNoColumn) return {};
  for (const std::string& column : columns) {
    const size_t dot = column.rfind('.');
    if (dot == column.npos || dot == 0 || column.find(' ') != column.npos) continue;
    const std::string_view extension = std::string_view(column).substr(dot + 1);
    constexpr std::string_view kKnown[] = {"jpg", "jpeg", "png", "webp", "wav", "flac", "npy", "txt", "json"};
    if (std::none_of(std::begin(kKnown), std::end(kKnown),
                     [&](std::string_view known) { return equal_ignoring_case(known, extension); }))
      continue;
    return Status(Code::invalid, "its first line should name the columns, and names a file (" +
                                     printable(column) + "); put a line such as path,label in front of it");
  }
  return {};
}

Status no_path_column(const std::vector<std::string>& columns, std::string_view wanted) {
  const std::string names = listed(columns);
  if (!wanted.empty())
    return Status(Code::invalid, "has no column \"" + printable(wanted) + "\"; its columns are: " + names);
  return Status(Code::invalid,
                "which column holds the paths? Name it with --path-column; its columns are: " + names);
}

bool no_label_wanted(const ScanOptions& options, const std::vector<std::string>& columns) {
  return options.label_column == kNoLabelColumn &&
         std::find(columns.begin(), columns.end(), kNoLabelColumn) == columns.end();
}

Result<size_t> find_split_column(const ScanOptions& options, const std::vector<std::string>& columns,
                                 std::string_view path, std::string_view label) {
  const std::string& wanted = options.split_column;
  const bool is_there = std::find(columns.begin(), columns.end(), wanted) != columns.end();
  if (wanted == kNoLabelColumn && !is_there) return kNoColumn;
  const size_t at = find_column(columns, wanted, kSplitColumns);
  if (!wanted.empty() && at == kNoColumn)
    return Status(Code::invalid, "has no column \"" + printable(wanted) +
                                     "\" for splits; its columns are: " + listed(columns) +
                                     "; name one of them, or none with --split-column none");
  if (at == kNoColumn || (columns[at] != path && columns[at] != label)) return at;
  if (wanted.empty()) return kNoColumn;
  return Status(Code::invalid, "its column \"" + printable(columns[at]) + "\" holds the " +
                                   (columns[at] == path ? "paths" : "labels") +
                                   " and cannot name the splits as well; name another with --split-column");
}

void note_several_labels(ScanContext& context, const Source& source, const std::vector<std::string>& columns,
                         std::string_view label) {
  if (!context.options.label_column.empty()) return;
  std::vector<std::string> others;
  for (const std::string_view name : kLabelColumns)
    for (const std::string& column : columns)
      if (column != label && equal_ignoring_case(column, name)) others.push_back(column);
  if (others.empty()) return;
  context.out.catalog().warnings.push_back("the labels of " + printable(source.path) +
                                           " are those of its column \"" + printable(label) + "\"; " +
                                           listed(others) + (others.size() == 1 ? " is" : " are") +
                                           " kept in the field json; --label-column chooses another");
}

void note_missing_label(ScanContext& context, const Source& source, const std::vector<std::string>& columns) {
  context.out.catalog().warnings.push_back(
      printable(source.path) + " has no column that is known to hold labels, so its samples have none; its " +
      "columns are: " + listed(columns) + "; name one with --label-column, or none with --label-column none");
}

Status no_label_column(const std::vector<std::string>& columns, std::string_view wanted) {
  return Status(Code::invalid, "has no column \"" + printable(wanted) +
                                   "\" for the label; its columns are: " + listed(columns));
}

Status ListRows::begin(std::string_view path, std::string_view where) {
  if (path.empty())
    return Status(Code::corrupt, "the path is empty; name a file, or remove the row").at(where);
  if (path.find('\0') != std::string_view::npos)
    return Status(Code::corrupt, "the path holds a NUL byte, which no file has; mend the row").at(where);
  if (path.size() > UINT16_MAX)
    return Status(Code::corrupt, "the path is longer than 65,535 bytes, which no file has; mend the row")
        .at(where);
  if (!begun_) {
    begun_ = true;
    root_folder_ = context_.options.root.empty() ? folder_around(source_.path) : context_.options.root;
    first_sample_ = context_.out.catalog().samples.size();
  }
  Catalog& catalog = context_.out.catalog();
  const std::string tidied = tidy(path, root_folder_);
  if (tidied.empty() || tidied == "/" || path.ends_with('/'))
    return Status(Code::corrupt, "\"" + printable(path) + "\" names no file; name one, or remove the row")
        .at(where);
  const size_t name_at = tidied.rfind('/') + 1;
  const NameParts parts = split_name(std::string_view(tidied).substr(name_at));
  folders_.insert(xxh64(as_bytes(std::string_view(tidied).substr(0, name_at))));

  Cell cell;
  PACKTRAIN_ASSIGN(field, context_.out.field(field_name(parts.extension)));
  cell.field = field;
  cell.inner_field = kFromList;
  cell.set_mtime_ns(kNotLookedAt);
  cell.path = catalog.keep(tidied);
  NameRef stem = cell.path;
  stem.bytes = static_cast<uint32_t>(name_at + parts.stem_bytes);
  where_ = where;
  row_split_.clear();
  if (rows_++ < kRowsLookedAt) path_ = tidied;
  context_.out.begin_sample(stem, 0);
  context_.out.add(cell);
  ++catalog.files;
  return context_.progress.tick(catalog.samples.size());
}

void ListRows::json_label(const Json& label, Json& rest) {
  if (!labels_.add_json(context_.out, label, where_)) rest.set("label", label);
}

void ListRows::row_split(std::string_view split, std::string_view column) {
  row_split_ = split;
  if (split_column_.empty()) split_column_ = column;
}

// A split is known by the end of its row, and of a list with a column for it no other name must be: "train"
// would be a split without samples.
Status ListRows::settle_split() {
  Catalog& catalog = context_.out.catalog();
  const bool from_row = source_.split.empty() && !row_split_.empty();
  if (from_row) ++rows_with_split_;
  if (!from_row && first_without_split_.empty()) first_without_split_ = where_;
  const std::string split = from_row ? row_split_ : source_.split_or_default();
  if (split != split_) {
    const Status plain = check_split_name(split);
    if (!plain.ok())
      return Status(plain.code(), plain.message() + ", or leave its column alone with --split-column none")
          .at(where_);
    split_number_ = context_.out.split(split);
    split_ = split;
    if (std::find(splits_.begin(), splits_.end(), split) == splits_.end()) splits_.push_back(split);
  }
  catalog.samples.back().split = split_number_ & 0x7fffffff;
  return {};
}

Status ListRows::check_splits() {
  if (split_column_.empty()) return {};
  std::vector<std::string>& warnings = context_.out.catalog().warnings;
  const std::string list = printable(source_.path), column = printable(split_column_);
  if (!source_.split.empty()) {
    warnings.push_back(list + " has a column \"" + column + "\", which is not used, because the list was " +
                       "given as the split \"" + source_.split +
                       "\"; give it without NAME= if its rows belong to the splits that the column names");
    return {};
  }
  if (!first_without_split_.empty())
    return Status(Code::invalid, "has no \"" + column +
                                     "\", so that it is not known which split it belongs to; fill it in, or "
                                     "leave that column alone with --split-column none")
        .at(first_without_split_)
        .at(list);
  if (context_.options.split_column.empty())
    warnings.push_back(list + ": the column \"" + column + "\" says which split each sample belongs to (" +
                       names_in_words(splits_, splits_.size()) + "); --split-column names another, or none");
  return {};
}

Status ListRows::end(const Json& further) {
  PACKTRAIN_TRY(settle_split());
  if (rows_ <= kRowsLookedAt) {
    for (const auto& [column, value] : further.members())
      if (value.is_string() && may_be_file(trimmed(value.as_string())))
        if (std::string path = tidy(trimmed(value.as_string()), root_folder_); path != path_)
          further_files_.push_back({column, std::move(path)});
  }
  if (!further.members().empty()) {
    // A listed file that is itself called .json keeps that field.
    PACKTRAIN_TRY(
        context_.out.add_text(context_.out.has_field("json") ? "columns.json" : "json", further.dump()));
  }
  return context_.out.end_sample();
}

Status ListRows::finish() {
  if (!begun_)
    return Status(Code::corrupt, "the list is empty; write a row for each sample, or name another list")
        .at(printable(source_.path));
  Catalog& catalog = context_.out.catalog();
  catalog.files += folders_.size() + 1;
  PACKTRAIN_TRY(check_splits());
  PACKTRAIN_TRY(settle_root());
  PACKTRAIN_TRY(labels_.finish(context_.out, first_sample_, printable(source_.path)));
  Repeats repeats = find_repeats(catalog, first_sample_, printable(source_.path));
  catalog.files -= repeats.rows;
  if (!repeats.words.empty()) catalog.warnings.push_back(std::move(repeats.words));
  return {};
}

Status ListRows::settle_root() {
  constexpr size_t kProbes = 8;
  Catalog& catalog = context_.out.catalog();
  std::vector<std::string> probes;  // evenly from the whole list: its first rows may be the same everywhere
  const size_t samples = catalog.samples.size() - first_sample_;
  for (size_t i = 0; i < std::min(kProbes, samples); ++i) {
    const size_t sample =
        first_sample_ + i * (samples - 1) / std::max<size_t>(1, std::min(kProbes, samples) - 1);
    for (uint64_t c = catalog.samples[sample].first_cell; c < catalog.end_cell(sample); ++c) {
      const std::string_view path = catalog.name(catalog.cells[c].path);
      if (catalog.cells[c].origin == Origin::file && !path.starts_with('/')) probes.emplace_back(path);
    }
  }
  PACKTRAIN_ASSIGN(folder, find_root(context_, source_, probes));
  const uint32_t root = context_.out.add_root(folder, source_.name);
  for (uint64_t c = catalog.samples[first_sample_].first_cell; c < catalog.cells.size(); ++c)
    if (catalog.cells[c].origin == Origin::file) catalog.cells[c].source = root;
  note_further_files(folder);
  return {};
}

// A list packs the files of one column. Of masks beside images only the names would be there, unnoticed.
void ListRows::note_further_files(const std::string& root) {
  std::vector<std::string> columns;
  for (const FurtherFile& further : further_files_) {
    if (std::find(columns.begin(), columns.end(), further.column) != columns.end()) continue;
    const bool all_there =
        std::all_of(further_files_.begin(), further_files_.end(), [&](const FurtherFile& other) {
          if (other.column != further.column) return true;
          const auto info =
              context_.storage.stat(other.path.starts_with('/') ? other.path : root + "/" + other.path);
          return info.ok() && info->kind == FileKind::file;
        });
    if (all_there) columns.push_back(further.column);
  }
  for (const std::string& column : columns)
    context_.out.catalog().warnings.push_back(
        "the column \"" + printable(column) + "\" of " + printable(source_.path) +
        " names files, which are not packed: a list packs one file a row, and of further columns the text, "
        "in the field json; to pack them too, give a folder where the files of a sample have one stem "
        "(a.jpg and a.mask.png), or --path-column to pack this column instead");
}

}  // namespace packtrain
