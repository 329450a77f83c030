#include "index/open_dataset.h"
#include "index/rows.h"

namespace packtrain {
namespace {

constexpr uint64_t kLargestBlock = uint64_t{1}
                                   << 40;  // a raw size above this is a damaged index, not a block

}  // namespace

uint64_t OpenDataset::cell_of(uint64_t sample, uint32_t field) const {
  const uint64_t end = std::min<uint64_t>(general_.sample_cell[sample + 1], general_.cell_field.size());
  for (uint64_t cell = general_.sample_cell[sample]; cell < end; ++cell) {
    if (general_.cell_field[cell] == field) return cell;
  }
  return UINT64_MAX;
}

Result<Block> OpenDataset::block_at(uint64_t id) const {
  const Status damaged(Code::corrupt, "index.npz is damaged; run packtrain verify");
  if (id >= general_.block_shard.size()) return damaged;
  const uint16_t flags = general_.block_flags[id];
  Block block{.shard = general_.block_shard[id],
              .pipeline = general_.block_pipeline[id],
              .check_kind = static_cast<CheckKind>(flags & 3),
              .hole = (flags & rows::kHoleFlag) != 0,
              .offset = general_.block_offset[id],
              .stored = general_.block_stored[id],
              .raw = general_.block_raw[id],
              .check = general_.block_check[id]};
  if (block.pipeline >= manifest_.pipelines.size() || block.raw > kLargestBlock ||
      block.shard >= manifest_.shards.size() || block.offset > manifest_.shards[block.shard].bytes ||
      block.stored > manifest_.shards[block.shard].bytes - block.offset) {
    return damaged;
  }
  return block;
}

Result<uint64_t> OpenDataset::cell_length(uint64_t cell) const {
  uint64_t length = 0;
  const uint64_t end = general_.cell_slice[cell + 1];
  if (end > general_.slice_block.size())
    return Status(Code::corrupt, "index.npz is damaged; run packtrain verify");
  for (uint64_t slice = general_.cell_slice[cell]; slice < end; ++slice) {
    if (general_.slice_length[slice] > kLargestBlock)
      return Status(Code::corrupt, "index.npz is damaged; run packtrain verify");
    length += general_.slice_length[slice];
  }
  return length;
}

FieldLocation OpenDataset::locate(uint64_t sample, uint32_t field) const {
  FieldLocation location;
  if (field >= manifest_.fields.size()) return location;
  if (is_rows_) {
    const Rows::Field& columns = rows_.fields[field];
    if (columns.length[sample] == rows::kAbsent) return location;
    location.present = location.plain = true;
    location.length = columns.length[sample];
    location.shard = rows_.shard[sample];
    location.offset = rows_.offset[sample] + columns.offset[sample];
    location.check_kind = manifest_.fields[field].check;
    location.check = columns.check.empty() ? 0 : columns.check[sample];
    return location;
  }
  const uint64_t cell = cell_of(sample, field);
  if (cell == UINT64_MAX) return location;
  location.present = true;
  location.length = cell_length(cell).ok() ? cell_length(cell).value() : 0;
  const uint64_t first = general_.cell_slice[cell];
  if (general_.cell_slice[cell + 1] != first + 1) return location;
  auto block = block_at(general_.slice_block[first]);
  if (!block.ok() || block->hole || !manifest_.pipelines[block->pipeline].empty()) return location;
  location.plain = true;
  location.shard = block->shard;
  location.offset = block->offset + general_.slice_start[first];
  if (general_.slice_start[first] == 0 && general_.slice_length[first] == block->raw) {
    location.check_kind = block->check_kind;
    location.check = block->check;
  }
  return location;
}

Status OpenDataset::slices(uint64_t sample, uint32_t field, std::vector<std::pair<Block, Slice>>& out) const {
  out.clear();
  if (is_rows_) {
    const FieldLocation location = locate(sample, field);
    if (!location.present) return {};
    out.emplace_back(Block{.shard = location.shard,
                           .check_kind = location.check_kind,
                           .offset = location.offset,
                           .stored = location.length,
                           .raw = location.length,
                           .check = location.check},
                     Slice{.length = location.length});
    return {};
  }
  const uint64_t cell = cell_of(sample, field);
  if (cell == UINT64_MAX) return {};
  PACKTRAIN_TRY(cell_length(cell).status());
  for (uint64_t slice = general_.cell_slice[cell]; slice < general_.cell_slice[cell + 1]; ++slice) {
    PACKTRAIN_ASSIGN(block, block_at(general_.slice_block[slice]));
    out.emplace_back(
        block, Slice{general_.slice_block[slice], general_.slice_start[slice], general_.slice_length[slice]});
  }
  return {};
}

uint32_t OpenDataset::shard_of(uint64_t sample) const {
  if (is_rows_) return rows_.shard[sample];
  const uint64_t cell = general_.sample_cell[sample];
  if (cell >= general_.cell_field.size()) return 0;
  const uint64_t slice = general_.cell_slice[cell];
  if (slice >= general_.slice_block.size() || general_.slice_block[slice] >= general_.block_shard.size())
    return 0;
  return general_.block_shard[general_.slice_block[slice]];
}

}  // namespace packtrain
