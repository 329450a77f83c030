// A compressed archive comes front to back, while its samples go to shards in another order: every member is
// written at its planned place as it passes by, into all shards at once. Nothing is unpacked to disk, no
// member is held whole.
#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/words.h"
#include "pack/shard_layout.h"
#include "pack/writers.h"
#include "packtrain/decode.h"

namespace packtrain {
namespace {

constexpr size_t kPieceBytes = 4 << 20;

struct OpenShard {
  uint32_t number = 0;
  ShardLayout layout;
  std::unique_ptr<Writer> writer;
  ShardRows rows;
  std::vector<uint32_t> crc32;
};

// Where a member of a stream goes.
struct Target {
  uint32_t source = 0;
  uint64_t member_number = 0;  // in the archive
  uint32_t shard = 0;          // into the open shards
  uint64_t member = 0;         // of its layout
};

class ScatterWriter {
 public:
  explicit ScatterWriter(WriteContext& context) : context_(context), layout_(*context.format.layout) {}

  Status run(const std::vector<uint32_t>& numbers) {
    Status status = write(numbers);
    for (OpenShard& shard : shards_) {
      if (!status.ok() && shard.writer) shard.writer->discard();
    }
    return status;
  }

 private:
  Status write(const std::vector<uint32_t>& numbers);
  Status write_member(OpenShard& shard, size_t member, const std::function<Status(MutableBytes)>& next_bytes);
  Status read_stream(uint32_t source, std::span<const Target> targets);

  WriteContext& context_;
  const Layout& layout_;
  std::vector<OpenShard> shards_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kPieceBytes);
};

// Takes the member's bytes from `next_bytes` in order, and writes head, data and padding.
Status ScatterWriter::write_member(OpenShard& shard, size_t number,
                                   const std::function<Status(MutableBytes)>& next_bytes) {
  const PlannedMember& member = shard.layout.members[number];
  uint32_t check = 0, zip_check = 0;
  for (uint64_t done = 0; done < member.size;) {
    const MutableBytes part =
        MutableBytes(buffer_).first(std::min<uint64_t>(buffer_.size(), member.size - done));
    PACKTRAIN_TRY(next_bytes(part));
    if (done == 0 && shard.rows.widths[member.sample] == 0) {
      if (const auto shape = image_shape(part)) {
        shard.rows.widths[member.sample] = shape->width;
        shard.rows.heights[member.sample] = shape->height;
      }
    }
    check = crc32c(part, check);
    if (layout_.needs_crc32) zip_check = crc32(part, zip_check);
    PACKTRAIN_TRY(shard.writer->write_at(member.data_offset + done, part));
    done += part.size();
  }
  shard.rows.checks[number] = check;
  if (layout_.needs_crc32) shard.crc32[number] = zip_check;
  std::vector<std::byte> head(member.data_offset - member.head_offset);
  layout_.write_head({shard.layout.name(member), member.head_offset, member.size, zip_check}, head);
  PACKTRAIN_TRY(shard.writer->write_at(member.head_offset, head));
  // Padding needs no writing: a new file reads as zero where nothing was written.
  const bool last_of_sample = number + 1 == shard.layout.first_member[member.sample + 1];
  if (!context_.meter.add(last_of_sample ? 1 : 0, member.size + head.size())) {
    return Status(Code::stopped, "stopped; run the same command again to go on");
  }
  return {};
}

Status ScatterWriter::read_stream(uint32_t source, std::span<const Target> targets) {
  const PieceFile& file = context_.plan.catalog.streams[source];
  PACKTRAIN_ASSIGN(stream, open_planned_stream(context_.storage, file, context_.folder));
  ArchiveStream::Member member;
  size_t at = 0;
  while (at < targets.size()) {
    PACKTRAIN_ASSIGN(more, stream->next(member));
    if (!more) return changed_stream(file, context_.folder);
    if (member.number != targets[at].member_number) continue;
    OpenShard& shard = shards_[targets[at].shard];
    if (member.size != shard.layout.members[targets[at].member].size)
      return changed_stream(file, context_.folder);
    PACKTRAIN_TRY(
        write_member(shard, targets[at].member, [&](MutableBytes into) { return stream->read(into); }));
    ++at;
  }
  return read_to_end(*stream);
}

Status ScatterWriter::write(const std::vector<uint32_t>& numbers) {
  const Catalog& catalog = context_.plan.catalog;
  std::vector<Target> targets;
  shards_.resize(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    OpenShard& shard = shards_[i];
    shard.number = numbers[i];
    const ShardPlan& plan = context_.plan.shards[numbers[i]];
    shard.layout = lay_out(context_.plan, plan, layout_, {});
    shard.rows.bytes = shard.layout.bytes;
    shard.rows.checks.resize(shard.layout.members.size());
    shard.rows.widths.resize(shard.layout.samples.size());
    shard.rows.heights.resize(shard.layout.samples.size());
    if (layout_.needs_crc32) shard.crc32.resize(shard.layout.members.size());
    PACKTRAIN_ASSIGN(writer, context_.storage.create(context_.shard_path(plan), shard.layout.bytes,
                                                     shard_write_options(context_)));
    shard.writer = std::move(writer);
    for (size_t m = 0; m < shard.layout.members.size(); ++m) {
      const PlannedMember& member = shard.layout.members[m];
      const Cell cell = catalog.cell(member.cell, shard.layout.samples[member.sample]);
      if (cell.origin == Origin::stream) {
        targets.push_back({cell.source, cell.where, static_cast<uint32_t>(i), m});
        continue;
      }
      std::vector<std::byte> whole(cell.size);
      if (Status status = context_.fetcher.fetch(cell, whole); !status.ok()) {
        return status.at(printable(context_.fetcher.source_path(cell)));
      }
      size_t done = 0;
      PACKTRAIN_TRY(write_member(shard, m, [&](MutableBytes into) -> Status {
        std::memcpy(into.data(), whole.data() + done, into.size());
        done += into.size();
        return {};
      }));
    }
  }
  std::sort(targets.begin(), targets.end(), [](const Target& a, const Target& b) {
    return std::pair(a.source, a.member_number) < std::pair(b.source, b.member_number);
  });
  for (size_t begin = 0; begin < targets.size();) {
    size_t end = begin;
    while (end < targets.size() && targets[end].source == targets[begin].source) ++end;
    PACKTRAIN_TRY(read_stream(targets[begin].source, std::span(targets).subspan(begin, end - begin)));
    begin = end;
  }
  for (OpenShard& shard : shards_) {
    const ShardPlan& plan = context_.plan.shards[shard.number];
    const std::string tail = shard_tail(shard.layout, layout_, shard.crc32);
    PACKTRAIN_TRY(shard.writer->write_at(shard.layout.tail_offset, as_bytes(tail)));
    // Its parts came in no order, so the blocks' checks are taken from the whole, which is still in the page
    // cache.
    const std::string part = context_.shard_path(plan) + ".tmp-" + context_.token;
    PACKTRAIN_ASSIGN(block_checks, read_block_checks(context_.storage, part));
    shard.rows.block_checks = std::move(block_checks);
    PACKTRAIN_TRY(publish_shard(context_, plan, shard.rows, *shard.writer));
    shard.writer = nullptr;
  }
  return {};
}

}  // namespace

Status write_scattered(WriteContext& context, const std::vector<uint32_t>& shards) {
  if (shards.empty()) return {};
  return ScatterWriter(context).run(shards);
}

}  // namespace packtrain
