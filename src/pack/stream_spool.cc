#include "pack/stream_spool.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/words.h"
#include "pack/archive_stream.h"
#include "pack/progress_meter.h"
#include "pack/writers.h"

namespace packtrain {
namespace {

constexpr size_t kBufferBytes = size_t{4} << 20;

}  // namespace

std::vector<StreamSpool::Member> StreamSpool::members_of(const Plan& plan,
                                                         const std::vector<uint32_t>& shards,
                                                         const WrittenFields& fields) {
  const Catalog& catalog = plan.catalog;
  std::vector<Member> members;
  if (catalog.streams.empty()) return members;
  for (const uint32_t number : shards) {
    const ShardPlan& shard = plan.shards[number];
    for (uint64_t i = shard.first; i < shard.first + shard.count; ++i) {
      for (const Cell& cell : SampleCells(catalog, plan.order[i])) {
        if (cell.origin != Origin::stream || !fields.has(catalog.fields[cell.field])) continue;
        members.push_back({.source = cell.source, .number = cell.where, .size = cell.size});
      }
    }
  }
  const auto key = [](const Member& member) { return std::pair(member.source, member.number); };
  std::sort(members.begin(), members.end(),
            [&](const Member& a, const Member& b) { return key(a) < key(b); });
  members.erase(std::unique(members.begin(), members.end(),
                            [&](const Member& a, const Member& b) { return key(a) == key(b); }),
                members.end());
  uint64_t at = 0;
  for (Member& member : members) {
    member.at = at;
    at += member.size;
  }
  return members;
}

uint64_t stream_bytes(const Plan& plan, const std::vector<uint32_t>& shards, const WrittenFields& fields) {
  const auto members = StreamSpool::members_of(plan, shards, fields);
  return members.empty() ? 0 : members.back().at + members.back().size;
}

// Decompresses archives into the part, small members many at a time.
class SpoolFiller {
 public:
  SpoolFiller(StreamSpool& spool, const Plan& plan, std::string part, ProgressMeter& meter)
      : spool_(spool), plan_(plan), part_(std::move(part)), meter_(meter), buffer_(kBufferBytes) {}

  Status run() {
    const auto& members = spool_.members_;
    for (size_t begin = 0; begin < members.size();) {
      size_t end = begin;
      while (end < members.size() && members[end].source == members[begin].source) ++end;
      PACKTRAIN_TRY(read_stream(plan_.catalog.streams[members[begin].source], begin, end));
      begin = end;
    }
    return flush();
  }

 private:
  Status read_stream(const PieceFile& file, size_t begin, size_t end) {
    PACKTRAIN_ASSIGN(stream, open_planned_stream(spool_.storage_, file, part_));
    ArchiveStream::Member found;
    for (size_t at = begin; at < end;) {
      PACKTRAIN_ASSIGN(more, stream->next(found));
      if (!more) return changed_stream(file, part_);
      const StreamSpool::Member& member = spool_.members_[at];
      if (found.number != member.number) continue;
      if (found.size != member.size) return changed_stream(file, part_);
      for (uint64_t left = member.size; left > 0;) {
        const MutableBytes part =
            MutableBytes(buffer_).subspan(used_, std::min<uint64_t>(left, buffer_.size() - used_));
        PACKTRAIN_TRY(stream->read(part));
        used_ += part.size();
        left -= part.size();
        if (used_ == buffer_.size()) PACKTRAIN_TRY(flush());
      }
      ++at;
      if (!meter_.add(1, member.size))
        return Status(Code::stopped, "stopped; run the same command again to go on");
    }
    return read_to_end(*stream);
  }

  Status flush() {
    PACKTRAIN_TRY(spool_.writer_->write_at(written_, Bytes(buffer_).first(used_)));
    written_ += used_;
    used_ = 0;
    return {};
  }

  StreamSpool& spool_;
  const Plan& plan_;
  const std::string part_;
  ProgressMeter& meter_;
  std::vector<std::byte> buffer_;
  size_t used_ = 0;
  uint64_t written_ = 0;
};

Result<std::unique_ptr<StreamSpool>> StreamSpool::make(Storage& storage, const Plan& plan,
                                                       const std::vector<uint32_t>& shards,
                                                       const WrittenFields& fields, const std::string& folder,
                                                       const std::string& token, const Progress& progress) {
  std::unique_ptr<StreamSpool> spool(new StreamSpool(storage, members_of(plan, shards, fields)));
  const auto& members = spool->members_;
  if (members.empty()) return spool;
  const uint64_t bytes = members.back().at + members.back().size;
  const std::string path = folder + "/streams";
  WriteOptions options;
  options.token = token;
  options.durable = false;
  PACKTRAIN_ASSIGN(writer, storage.create(path, bytes, options));
  spool->writer_ = std::move(writer);
  ProgressMeter meter(progress, "decompress", "files", members.size(), bytes);
  PACKTRAIN_TRY(SpoolFiller(*spool, plan, folder, meter).run());
  PACKTRAIN_ASSIGN(file, storage.open(path + ".tmp-" + token));
  spool->file_ = std::move(file);
  return spool;
}

StreamSpool::~StreamSpool() {
  file_.reset();
  if (writer_) writer_->discard();
}

Status StreamSpool::read(const Cell& cell, uint64_t offset, MutableBytes into) const {
  if (into.empty()) return {};
  const auto at = std::lower_bound(members_.begin(), members_.end(), std::pair(cell.source, cell.where),
                                   [](const Member& member, const std::pair<uint32_t, uint64_t>& key) {
                                     return std::pair(member.source, member.number) < key;
                                   });
  if (at == members_.end() || at->source != cell.source || at->number != cell.where)
    return Status(Code::invalid, "a member of a compressed archive is not among those that were asked for");
  return storage_.read(*file_, at->at + offset, into);
}

}  // namespace packtrain
