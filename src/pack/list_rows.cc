#include "pack/list_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/hash.h"
#include "base/words.h"
#include "pack/file_facts.h"
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

// A whole number, also as tables with gaps spell it, whose writers keep the column as floats: "3.0".
bool parse_whole_number(std::string_view text, int64_t& out) {
  if (const size_t dot = text.find('.'); dot != std::string_view::npos && dot > 0) {
    if (text.find_first_not_of('0', dot + 1) != std::string_view::npos) return false;
    text = text.substr(0, dot);
  }
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

std::string folder_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(slash == 0 ? "/" : path.substr(0, slash));
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

std::vector<std::string> subfolders(Storage& storage, const std::string& folder) {
  std::vector<std::string> names;
  const Status listed = storage.list(folder, [&](FolderEntry&& entry) {
    if (entry.kind == FileKind::folder && name_kind(entry.name) == NameKind::ordinary)
      names.push_back(folder + "/" + entry.name);
    return true;
  });
  if (!listed.ok()) names.clear();  // only a search: what cannot be listed holds nothing for us
  std::sort(names.begin(), names.end());
  return names;
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

Status no_path_column(const std::vector<std::string>& columns, std::string_view wanted) {
  std::string names;
  for (const std::string& column : columns) names += (names.empty() ? "" : ", ") + printable(column);
  if (!wanted.empty())
    return Status(Code::invalid, "has no column \"" + printable(wanted) + "\"; its columns are: " + names);
  return Status(Code::invalid,
                "which column holds the paths? Name it with --path-column; its columns are: " + names);
}

std::string find_root(ScanContext& context, const Source& source, std::string_view first_path) {
  if (!context.options.root.empty()) return context.options.root;
  const std::string own = folder_of(source.path);
  if (first_path.starts_with('/')) return own;
  const auto is_there = [&](const std::string& folder) {
    const auto info = context.storage.stat(folder + "/" + std::string(first_path));
    return info.ok() && info->kind == FileKind::file;
  };
  if (is_there(own)) return own;
  for (const std::string& folder : subfolders(context.storage, own))
    if (is_there(folder)) return folder;
  if (own != "." && own != "/") {
    for (const std::string& folder : subfolders(context.storage, folder_of(own)))
      if (folder != own && is_there(folder)) return folder;
  }
  return own;
}

Status ListRows::begin(std::string_view path, std::string_view where) {
  if (path.empty()) return Status(Code::corrupt, "the path is empty").at(where);
  if (path.find('\0') != std::string_view::npos)
    return Status(Code::corrupt, "the path holds a NUL byte").at(where);
  if (path.size() > UINT16_MAX)
    return Status(Code::corrupt, "the path is longer than 65,535 bytes").at(where);
  if (!begun_) {
    begun_ = true;
    root_ = context_.out.add_root(find_root(context_, source_, path), source_.name);
    split_ = context_.out.split(source_.split_or_default());
    first_sample_ = context_.out.catalog().samples.size();
  }
  Catalog& catalog = context_.out.catalog();
  const std::string tidied = tidy(path, catalog.roots[root_].folder);
  if (tidied.empty() || tidied == "/" || path.ends_with('/'))
    return Status(Code::corrupt, "\"" + printable(path) + "\" names no file").at(where);
  const size_t name_at = tidied.rfind('/') + 1;
  const NameParts parts = split_name(std::string_view(tidied).substr(name_at));
  folders_.insert(xxh64(as_bytes(std::string_view(tidied).substr(0, name_at))));

  Cell cell;
  PACKTRAIN_ASSIGN(field, context_.out.field(field_name(parts.extension)));
  cell.field = field;
  cell.source = root_;
  cell.inner_field = kFromList;
  cell.mtime_ns = kNotLookedAt;
  cell.path = catalog.keep(tidied);
  NameRef stem = cell.path;
  stem.bytes = static_cast<uint32_t>(name_at + parts.stem_bytes);
  context_.out.begin_sample(stem, split_);
  context_.out.add(cell);
  ++catalog.files;
  return context_.progress.tick(catalog.samples.size());
}

void ListRows::number_label(int64_t label) {
  any_number_ = true;
  context_.out.set_label(label);
}

void ListRows::text_label(std::string_view text) {
  if (text.empty()) return;
  int64_t number = 0;
  any_word_ |= !parse_whole_number(text, number);
  const auto [at, added] = text_ids_.try_emplace(std::string(text), static_cast<int64_t>(texts_.size()));
  if (added) texts_.emplace_back(text);
  context_.out.set_label(at->second);
}

Status ListRows::json_label(const Json& label, Json& rest) {
  if (label.is_string()) {
    text_label(label.as_string());
  } else if (label.is_integer()) {
    if (label.as_int(INT64_MIN) == INT64_MIN)
      return Status(Code::corrupt, "the label does not fit into 64 bits");
    number_label(label.as_int());
  } else if (label.is_bool()) {
    number_label(label.as_bool() ? 1 : 0);
  } else if (label.is_number() && std::abs(label.as_double()) < 9e15 &&
             label.as_double() == std::floor(label.as_double())) {
    number_label(static_cast<int64_t>(label.as_double()));
  } else if (!label.is_null()) {
    rest.set("label", label);  // several labels, a weight, a box: kept, but no class
  }
  return {};
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
  if (!begun_) return Status(Code::corrupt, "the list is empty").at(printable(source_.path));
  Catalog& catalog = context_.out.catalog();
  catalog.files += folders_.size() + 1;
  if (texts_.empty()) return {};
  if (any_number_)
    return Status(Code::invalid, "some labels are numbers and some are texts (\"" +
                                     printable(texts_.front()) + "\"); use one kind for all")
        .at(printable(source_.path));
  if (any_word_) context_.out.labels_are_named();
  for (size_t i = first_sample_; i < catalog.samples.size(); ++i) {
    int64_t& label = catalog.samples[i].label;
    if (label == kNoLabel) continue;
    const std::string& text = texts_[static_cast<size_t>(label)];
    if (any_word_) {
      label = context_.out.class_id(text);
    } else {
      parse_whole_number(text, label);
    }
  }
  return {};
}

}  // namespace packtrain
