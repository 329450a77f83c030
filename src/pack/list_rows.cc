#include "pack/list_rows.h"

#include <algorithm>

#include "base/hash.h"
#include "base/words.h"
#include "pack/file_facts.h"
#include "pack/list_root.h"
#include "pack/stems.h"

namespace packtrain {
namespace {

constexpr std::string_view kPathColumns[] = {"path",       "file",       "filename", "file_name",
                                             "filepath",   "file_path",  "image",    "img",
                                             "image_name", "image_path", "img_path", "audio"};
constexpr std::string_view kLabelColumns[] = {"label", "class",  "target",  "category",
                                              "y",     "labels", "class_id"};
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
    split_ = context_.out.split(source_.split_or_default());
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
  context_.out.begin_sample(stem, split_);
  context_.out.add(cell);
  ++catalog.files;
  return context_.progress.tick(catalog.samples.size());
}

void ListRows::json_label(const Json& label, Json& rest) {
  if (!labels_.add_json(context_.out, label, where_)) rest.set("label", label);
}

Status ListRows::end(const Json& further) {
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
  PACKTRAIN_TRY(settle_root());
  return labels_.finish(context_.out, first_sample_, printable(source_.path));
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
  return {};
}

}  // namespace packtrain
