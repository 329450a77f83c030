#include <algorithm>
#include <map>
#include <optional>

#include "base/words.h"
#include "format/columns.h"
#include "index/split_name.h"
#include "pack/archive_stream.h"
#include "pack/catalog.h"
#include "pack/class_file.h"
#include "pack/file_facts.h"
#include "pack/sources.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

enum class SourceKind : uint8_t {
  tree,
  container,
  archive,
  compressed_archive,
  pickle_list,
  table_list,
  json_list,
  json_lines_list,
  token_list,
};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return lower;
}

Result<std::string> read_head(Storage& storage, const std::string& path) {
  PACKTRAIN_ASSIGN(file, storage.open(path));
  std::string head(static_cast<size_t>(std::min<uint64_t>(file->size(), 4096)), '\0');
  PACKTRAIN_TRY(storage.read(*file, 0, std::as_writable_bytes(std::span(head.data(), head.size()))));
  return head;
}

// By content where content is telling, by name where it is not.
Result<SourceKind> kind_of_file(Storage& storage, const std::string& path) {
  PACKTRAIN_ASSIGN(head, read_head(storage, path));
  const std::string name = lower_case(path);
  const auto format = recognise_format(storage, path);
  // Tar and zip archives may be trees, or lists of files; all other containers hold samples.
  const bool archive = format.ok() && ((*format)->name == "webdataset" || (*format)->name == "zip");
  if (format.ok() && !archive && (*format)->recognise(storage, path)) return SourceKind::container;
  if (!stream_codec(as_bytes(head)).empty()) return SourceKind::compressed_archive;
  if (head.starts_with("PK\x03\x04") || head.starts_with("PK\x05\x06")) return SourceKind::archive;
  if (ends_with_any(name, {".pkl", ".pickle"})) return SourceKind::pickle_list;
  if (ends_with_any(name, {".jsonl", ".ndjson"})) return SourceKind::json_lines_list;
  if (ends_with_any(name, {".json"})) return SourceKind::json_list;
  if (ends_with_any(name, {".token", ".txt"}) && looks_like_token_list(head)) return SourceKind::token_list;
  if (ends_with_any(name, {".csv", ".tsv", ".txt"})) return SourceKind::table_list;
  if (format.ok()) return archive ? SourceKind::archive : SourceKind::container;
  // What to unpack by which command, it says itself.
  const bool unread = head.starts_with(
                          "\xfd"
                          "7zXZ") ||
                      head.starts_with("BZh");
  if (format.status().code() != Code::unsupported || unread) return format.status();
  return Status(Code::unsupported,
                "is nothing that packtrain can pack: give a folder, a list (.pkl, .csv, .tsv, .json, .jsonl, "
                ".token), "
                "an archive (.zip, .tar, .tar.gz, .tar.zst) or a dataset")
      .at(printable(path));
}

// A pattern stands for containers that are one source together; folders of files are a source each.
Result<SourceKind> kind_of_pattern(Storage& storage, const std::string& pattern) {
  PACKTRAIN_ASSIGN(paths, expand_paths(storage, pattern));
  for (const std::string& path : paths) {
    const auto info = storage.stat(path);
    if (!info.ok() || info->kind != FileKind::folder || recognise_format(storage, path).ok()) continue;
    if (paths.size() == 1 && storage.stat(path + "/manifest.json").ok()) continue;
    return Status(Code::invalid, "matches the folder " + printable(path) +
                                     ", and a pattern is for containers, such as shards; name each folder, "
                                     "as [NAME=]FOLDER, or leave the quotes away so that the shell does")
        .at(printable(pattern));
  }
  return SourceKind::container;
}

Result<SourceKind> kind_of(Storage& storage, const std::string& path) {
  const auto info = storage.stat(path);
  if (!info.ok()) {
    const bool pattern =
        path.find_first_of("*?[{") != std::string::npos || path.find("::") != std::string::npos;
    if (info.status().code() == Code::not_found && pattern) return kind_of_pattern(storage, path);
    return info.status();
  }
  if (info->kind == FileKind::file) return kind_of_file(storage, path);
  if (info->kind != FileKind::folder)
    return Status(Code::invalid, "is neither a file nor a folder; name one").at(printable(path));
  if (holds_dataset(storage, path)) return SourceKind::container;
  const auto format = recognise_format(storage, path);  // a container that is a folder, such as LMDB
  return format.ok() ? SourceKind::container : SourceKind::tree;
}

bool has_columns(SourceKind kind) {
  return kind == SourceKind::table_list || kind == SourceKind::json_list ||
         kind == SourceKind::json_lines_list;
}
bool is_list(SourceKind kind) {
  return has_columns(kind) || kind == SourceKind::pickle_list || kind == SourceKind::token_list;
}

// An option that no source can heed was meant for another one.
Status check_options_of_lists(const ScanOptions& options, const std::vector<SourceKind>& kinds) {
  if (std::none_of(kinds.begin(), kinds.end(), has_columns)) {
    for (const auto& [option, value] : {std::pair("--path-column", &options.path_column),
                                        std::pair("--label-column", &options.label_column),
                                        std::pair("--split-column", &options.split_column)}) {
      if (!value->empty())
        return Status(Code::invalid, std::string(option) +
                                         " is for lists with columns (.csv, .tsv, .json, .jsonl), and no "
                                         "source is one; leave it away");
    }
  }
  if (!options.root.empty() && std::none_of(kinds.begin(), kinds.end(), is_list))
    return Status(
        Code::invalid,
        "--root is what the paths in a list are relative to, and no source is a list; leave it away");
  return {};
}

std::string name_of(const SourceSpec& spec) {
  if (!spec.split.empty()) return spec.split;
  std::string_view path = spec.path;
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  path = path.substr(path.rfind('/') + 1);
  return std::string(path.substr(0, std::max<size_t>(path.find('.'), 1)));
}

Status add_source(ScanContext& context, const Source& source, SourceKind kind, Listing& listing) {
  switch (kind) {
    case SourceKind::tree:
      return add_walked_tree(context, source, listing);
    case SourceKind::container:
      return add_container(context, source);
    case SourceKind::archive:
      return add_archive(context, source);
    case SourceKind::compressed_archive:
      return add_compressed_archive(context, source);
    case SourceKind::pickle_list:
      return add_pickle_list(context, source);
    case SourceKind::table_list:
      return add_table_list(context, source);
    case SourceKind::json_list:
      return add_json_list(context, source);
    case SourceKind::json_lines_list:
      return add_json_lines_list(context, source);
    case SourceKind::token_list:
      return add_token_list(context, source);
  }
  return {};
}

// A folder of containers is packed as what it is, a folder of files; the user may have meant what is in them.
// A tar is rarely a sample; files of the other kinds may be, where there are few of them among others.
void warn_of_archives(Catalog& catalog, const Source& source, size_t first_sample) {
  constexpr std::string_view kContainers[] = {"tar", "arrow", "parquet",  "h5",  "hdf5",
                                              "npz", "mdb",   "squashfs", "sqfs"};
  struct Found {
    uint64_t count = 0;
    NameRef first;
  };
  std::map<std::string_view, Found> found;
  std::vector<Found*> of_field;
  for (const std::string& field : catalog.fields) {
    const bool container =
        std::find(std::begin(kContainers), std::end(kContainers), field) != std::end(kContainers);
    of_field.push_back(container ? &found[field] : nullptr);
  }
  for (size_t i = first_sample; i < catalog.samples.size(); ++i) {
    const Cell& cell = catalog.cells[catalog.samples[i].first_cell];
    Found* mine = of_field[cell.field];
    if (mine != nullptr && mine->count++ == 0) mine->first = cell.path;
  }
  const uint64_t samples = catalog.samples.size() - first_sample;
  for (const auto& [field, mine] : found) {
    if (mine.count == 0 || (field != "tar" && 2 * mine.count <= samples)) continue;
    const std::string path = source.path + "/" + std::string(catalog.name(mine.first));
    const std::string folder = path.substr(0, path.rfind('/'));
    catalog.warnings.push_back(
        printable(source.path) + " holds " + counted(mine.count, "." + std::string(field) + " file") + ", " +
        (mine.count == 1 ? "which is packed as it is" : "which are packed as they are, a sample each") +
        "; to pack what is in " + (mine.count == 1 ? "it" : "them") + ", give \"" + printable(folder) +
        (field == "mdb" ? "" : "/*." + std::string(field)) + "\"");
  }
}

// Tables would be packed as files. The storage is asked only where the listing has their marks.
Status check_saved_tables(Storage& storage, const std::string& path, const Listing& listing,
                          std::string_view names) {
  const bool marked = std::any_of(listing.files.begin(), listing.files.end(), [&](const ListedFile& file) {
    const std::string_view name = Listing::path(names, file);
    return name == "dataset_dict.json" || name == "state.json";
  });
  const std::string tables = marked ? saved_tables(storage, path) : std::string();
  if (tables.empty()) return {};
  return Status(
             Code::unsupported,
             "was saved by Hugging Face's save_to_disk, and its files are tables, not samples; pack those: "
             "packtrain pack " +
                 tables + " OUT")
      .at(printable(path));
}

// They are packed as they are, and whoever decodes them fails.
void warn_of_empty_images(Catalog& catalog) {
  std::vector<bool> is_image;
  for (const std::string& field : catalog.fields) is_image.push_back(is_image_field(field));
  uint64_t count = 0;
  NameRef first;
  for (const Cell& cell : catalog.cells) {
    if (cell.size > 0 || cell.origin == Origin::text || !is_image[cell.field]) continue;
    if (count++ == 0) first = cell.path;
  }
  if (count > 0)
    catalog.warnings.push_back(
        counted(count, "image") + (count == 1 ? " is empty: " : " are empty, the first is ") +
        printable(catalog.name(first)) + "; packed as " + (count == 1 ? "it is" : "they are") +
        ", but a loader that decodes images will refuse " + (count == 1 ? "it" : "them") +
        ": mend or remove what is empty");
}

// A field that has values from elsewhere too, or of another length, is none of arrays.
void settle_arrays(Catalog& catalog) {
  if (catalog.arrays.empty()) return;
  std::vector<uint64_t> bytes(catalog.fields.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto found = catalog.arrays.find(catalog.fields[i]);
    if (found != catalog.arrays.end()) bytes[i] = found->second.bytes();
  }
  for (const Cell& cell : catalog.cells) {
    if (bytes[cell.field] == 0 || (cell.origin == Origin::container && cell.size == bytes[cell.field]))
      continue;
    catalog.arrays.erase(catalog.fields[cell.field]);
    bytes[cell.field] = 0;
  }
}

}  // namespace

Result<Catalog> scan(Storage& storage, const ScanOptions& options) {
  if (options.sources.empty()) return Status(Code::invalid, "there is no source to pack; name at least one");
  std::vector<std::string> classes;
  if (!options.classes_file.empty()) {
    PACKTRAIN_ASSIGN(listed, read_class_file(storage, options.classes_file));
    classes = std::move(listed);
  }
  CatalogBuilder out(options.cls_field);
  ScanProgress progress(options.progress);
  ScanContext context{storage, options, out, progress};

  // Folders are listed first, so that the catalog grows once and never doubles.
  std::vector<Source> sources;
  std::vector<SourceKind> kinds;
  std::vector<Listing> listings(options.sources.size());
  uint64_t files = 0;
  for (size_t i = 0; i < options.sources.size(); ++i) {
    const SourceSpec& spec = options.sources[i];
    sources.push_back({spec.path, spec.split, name_of(spec)});
    PACKTRAIN_ASSIGN(kind, kind_of(storage, spec.path));
    kinds.push_back(kind);
  }
  PACKTRAIN_TRY(check_options_of_lists(options, kinds));
  for (size_t i = 0; i < sources.size(); ++i) {
    if (kinds[i] != SourceKind::tree) continue;
    PACKTRAIN_ASSIGN(listing, walk_source(context, sources[i]));
    PACKTRAIN_TRY(check_saved_tables(storage, sources[i].path, listing, out.catalog().names));
    files += listing.files.size();
    listings[i] = std::move(listing);
  }
  out.reserve(files, options.cls_field ? 2 * files : files);

  for (size_t i = 0; i < sources.size(); ++i) {
    const size_t first_sample = out.catalog().samples.size();
    out.begin_source(printable(sources[i].path));
    PACKTRAIN_TRY(add_source(context, sources[i], kinds[i], listings[i]));
    for (const std::string& split : out.catalog().splits)
      PACKTRAIN_TRY(check_split_name(split).at(printable(sources[i].path)));
    if (kinds[i] == SourceKind::tree) warn_of_archives(out.catalog(), sources[i], first_sample);
  }
  PACKTRAIN_TRY(out.finish(classes, options.classes_file));
  settle_arrays(out.catalog());
  PACKTRAIN_ASSIGN(failures, look_at_files(storage, options.stats_in_flight, out.catalog(), progress));
  out.settle_missing(failures);
  warn_of_empty_images(out.catalog());
  return out.take();
}

}  // namespace packtrain
