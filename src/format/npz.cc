// NPZ and NPY: the indexer. An NPZ is a zip of .npy files; rows of arrays become samples as array_table.h
// says. Where the arrays are no table, each of them is a sample of its own, as in a zip of .npy files. A bare
// .npy file is a table of one column, with labels from a file beside it.
#include <algorithm>
#include <cstring>
#include <set>

#include "base/words.h"
#include "format/array_table.h"
#include "format/columns.h"
#include "format/npy_header.h"
#include "format/npz_write.h"
#include "format/numpy_type.h"
#include "format/table.h"
#include "format/zip_directory.h"

namespace packtrain {
namespace {

constexpr uint64_t kNpyHeadBytes = 256;                 // where a header is, but for records with many fields
constexpr uint64_t kStoredHeadBytes = 4096;             // what surely decodes to kNpyHeadBytes
constexpr uint64_t kLargestPiece = uint64_t{64} << 20;  // each sample costs the decoding of a whole member
constexpr std::string_view kNpySuffix = ".npy";
constexpr std::string_view kBareField = "data";  // the column of a bare .npy file

void set_type(const NpyHeader& header, ArrayColumn& column) {
  const NumpyType type = parse_numpy_type(header.type);
  column.type = type.type;
  column.unusable = type.unusable;
  if (column.unusable.ok() && header.fortran && header.axes > 1) {
    column.unusable =
        Status(Code::unsupported,
               "is in Fortran order, in which no row lies together; save numpy.ascontiguousarray(array)");
  }
}

// A column with one part: the .npy file `part`, of which `header` was read.
Result<ArrayColumn> column_of(std::string name, const NpyHeader& header, ArrayPart part, Pipeline pipeline) {
  ArrayColumn column;
  column.name = std::move(name);
  column.shape.assign(header.shape().begin(), header.shape().end());
  set_type(header, column);
  const uint64_t room = part.raw - header.bytes;
  if (header.records && column.unusable.ok()) {
    const auto count = checked_array_bytes(column.shape, 1);
    if (!count || (*count > 0 && room % *count != 0))
      return Status(Code::corrupt, "its records do not fill the file");
    column.type.item_bytes = *count > 0 ? room / *count : 0;
  }
  const auto bytes = checked_array_bytes(column.shape, column.type.item_bytes);
  if (!bytes || (column.unusable.ok() && *bytes > room)) {
    return Status(Code::corrupt, "the .npy file is cut short: its array takes " +
                                     (bytes ? count_in_words(*bytes) : "more than 2^60") + " bytes, and " +
                                     count_in_words(room) + " follow");
  }
  part.start = header.bytes;
  if (!pipeline.empty() && part.raw > kLargestPiece && column.unusable.ok()) {
    column.unusable = Status(Code::unsupported,
                             "is compressed in one piece of " + bytes_in_words(part.raw) +
                                 ", which every sample would have to decode; save it with numpy.savez, which "
                                 "does not compress");
  }
  column.pipeline = std::move(pipeline);
  column.part_bytes = std::max<uint64_t>(*bytes, 1);
  column.parts = {part};
  return column;
}

// The first bytes of a compressed member, as many as its header has.
Result<NpyHeader> decode_header(const Pipeline& pipeline, Bytes stored) {
  // The decoder of long streams knows gzip, not bare DEFLATE; nobody gets to its end.
  static constexpr std::string_view kGzipHead("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
  const bool deflate = pipeline[0].name == "deflate";
  Bytes front = deflate ? as_bytes(kGzipHead) : Bytes();
  PACKTRAIN_ASSIGN(stream, make_stream_decoder(deflate ? "gzip" : pipeline[0].name,
                                               [&](MutableBytes into) -> Result<size_t> {
                                                 Bytes& from = front.empty() ? stored : front;
                                                 const size_t count = std::min(into.size(), from.size());
                                                 if (count > 0) std::memcpy(into.data(), from.data(), count);
                                                 from = from.subspan(count);
                                                 return count;
                                               }));
  std::vector<std::byte> head(kNpyPrologueBytes);
  PACKTRAIN_ASSIGN(got, stream->read(head));
  head.resize(got);
  PACKTRAIN_ASSIGN(bytes, npy_header_bytes(head));
  head.resize(std::max(bytes, got));
  PACKTRAIN_ASSIGN(more, stream->read(MutableBytes(head).subspan(got)));
  head.resize(got + more);
  return parse_npy_header(head);
}

// Reads the .npy headers of an archive along with its directory.
class NpzIndexer {
 public:
  NpzIndexer(Storage& storage, const File& file, const IndexOptions& options)
      : storage_(storage),
        file_(file),
        options_(strict(options, damage_)),
        directory_(storage, file, options_) {}

  Status run(ArrayTable& table) {
    Status status = directory_.read(
        [](const ZipEntry& entry) {
          if (!is_array(entry)) return uint64_t{0};
          return std::min(entry.stored, zip_pipeline(entry).empty() ? kNpyHeadBytes : kStoredHeadBytes);
        },
        [&](size_t member, Bytes first) { return take(member, first, table); });
    PACKTRAIN_TRY(status);
    if (!damage_.empty()) {
      return Status(Code::corrupt, damage_[0].what + "; its columns are of use only together: save it again")
          .at("@ " + std::to_string(damage_[0].offset));
    }
    std::set<std::string_view> names;
    for (const ArrayColumn& column : table.arrays) {
      table.own_names = table.own_names || column.name == kKeyColumn;
      if (!names.insert(column.name).second)
        return Status(Code::corrupt, "two arrays have the name " + printable(column.name));
    }
    return {};
  }

 private:
  // A table that lacks a column is none: nothing is passed over.
  static IndexOptions strict(const IndexOptions& options, std::vector<Damage>& damage) {
    IndexOptions mine = options;
    mine.recover = true;
    mine.damage = &damage;
    return mine;
  }

  static bool is_array(const ZipEntry& entry) {
    return entry.name.ends_with(kNpySuffix) && entry.name.size() > kNpySuffix.size() && entry.stored > 0;
  }

  Status take(size_t number, Bytes first, ArrayTable& table) {
    const ZipMember& member = directory_.members()[number];
    PACKTRAIN_ASSIGN(header, read_header(member, first));
    if (header.bytes > member.record.raw) return Status(Code::corrupt, "the .npy file is cut short");
    const std::string_view name = member.record.name;
    ArrayPart part{.offset = member.data_offset,
                   .stored = member.record.stored,
                   .raw = member.record.raw,
                   .check_kind = CheckKind::crc32,
                   .check = member.record.crc32};
    PACKTRAIN_ASSIGN(column, column_of(std::string(name.substr(0, name.size() - kNpySuffix.size())), header,
                                       part, zip_pipeline(member.record)));
    table.arrays.push_back(std::move(column));
    return {};
  }

  Result<NpyHeader> read_header(const ZipMember& member, Bytes first) {
    const ZipEntry& record = member.record;
    const Pipeline pipeline = zip_pipeline(record);
    const uint64_t longest = kNpyPrologueBytes + kNpyLargestHeader;
    std::vector<std::byte> more;
    if (pipeline.empty()) {
      PACKTRAIN_ASSIGN(bytes, npy_header_bytes(first));
      if (bytes <= first.size() || first.size() == record.stored) return parse_npy_header(first);
      more.resize(std::min<uint64_t>(bytes, record.stored));
    } else {
      auto header = decode_header(pipeline, first);
      if (header.ok() || header.status().code() != Code::corrupt || first.size() == record.stored)
        return header;
      more.resize(std::min<uint64_t>(2 * longest, record.stored));
    }
    PACKTRAIN_TRY(storage_.read(file_, member.data_offset, more));
    return pipeline.empty() ? parse_npy_header(more) : decode_header(pipeline, more);
  }

  Storage& storage_;
  const File& file_;
  std::vector<Damage> damage_;
  const IndexOptions options_;
  ZipDirectory directory_;
};

Result<ArrayColumn> read_bare(Storage& storage, const File& file, std::string_view name, uint32_t number) {
  std::vector<std::byte> head(std::min(file.size(), kNpyHeadBytes));
  PACKTRAIN_TRY(storage.read(file, 0, head));
  PACKTRAIN_ASSIGN(bytes, npy_header_bytes(head));
  if (bytes > head.size() && file.size() > head.size()) {
    head.resize(std::min<uint64_t>(bytes, file.size()));
    PACKTRAIN_TRY(storage.read(file, 0, head));
  }
  PACKTRAIN_ASSIGN(header, parse_npy_header(head));
  PACKTRAIN_ASSIGN(column, column_of(std::string(name), header,
                                     {.file = number, .stored = file.size(), .raw = file.size()}, {}));
  return column;
}

// Files that may hold the labels of a .npy file: STEM_labels.npy, y_… of x_…, labels.npy.
std::vector<std::string> label_paths(std::string_view path) {
  const size_t slash = path.rfind('/') + 1;  // 0 where there is none
  const std::string folder(path.substr(0, slash));
  const std::string stem(path.substr(slash, path.size() - slash - kNpySuffix.size()));
  std::vector<std::string> paths = {folder + stem + "_labels.npy"};
  const bool x = stem == "x" || stem == "X" || stem.starts_with("x_") || stem.starts_with("X_");
  if (x) paths.push_back(folder + "y" + stem.substr(1) + ".npy");
  paths.push_back(folder + "labels.npy");
  return paths;
}

// Adds the first of them that is one whole number for each row.
Status add_labels(Storage& storage, std::string_view path, ArrayTable& table) {
  if (!path.ends_with(kNpySuffix) || table.arrays[0].shape.empty()) return {};
  for (const std::string& beside : label_paths(path)) {
    if (beside == path) continue;
    auto file = storage.open(beside);
    if (!file.ok() && file.status().code() == Code::not_found) continue;
    if (!file.ok()) return file.status();
    const auto number = static_cast<uint32_t>(table.files.size());
    auto column = read_bare(storage, **file, kLabelColumn, number);
    if (!column.ok()) return column.status().at(printable(beside));
    if (column->rows() != table.arrays[0].rows() || !column->type.is_integer()) continue;
    ArrayFile labels{.path = beside, .shard = {}, .file = std::shared_ptr<const File>(std::move(*file))};
    labels.shard.bytes = labels.file->size();
    table.files.push_back(std::move(labels));
    table.arrays.push_back(std::move(*column));
    return {};
  }
  return {};
}

bool starts_like_npz(Storage& storage, const File& file) {
  std::byte head[kZipLocalBytes + 256];
  const Bytes first = std::span(head).first(std::min<uint64_t>(sizeof head, file.size()));
  if (first.size() < kZipLocalBytes || !storage.read(file, 0, std::span(head).first(first.size())).ok())
    return false;
  const auto local = parse_zip_local(first);
  if (!local.ok() || local->name_bytes > first.size() - kZipLocalBytes) return false;
  const std::string_view name = as_text(first.subspan(kZipLocalBytes, local->name_bytes));
  return name.ends_with(kNpySuffix) && name.find('/') == std::string_view::npos;
}

bool recognise_npz(Storage& storage, std::string_view path) {
  auto file = storage.open(path);
  if (!file.ok()) return false;
  std::byte magic[6];
  if ((*file)->size() > sizeof magic && storage.read(**file, 0, magic).ok() && starts_npy(magic)) return true;
  if (!looks_like_zip(storage, **file)) return false;
  // A zip of samples that are .npy files is not told from an NPZ by its bytes, only by its name.
  return path.ends_with(".npz") || (!path.ends_with(".zip") && starts_like_npz(storage, **file));
}

Status index_bare(Storage& storage, std::string_view path, const std::shared_ptr<const File>& file,
                  const IndexOptions& options, IndexBuilder& out) {
  ArrayTable table;
  table.files.push_back({std::string(path), shard_spec(kNpz, path, *file, options), file});
  PACKTRAIN_ASSIGN(column, read_bare(storage, *file, kBareField, 0));
  if (column.shape.empty())
    return Status(Code::unsupported, "is a single number; an array with one row for each sample is needed");
  table.arrays.push_back(std::move(column));
  PACKTRAIN_TRY(add_labels(storage, path, table));
  return add_array_samples(storage, table, options, out);
}

Status index_npz(Storage& storage, std::string_view path, const IndexOptions& options, IndexBuilder& out) {
  PACKTRAIN_ASSIGN(opened, storage.open(path));
  std::shared_ptr<const File> file = std::move(opened);
  std::byte magic[6] = {};
  const bool long_enough = file->size() > sizeof magic;
  if (long_enough) PACKTRAIN_TRY(storage.read(*file, 0, magic));
  if (starts_npy(magic)) {
    Status status = index_bare(storage, path, file, options, out);
    return status.ok() ? status : status.at(path);
  }
  ArrayTable table;
  table.files.push_back({std::string(path), shard_spec(kNpz, path, *file, options), file});
  Status status = NpzIndexer(storage, *file, options).run(table);
  if (!status.ok()) return status.at(path);
  if (!is_array_table(table)) return index_zip_members(storage, path, *file, kNpz, options, out);
  status = add_array_samples(storage, table, options, out);
  return status.ok() ? status : status.at(path);
}

}  // namespace

const Format kNpz = {
    .name = "npz",
    .suffix = ".npz",
    .summary = "NumPy archives (.npz) and arrays (.npy), a row for each sample",
    .recognise = recognise_npz,
    .index = index_npz,
    .layout = nullptr,
    .create = create_npz,
    .label_column = true,
};

}  // namespace packtrain
