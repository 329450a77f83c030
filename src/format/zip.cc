// Zip archives: the indexer. Entries stored as they are become plain extents with zip's own CRC-32,
// compressed ones blocks. Directory and local headers are read, payload is not, but for labels.
#include <mutex>

#include "base/hash.h"
#include "base/words.h"
#include "format/grouping.h"
#include "format/table.h"
#include "format/zip_directory.h"
#include "format/zip_write.h"
#include "packtrain/codec.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

constexpr uint64_t kLabelStored = 64;  // a label of kLabelBytes takes less in any method

bool is_label(const ZipEntry& entry) {
  return entry.raw <= kLabelBytes && entry.stored <= kLabelStored && is_label_member(entry.name);
}

Result<int64_t> read_label(const ZipEntry& entry, Bytes stored) {
  std::byte bytes[kLabelBytes];
  MutableBytes raw = std::span(bytes).first(entry.raw);
  PACKTRAIN_TRY(decode(zip_pipeline(entry), stored, raw));
  if (crc32(raw) != entry.crc32) return Status(Code::corrupt, "its bytes do not match its CRC-32");
  return parse_label(raw).value_or(kNoLabel);
}

bool recognise_zip(Storage& storage, std::string_view path) {
  auto file = storage.open(path);
  return file.ok() && looks_like_zip(storage, **file);
}

}  // namespace

Status index_zip_members(Storage& storage, std::string_view path, const File& file, const Format& format,
                         const IndexOptions& options, IndexBuilder& out) {
  ZipDirectory directory(storage, file, options);
  std::vector<int64_t> labels;
  std::once_flag sized;  // whoever finds the first label knows how many members there are
  Status status =
      directory.read([](const ZipEntry& entry) { return is_label(entry) ? entry.stored : 0; },
                     [&](size_t member, Bytes stored) -> Status {
                       PACKTRAIN_ASSIGN(label, read_label(directory.members()[member].record, stored));
                       std::call_once(sized, [&] { labels.assign(directory.members().size(), kNoLabel); });
                       labels[member] = label;
                       return {};
                     },
                     EachCall::side_by_side);
  if (!status.ok()) return status.at(path);
  uint32_t shard = out.add_shard(shard_spec(format, path, file, options));
  MemberList members;
  members.reserve(directory.members().size());
  for (size_t i = 0; i < directory.members().size(); ++i) {
    const ZipMember& member = directory.members()[i];
    if (!member.damage.ok()) continue;
    MemberPlace place{.offset = member.data_offset,
                      .stored = member.record.stored,
                      .raw = member.record.raw,
                      .check_kind = CheckKind::crc32,
                      .check = member.record.crc32,
                      .label = labels.empty() ? kNoLabel : labels[i]};
    if (member.record.method != static_cast<uint16_t>(ZipMethod::store))
      place.pipeline = out.add_pipeline(zip_pipeline(member.record));
    members.add(member.record.name, place);
  }
  // A zip has a directory, and the order of its entries is that of some filesystem: it promises nothing.
  status = members.add_samples(Adjacency::irrelevant, shard, options, out);
  return status.ok() ? status : status.at(path);
}

namespace {

Status index_zip(Storage& storage, std::string_view path, const IndexOptions& options, IndexBuilder& out) {
  PACKTRAIN_ASSIGN(file, storage.open(path));
  return index_zip_members(storage, path, *file, kZip, options, out);
}

}  // namespace

const Format kZip = {
    .name = "zip",
    .suffix = ".zip",
    .summary = "zip archives, stored or compressed by entry",
    .recognise = recognise_zip,
    .index = index_zip,
    .layout = &kZipLayout,
    .create = create_zip,
    .codecs = kZipCodecs,
};

}  // namespace packtrain
