#include <algorithm>

#include "base/give_back.h"
#include "base/words.h"
#include "index/open_dataset.h"
#include "index/rows.h"

namespace packtrain {
namespace {

Status check_fails() {
  return Status(Code::corrupt,
                "the bytes do not match their check: the shard is damaged, or its index, which packtrain "
                "verify tells; restore it from another copy or pack again");
}

Status block_differs(uint64_t id) {
  return Status(Code::corrupt, "block " + std::to_string(id) +
                                   " does not match its check: the container is damaged; restore it from "
                                   "another copy");
}

constexpr uint32_t kSampleReadsInFlight = 32;
constexpr uint64_t kMostBytesInFlight = 64 << 20;  // but for one sample
constexpr uint64_t kMostBytesKept = 4 << 20;       // for the next sample of a slot
constexpr std::chrono::seconds kLookEvery{1};      // at a shard without checks

}  // namespace

Status OpenDataset::at_sample(const Status& status, uint64_t sample, uint32_t field) const {
  auto key = this->key(sample);
  std::string where = "sample " + std::to_string(sample);
  if (key.ok()) where.append(" (").append(printable(*key)).append(")");
  if (field < manifest_.fields.size()) {
    where += ", field " + manifest_.fields[field].name;
    const FieldLocation location = locate(sample, field);
    // A read that failed has said where.
    if (location.plain && location.shard < manifest_.shards.size() &&
        !status.where().starts_with(printable(shard_path(location.shard)))) {
      where = manifest_.shards[location.shard].path + " @ " + std::to_string(location.offset) + ": " + where;
    }
  }
  return status.at(where);
}

Status OpenDataset::read_block(uint64_t id, const Block& block, MutableBytes raw, bool check) const {
  if (block.hole) {
    std::fill(raw.begin(), raw.end(), std::byte{0});  // also where there is nothing, not even an address
    return {};
  }
  PACKTRAIN_ASSIGN(file, shard_file(block.shard));
  const Pipeline& pipeline = manifest_.pipelines[block.pipeline];
  if (pipeline.empty()) {
    if (block.stored != raw.size())
      return Status(Code::corrupt, "index.npz is damaged; run packtrain verify");
    PACKTRAIN_TRY(storage_.read(*file, block.offset, raw));
  } else {
    std::vector<std::byte> stored(block.stored);
    PACKTRAIN_TRY(storage_.read(*file, block.offset, stored));
    if (check && checks_stored(pipeline) && !matches(block.check_kind, block.check, stored))
      return block_differs(id);
    PACKTRAIN_TRY(decode(pipeline, stored, raw));
  }
  if (check && !checks_stored(pipeline) && !matches(block.check_kind, block.check, raw))
    return block_differs(id);
  return {};
}

Status OpenDataset::read_cell(uint64_t cell, MutableBytes out, bool check) const {
  size_t done = 0;
  for (uint64_t slice = general_.cell_slice[cell]; slice < general_.cell_slice[cell + 1]; ++slice) {
    const uint64_t id = general_.slice_block[slice], start = general_.slice_start[slice],
                   length = general_.slice_length[slice];
    PACKTRAIN_ASSIGN(block, block_at(id));
    if (start > block.raw || length > block.raw - start)
      return Status(Code::corrupt, "index.npz is damaged; run packtrain verify");
    const MutableBytes part = out.subspan(done, length);
    done += length;
    const bool whole = start == 0 && length == block.raw;
    if (whole) {
      PACKTRAIN_TRY(read_block(id, block, part, check));
    } else if (manifest_.pipelines[block.pipeline].empty() && !block.hole &&
               (!check || block.check_kind == CheckKind::none)) {
      PACKTRAIN_ASSIGN(file, shard_file(block.shard));
      PACKTRAIN_TRY(storage_.read(*file, block.offset + start, part));
    } else {
      DecodedBlocks<uint64_t>::Decoded decoded = decoded_.find(id);
      if (!decoded) {
        auto fresh = std::make_shared<std::vector<std::byte>>(block.raw);
        PACKTRAIN_TRY(read_block(id, block, *fresh, check));
        decoded_.keep(id, fresh);
        decoded = std::move(fresh);
      }
      std::copy_n(decoded->data() + start, length, part.data());
    }
  }
  return {};
}

Status OpenDataset::read(uint64_t sample, uint32_t field, std::vector<std::byte>& out, bool check) const {
  if (sample >= samples()) {
    return Status(Code::not_found, "there is no sample " + std::to_string(sample) + "; the dataset has " +
                                       std::to_string(samples()));
  }
  if (field >= manifest_.fields.size())
    return Status(Code::not_found, "there is no such field; packtrain info lists them");
  const auto work = [&]() -> Status {
    if (is_rows_) {
      const FieldLocation location = locate(sample, field);
      if (!location.present)
        return Status(Code::not_found,
                      "the sample has no such field; packtrain info says how many samples have it");
      PACKTRAIN_ASSIGN(file, shard_file(location.shard));
      if (location.offset > file->size() || location.length > file->size() - location.offset) {
        return Status(Code::corrupt, "the index points behind the end of the shard; run packtrain verify");
      }
      out.resize(location.length);
      PACKTRAIN_TRY(storage_.read(*file, location.offset, out));
      if (check && !matches(location.check_kind, location.check, out)) {
        return check_fails();
      }
      return {};
    }
    const uint64_t cell = cell_of(sample, field);
    if (cell == UINT64_MAX)
      return Status(Code::not_found,
                    "the sample has no such field; packtrain info says how many samples have it");
    PACKTRAIN_ASSIGN(length, cell_length(cell));
    out.resize(length);
    return read_cell(cell, out, check);
  };
  Status status = work();
  if (status.ok()) status = unchanged(sample, kLookEvery);
  return status.ok() ? status : at_sample(status, sample, field);
}

// Sets up the one read that brings a sample of hot rows.
Status OpenDataset::plan_row(uint64_t sample, SampleBytes& out, Read& read) const {
  out.fields.clear();
  if (sample >= samples()) {
    return Status(Code::not_found, "there is no sample " + std::to_string(sample) + "; the dataset has " +
                                       std::to_string(samples()));
  }
  PACKTRAIN_ASSIGN(file, shard_file(rows_.shard[sample]));
  const uint64_t offset = rows_.offset[sample], length = rows_.length[sample];
  if (offset > file->size() || length > file->size() - offset) {
    return Status(Code::corrupt, "the index points behind the end of the shard; run packtrain verify");
  }
  // The rest of the row comes out of memory while the read goes on.
  for (const Rows::Field& columns : rows_.fields) {
    __builtin_prefetch(&columns.offset[sample]);
    __builtin_prefetch(&columns.length[sample]);
  }
  if (out.buffer.size() < length) out.buffer.resize(length);
  read = {
      .file = file, .offset = offset, .into = MutableBytes(out.buffer).first(length), .status = {}, .tag = 0};
  return {};
}

// Cuts the bytes that were read into fields.
Status OpenDataset::finish_row(uint64_t sample, SampleBytes& out, bool check) const {
  const uint64_t length = rows_.length[sample];
  for (uint32_t field = 0; field < rows_.fields.size(); ++field) {
    const Rows::Field& columns = rows_.fields[field];
    if (columns.length[sample] == rows::kAbsent) continue;
    const uint64_t start = columns.offset[sample], bytes = columns.length[sample];
    if (start > length || bytes > length - start)
      return Status(Code::corrupt, "index.npz is damaged; run packtrain verify");
    const Bytes data = Bytes(out.buffer).subspan(start, bytes);
    if (check && !columns.check.empty() &&
        !matches(manifest_.fields[field].check, columns.check[sample], data)) {
      return at_sample(check_fails(), sample, field);
    }
    out.fields.push_back({field, data});
  }
  Status status = unchanged(sample, kLookEvery);
  return status.ok() ? status : at_sample(status, sample, UINT32_MAX);
}

Status OpenDataset::read(uint64_t sample, SampleBytes& out, bool check) const {
  if (is_rows_) {
    Read read;
    PACKTRAIN_TRY(plan_row(sample, out, read));
    if (Status status = storage_.read(*read.file, read.offset, read.into); !status.ok())
      return at_sample(status, sample, UINT32_MAX);
    return finish_row(sample, out, check);
  }
  out.fields.clear();
  if (sample >= samples()) {
    return Status(Code::not_found, "there is no sample " + std::to_string(sample) + "; the dataset has " +
                                       std::to_string(samples()));
  }
  const uint64_t begin = general_.sample_cell[sample];
  const uint64_t end = std::min<uint64_t>(general_.sample_cell[sample + 1], general_.cell_field.size());
  uint64_t total = 0;
  for (uint64_t cell = begin; cell < end; ++cell) {
    PACKTRAIN_ASSIGN(length, cell_length(cell));
    total += length;
  }
  if (out.buffer.size() < total) out.buffer.resize(total);
  uint64_t at = 0;
  for (uint64_t cell = begin; cell < end; ++cell) {
    const uint32_t field = general_.cell_field[cell];
    const MutableBytes part = MutableBytes(out.buffer).subspan(at, cell_length(cell).value());
    if (Status status = read_cell(cell, part, check); !status.ok()) return at_sample(status, sample, field);
    if (field >= manifest_.fields.size())
      return Status(Code::corrupt, "index.npz is damaged; run packtrain verify");
    out.fields.push_back({field, part});
    at += part.size();
  }
  Status status = unchanged(sample, kLookEvery);
  return status.ok() ? status : at_sample(status, sample, UINT32_MAX);
}

Status OpenDataset::read_many(
    std::span<const uint64_t> samples, bool check,
    const std::function<bool(size_t, const Status&, const SampleBytes&)>& each) const {
  if (!is_rows_) {
    SampleBytes bytes;
    for (size_t i = 0; i < samples.size(); ++i) {
      const Status status = read(samples[i], bytes, check);
      if (!each(i, status, bytes)) return Status(Code::stopped, "stopped by the caller");
    }
    return {};
  }
  struct Slot {
    SampleBytes bytes;
    Read read;
    bool done = false;
  };
  std::vector<Slot> slots(std::min<size_t>(kSampleReadsInFlight, samples.size()));
  auto reads = storage_.reads(kSampleReadsInFlight);
  std::vector<Read*> finished(slots.size());
  size_t submitted = 0;
  uint64_t in_flight = 0;
  const auto length_of = [&](uint64_t sample) {
    return sample < rows_.length.size() ? uint64_t{rows_.length[sample]} : 0;
  };
  for (size_t next = 0; next < samples.size(); ++next) {
    std::vector<Read*> batch;
    for (; submitted < samples.size() && submitted < next + slots.size(); ++submitted) {
      const uint64_t length = length_of(samples[submitted]);
      if (submitted > next && in_flight + length > kMostBytesInFlight) break;
      in_flight += length;
      Slot& slot = slots[submitted % slots.size()];
      slot.done = false;
      slot.read.status = plan_row(samples[submitted], slot.bytes, slot.read);
      slot.read.tag = submitted;
      if (!slot.read.status.ok() || slot.read.into.empty()) {
        slot.done = true;
      } else {
        batch.push_back(&slot.read);
      }
    }
    reads->submit(batch);
    Slot& slot = slots[next % slots.size()];
    while (!slot.done) {
      const size_t count = reads->wait(finished);
      for (size_t i = 0; i < count; ++i) slots[finished[i]->tag % slots.size()].done = true;
    }
    Status status = slot.read.status;
    if (status.ok()) status = finish_row(samples[next], slot.bytes, check);
    if (!each(next, status, slot.bytes)) return Status(Code::stopped, "stopped by the caller");
    in_flight -= length_of(samples[next]);
    if (slot.bytes.buffer.size() > kMostBytesKept) give_back(slot.bytes.buffer);
  }
  return {};
}

}  // namespace packtrain
