// NPY: the indexer. A .npy file is a table of one column: its rows are samples. Labels come from a file
// beside it. What packtrain writes is a folder of two files, x.npy and y.npy.
//
// Behind the array of an x.npy there may be the header of a .npy file of one row: its values were .npy files,
// and come back as such. NumPy does not look there.
#include <algorithm>

#include "base/words.h"
#include "format/array_table.h"
#include "format/npy_column.h"
#include "format/npy_header.h"
#include "format/npy_write.h"
#include "format/table.h"

namespace packtrain {
namespace {

constexpr std::string_view kBareField = "data";  // the column of a bare .npy file
constexpr std::string_view kFilesField = "npy";  // the same, where its rows are .npy files again

Result<ArrayColumn> read_bare(Storage& storage, const File& file, std::string_view name, uint32_t number) {
  std::vector<std::byte> head(std::min(file.size(), kNpyHeadBytes));
  PACKTRAIN_TRY(storage.read(file, 0, head));
  PACKTRAIN_ASSIGN(bytes, npy_header_bytes(head));
  if (bytes > head.size() && file.size() > head.size()) {
    head.resize(std::min<uint64_t>(bytes, file.size()));
    PACKTRAIN_TRY(storage.read(file, 0, head));
  }
  PACKTRAIN_ASSIGN(header, parse_npy_header(head));
  PACKTRAIN_ASSIGN(column, npy_column(std::string(name), header,
                                      {.file = number, .stored = file.size(), .raw = file.size()}, {}));
  return column;
}

// Files that may hold the labels of a .npy file: STEM_labels.npy, y_… of x_…, labels.npy, targets.npy.
std::vector<std::string> label_paths(std::string_view path) {
  const size_t slash = path.rfind('/') + 1;  // 0 where there is none
  const std::string folder(path.substr(0, slash));
  const std::string stem(path.substr(slash, path.size() - slash - kNpySuffix.size()));
  std::vector<std::string> paths = {folder + stem + "_labels.npy"};
  const bool x = stem == "x" || stem == "X" || stem.starts_with("x_") || stem.starts_with("X_");
  if (x) paths.push_back(folder + "y" + stem.substr(1) + ".npy");
  paths.push_back(folder + "labels.npy");
  paths.push_back(folder + "targets.npy");
  return paths;
}

// Adds the first of them that is one whole number for each row. The index remembers those that were looked
// at, so that it can tell when they are no longer what they were.
Status add_labels(Storage& storage, std::string_view path, const IndexOptions& options, ArrayTable& table,
                  IndexBuilder& out) {
  if (!path.ends_with(kNpySuffix) || table.arrays[0].shape.empty()) return {};
  const std::vector<std::string> paths = label_paths(path);
  const std::vector<std::string> recorded =
      label_paths(options.shard_path.empty() ? path : options.shard_path);
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string& beside = paths[i];
    if (beside == path) continue;
    auto file = storage.open(beside);
    if (!file.ok() && file.status().code() == Code::not_found) {
      out.add_beside({.path = recorded[i], .absent = true});
      continue;
    }
    if (!file.ok()) return file.status();
    out.add_beside({.path = recorded[i], .bytes = (*file)->size(), .mtime_ns = (*file)->info().mtime_ns});
    const auto number = static_cast<uint32_t>(table.files.size());
    auto column = read_bare(storage, **file, kLabelColumn, number);
    if (!column.ok()) return column.status().at(printable(beside));
    if (column->rows() != table.arrays[0].rows() || !column->type.is_integer()) {
      add_note(options, printable(beside) + " is not taken for labels: it has " +
                            counted(column->rows(), "row") +
                            (column->type.is_integer() ? "" : " of something else than whole numbers") +
                            ", and " + printable(path) + " has " + count_in_words(table.arrays[0].rows()) +
                            "; if it is meant, save it with one whole number for each row");
      continue;
    }
    ArrayFile labels{.path = beside, .shard = {}, .file = std::shared_ptr<const File>(std::move(*file))};
    labels.shard.bytes = labels.file->size();
    table.files.push_back(std::move(labels));
    table.arrays.push_back(std::move(*column));
    return {};
  }
  return {};
}

// The header that stands behind the array, as a column that stands in front of every row; nothing if there is
// none.
Status add_row_header(Storage& storage, const File& file, ArrayTable& table) {
  const ArrayColumn& rows = table.arrays[0];
  if (!rows.unusable.ok() || rows.parts.empty() || rows.rows() == 0) return {};
  const uint64_t end = rows.parts[0].start + rows.bytes();
  if (end >= file.size() || file.size() - end > kNpyPrologueBytes + kNpyLargestHeader) return {};
  std::vector<std::byte> behind(file.size() - end);
  PACKTRAIN_TRY(storage.read(file, end, behind));
  if (!starts_npy(behind)) return {};
  const auto header = parse_npy_header(behind);
  const bool fits =
      header.ok() && header->bytes == behind.size() && header->type == rows.word && !header->fortran &&
      std::equal(header->shape().begin(), header->shape().end(), rows.shape.begin() + 1, rows.shape.end());
  if (!fits) return {};
  ArrayColumn column;
  table.arrays[0].name = kFilesField;
  column.name = std::string(kFilesField).append(kHeaderSuffix);
  column.type = {ArrayType::Kind::unsigned_integer, 1};
  column.shape = {behind.size()};
  column.part_bytes = behind.size();
  column.parts = {{.offset = end, .stored = behind.size(), .raw = behind.size()}};
  table.arrays.push_back(std::move(column));
  return {};
}

Status index_bare(Storage& storage, std::string_view path, const std::shared_ptr<const File>& file,
                  const IndexOptions& options, IndexBuilder& out) {
  ArrayTable table;
  table.files.push_back({std::string(path), shard_spec(kNpy, path, *file, options), file});
  PACKTRAIN_ASSIGN(column, read_bare(storage, *file, kBareField, 0));
  if (column.shape.empty())
    return Status(Code::unsupported, "is a single number; an array with one row for each sample is needed");
  table.arrays.push_back(std::move(column));
  PACKTRAIN_TRY(add_row_header(storage, *file, table));
  PACKTRAIN_TRY(add_labels(storage, path, options, table, out));
  return add_array_samples(storage, table, options, out);
}

std::string inner_npy(std::string_view folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.remove_suffix(1);
  return std::string(folder).append("/").append(kNpyRows);
}

// Whether a folder holds the two files, or the first of them, and nothing else but indexes of them, which
// packtrain puts beside what it indexes.
bool is_pair(Storage& storage, std::string_view folder) {
  if (!storage.stat(inner_npy(folder)).ok()) return false;  // a folder is asked often, and rarely is one
  bool others = false;
  const Status listed = storage.list(folder, [&](FolderEntry&& entry) {
    const bool index = entry.kind == FileKind::folder && entry.name.ends_with(".packtrain");
    others = others || (entry.name != kNpyRows && entry.name != kNpyLabels && !index);
    return !others;
  });
  return listed.ok() && !others;
}

bool recognise_npy(Storage& storage, std::string_view path) {
  const auto info = storage.stat(path);
  if (!info.ok()) return false;
  if (info->kind == FileKind::folder) return is_pair(storage, path);
  auto file = storage.open(path);
  std::byte magic[6];
  return file.ok() && (*file)->size() > sizeof magic && storage.read(**file, 0, magic).ok() &&
         starts_npy(magic);
}

Status index_npy(Storage& storage, std::string_view path, const IndexOptions& options, IndexBuilder& out) {
  PACKTRAIN_ASSIGN(info, storage.stat(path));
  const bool folder = info.kind == FileKind::folder;
  const std::string data = folder ? inner_npy(path) : std::string(path);
  IndexOptions mine = options;
  const std::string recorded =
      folder && !options.shard_path.empty() ? inner_npy(options.shard_path) : std::string(options.shard_path);
  mine.shard_path = recorded;
  PACKTRAIN_ASSIGN(opened, storage.open(data));
  const Status status = index_bare(storage, data, std::shared_ptr<const File>(std::move(opened)), mine, out);
  return status.ok() ? status : status.at(data);
}

}  // namespace

const Format kNpy = {
    .name = "npy",
    .suffix = ".arrays",
    .summary = "NumPy arrays, a row for each sample, with labels in a second one",
    .recognise = recognise_npy,
    .index = index_npy,
    .layout = nullptr,
    .create = create_npy,
    .cut = Cut::splits,
    .label_column = true,
    .folder = true,
    .inner_file = kNpyRows,
    .companion = kNpyLabels,
    .arrays_only = true,
};

}  // namespace packtrain
