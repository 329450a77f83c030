#include "pack/writers.h"

#include <algorithm>

#include "base/hash.h"
#include "base/words.h"

namespace packtrain {

bool is_bad_sample(const Status& status) {
  return status.code() == Code::corrupt || status.code() == Code::io || status.code() == Code::not_found ||
         status.code() == Code::unsupported;
}

Status changed_stream(const PieceFile& file, const std::string& part) {
  return Status(Code::corrupt, "has changed since it was listed; " +
                                   (part.empty() ? "pack it" : "remove " + printable(part) + " and pack") +
                                   " again")
      .at(printable(file.path));
}

Result<std::unique_ptr<ArchiveStream>> open_planned_stream(Storage& storage, const PieceFile& file,
                                                           const std::string& part) {
  PACKTRAIN_ASSIGN(info, storage.stat(file.path));
  if (info.size != file.bytes || info.mtime_ns != file.mtime_ns) return changed_stream(file, part);
  return ArchiveStream::open(storage, file.path);
}

Status read_to_end(ArchiveStream& stream) {
  ArchiveStream::Member member;
  while (true) {
    PACKTRAIN_ASSIGN(more, stream.next(member));
    if (!more) return {};
  }
}

BadSample bad_sample(const WriteContext& context, uint64_t sample, const Cell& cell, const Status& status) {
  std::string path = context.fetcher.source_path(cell);
  // The storage puts the path in front of its message; it is here already.
  std::string what = status.text();
  if (const std::string prefix = printable(path) + ": "; what.starts_with(prefix))
    what.erase(0, prefix.size());
  if (const std::string_view member = context.plan.catalog.name(cell.path);
      cell.origin == Origin::container && !member.empty())
    path.append(": ").append(member);
  return {std::move(path), std::move(what), std::string(context.plan.key(sample))};
}

WriteOptions shard_write_options(const WriteContext& context) {
  WriteOptions options;
  options.token = context.token;
  options.durable = context.durable;
  options.replace = true;  // another process may have written the same bytes meanwhile
  return options;
}

Status write_rows(WriteContext& context, const ShardPlan& shard, const ShardRows& rows) {
  WriteOptions options = shard_write_options(context);
  options.durable = false;  // a record that a crash tore fails its checks, and the shard is written again
  return write_rows(context.storage, context.folder + "/" + rows_name(shard), rows, options);
}

Status publish_shard(WriteContext& context, const ShardPlan& shard, const ShardRows& rows, Writer& writer) {
  PACKTRAIN_TRY(write_rows(context, shard, rows));
  return writer.commit();
}

Result<std::vector<uint32_t>> read_block_checks(Storage& storage, std::string_view path) {
  PACKTRAIN_ASSIGN(file, storage.open(path));
  std::vector<std::byte> block(std::min<uint64_t>(kBlockBytes, file->size()));
  std::vector<uint32_t> checks;
  for (uint64_t at = 0; at < file->size(); at += kBlockBytes) {
    const MutableBytes part = MutableBytes(block).first(std::min<uint64_t>(kBlockBytes, file->size() - at));
    PACKTRAIN_TRY(storage.read(*file, at, part));
    checks.push_back(crc32c(part));
  }
  return checks;
}

}  // namespace packtrain
