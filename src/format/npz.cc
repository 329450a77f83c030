// NPZ: the indexer. An NPZ is a zip of .npy files; rows of arrays become samples as array_table.h says. Where
// the arrays are no table, each of them is a sample of its own, as in a zip of .npy files.
#include <algorithm>
#include <cstring>
#include <set>

#include "base/words.h"
#include "format/array_table.h"
#include "format/columns.h"
#include "format/npy_column.h"
#include "format/npy_header.h"
#include "format/npz_write.h"
#include "format/table.h"
#include "format/zip_directory.h"

namespace packtrain {
namespace {

constexpr uint64_t kStoredHeadBytes = 4096;  // what surely decodes to kNpyHeadBytes

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
    PACKTRAIN_ASSIGN(column, npy_column(std::string(name.substr(0, name.size() - kNpySuffix.size())), header,
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
  if (!looks_like_zip(storage, **file)) return false;
  // A zip of samples that are .npy files is not told from an NPZ by its bytes, only by its name.
  return path.ends_with(".npz") || (!path.ends_with(".zip") && starts_like_npz(storage, **file));
}

Status index_npz(Storage& storage, std::string_view path, const IndexOptions& options, IndexBuilder& out) {
  PACKTRAIN_ASSIGN(opened, storage.open(path));
  std::shared_ptr<const File> file = std::move(opened);
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
    .summary = "NumPy archives, a row of each array for each sample",
    .recognise = recognise_npz,
    .index = index_npz,
    .layout = nullptr,
    .create = create_npz,
    .label_column = true,
    .own_checks = zip_own_checks,
};

}  // namespace packtrain
