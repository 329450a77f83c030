#include "pack/zip_leftovers.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/words.h"
#include "format/grouping.h"
#include "format/zip_records.h"

namespace packtrain {
namespace {

constexpr uint64_t kHighestRatio = 1032;  // of DEFLATE; what claims more was made to exhaust memory

struct Directory {
  std::vector<std::byte> bytes;
  uint64_t shift = 0;  // what stands in front of the archive shifts all of its offsets
};

Result<Directory> read_directory(Storage& storage, const File& file) {
  const auto tail_bytes =
      static_cast<size_t>(std::min<uint64_t>(file.size(), kZipEndBytes + kZipLongestComment));
  std::vector<std::byte> tail(tail_bytes);
  PACKTRAIN_TRY(storage.read(file, file.size() - tail_bytes, tail));
  const auto at = find_zip_end(tail);
  if (!at) return Status(Code::corrupt, "no end record");
  ZipEnd end = parse_zip_end(Bytes(tail).subspan(*at, kZipEndBytes));
  uint64_t directory_end = file.size() - tail_bytes + *at;
  if (directory_end >= kZip64LocatorBytes + kZip64EndBytes) {
    std::byte records[kZip64EndBytes + kZip64LocatorBytes];
    PACKTRAIN_TRY(storage.read(file, directory_end - sizeof records, records));
    const auto locator = parse_zip64_locator(Bytes(records).subspan(kZip64EndBytes));
    const auto large = parse_zip64_end(Bytes(records).first(kZip64EndBytes));
    if (locator && large) {
      end = *large;
      directory_end -= sizeof records;
    }
  }
  if (end.directory_bytes > directory_end || end.directory_offset > directory_end - end.directory_bytes)
    return Status(Code::corrupt, "the directory does not fit into the file");
  Directory directory;
  directory.bytes.resize(static_cast<size_t>(end.directory_bytes));
  directory.shift = directory_end - end.directory_bytes - end.directory_offset;
  PACKTRAIN_TRY(storage.read(file, directory_end - end.directory_bytes, directory.bytes));
  return directory;
}

Status add_entry(Storage& storage, const File& file, const ZipEntry& entry, uint64_t local_offset,
                 uint32_t shard, IndexBuilder& builder) {
  if ((entry.flags & (kZipEncrypted | kZipStrongEncryption)) != 0)
    return Status(Code::unsupported, "is encrypted; unpack the archive and pack the folder");
  std::byte header[kZipLocalBytes];
  if (local_offset > file.size() || file.size() - local_offset < sizeof header)
    return Status(Code::corrupt, "lies beyond the end of the file");
  PACKTRAIN_TRY(storage.read(file, local_offset, header));
  PACKTRAIN_ASSIGN(local, parse_zip_local(header));
  const uint64_t data = local_offset + kZipLocalBytes + local.name_bytes + local.extra_bytes;
  if (data > file.size() || entry.stored > file.size() - data)
    return Status(Code::corrupt, "lies beyond the end of the file");
  const auto method = static_cast<ZipMethod>(entry.method);
  if (method == ZipMethod::store) {
    if (entry.stored != entry.raw) return Status(Code::corrupt, "is stored, but has two sizes");
    builder.add_field("data", shard, data, entry.raw, CheckKind::crc32, entry.crc32, {});
    return {};
  }
  if (method != ZipMethod::deflate)
    return Status(Code::unsupported, "is compressed by method " + std::to_string(entry.method) +
                                         "; unpack the archive and pack the folder");
  if (entry.raw / kHighestRatio > entry.stored) return Status(Code::corrupt, "claims an impossible size");
  Block block;
  block.shard = shard;
  block.pipeline = builder.add_pipeline({{"deflate"}});
  block.check_kind = CheckKind::crc32;
  block.offset = data;
  block.stored = entry.stored;
  block.raw = entry.raw;
  block.check = entry.crc32;
  const Slice slice{builder.add_block(block), 0, entry.raw};
  builder.add_field("data", std::span(&slice, 1), {});
  return {};
}

}  // namespace

Result<std::shared_ptr<Dataset>> open_zip_leftovers(Storage& storage, const std::string& path,
                                                    std::vector<ZipLeftover>& out) {
  PACKTRAIN_ASSIGN(file, storage.open(path));
  auto directory = read_directory(storage, *file);
  if (!directory.ok()) return directory.status().at(printable(path));
  IndexBuilder builder;
  ShardSpec spec;
  const size_t slash = path.rfind('/');
  spec.path = path.substr(slash == std::string::npos ? 0 : slash + 1);
  spec.format = "zip";
  spec.bytes = file->size();
  spec.mtime_ns = file->info().mtime_ns;
  const uint32_t shard = builder.add_shard(std::move(spec));
  for (Bytes rest = directory->bytes; !rest.empty();) {
    auto entry = take_zip_entry(rest);
    if (!entry.ok()) return entry.status().at(printable(path));
    const bool special = (entry->unix_mode & S_IFMT) != 0 && !S_ISREG(entry->unix_mode);
    if (entry->name.ends_with('/') || special || split_member_name(entry->name)) continue;
    builder.begin_sample(std::to_string(out.size()));
    const Status added =
        add_entry(storage, *file, *entry, entry->local_offset + directory->shift, shard, builder);
    if (!added.ok()) return added.at(printable(entry->name)).at(printable(path));
    PACKTRAIN_TRY(builder.end_sample());
    out.push_back({std::string(entry->name), out.size(), entry->raw});
  }
  if (out.empty()) return std::shared_ptr<Dataset>();
  return Dataset::from_memory(storage, slash == std::string::npos ? "." : path.substr(0, slash),
                              builder.finish());
}

}  // namespace packtrain
