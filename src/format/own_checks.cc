#include "format/own_checks.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "base/hash.h"
#include "base/words.h"
#include "format/pace.h"

namespace packtrain {
namespace {

constexpr uint64_t kOwnCheckRead = uint64_t{1} << 20;
constexpr uint32_t kOwnChecksInFlight = 4;

// The bytes of a shard whose values have no check, by offset.
using Unchecked = std::vector<std::pair<uint64_t, uint64_t>>;  // offset, length

// Of the shards that are wanted. Values of a field that follow each other are one stretch.
std::vector<Unchecked> unchecked_values(const Dataset& dataset, const std::vector<bool>& wanted) {
  std::vector<Unchecked> found(wanted.size());
  const auto fields = static_cast<uint32_t>(dataset.manifest().fields.size());
  struct Last {
    uint32_t shard = UINT32_MAX;
    size_t stretch = 0;  // into `found` of the shard
  };
  std::vector<Last> last(fields);
  const auto add = [&](uint32_t field, uint32_t shard, uint64_t offset, uint64_t length) {
    if (shard >= wanted.size() || !wanted[shard] || length == 0) return;
    Last& before = last[field];
    if (before.shard == shard) {
      auto& [begin, bytes] = found[shard][before.stretch];
      if (offset >= begin && offset - begin <= bytes) {
        bytes = std::max(bytes, offset - begin + length);
        return;
      }
    }
    before = {shard, found[shard].size()};
    found[shard].emplace_back(offset, length);
  };
  std::vector<std::pair<Block, Slice>> slices;
  for (uint64_t sample = 0; sample < dataset.samples(); ++sample) {
    for (uint32_t field = 0; field < fields; ++field) {
      const FieldLocation at = dataset.locate(sample, field);
      if (!at.present) continue;
      if (at.plain) {
        if (at.check_kind == CheckKind::none) add(field, at.shard, at.offset, at.length);
        continue;
      }
      slices.clear();
      if (!dataset.slices(sample, field, slices).ok()) continue;
      for (const auto& [block, slice] : slices)
        if (lacks_check(dataset.manifest(), block)) add(field, block.shard, block.offset, block.stored);
    }
  }
  for (Unchecked& values : found) std::sort(values.begin(), values.end());
  return found;
}

bool holds_any(const CheckedStretch& stretch, const Unchecked& values) {
  const std::pair end(stretch.offset + stretch.bytes, uint64_t{0});
  const auto behind = std::lower_bound(values.begin(), values.end(), end);
  if (behind == values.begin()) return false;
  const auto [begin, bytes] = *std::prev(behind);
  return begin >= stretch.offset || begin + bytes > stretch.offset;
}

}  // namespace

bool lacks_check(const Manifest& manifest, const Block& block) {
  if (block.hole || block.check_kind != CheckKind::none) return false;
  const Pipeline& pipeline = manifest.pipelines[block.pipeline];
  return !is_fill(pipeline) && !decoding_checks(pipeline);
}

Result<std::vector<CheckedStretch>> own_checks(Storage& storage, const ShardSpec& spec,
                                               const std::string& path) {
  std::vector<CheckedStretch> stretches;
  const Format* const format = find_format(spec.format);
  if (!spec.hash.empty() || format == nullptr || format->own_checks == nullptr) return stretches;
  PACKTRAIN_TRY(format->own_checks(storage, path, stretches));
  std::sort(stretches.begin(), stretches.end(),
            [](const CheckedStretch& a, const CheckedStretch& b) { return a.offset < b.offset; });
  return stretches;
}

Result<bool> has_own_check(Storage& storage, const File& file, const CheckedStretch& stretch,
                           const std::function<Status(uint64_t)>& each) {
  if (stretch.offset > file.size() || stretch.bytes > file.size() - stretch.offset) return false;
  const auto check_of = [&](Bytes bytes, uint32_t before) {
    return stretch.kind == CheckKind::crc32 ? crc32(bytes, before) : crc32c(bytes, before);
  };
  if (stretch.bytes <= kOwnCheckRead) {  // setting up a queue would cost more than it hides
    std::vector<std::byte> bytes(static_cast<size_t>(stretch.bytes));
    PACKTRAIN_TRY(storage.read(file, stretch.offset, bytes));
    PACKTRAIN_TRY(each(bytes.size()));
    return check_of(bytes, 0) == stretch.check;
  }
  const uint64_t pieces = (stretch.bytes + kOwnCheckRead - 1) / kOwnCheckRead;
  struct Slot {
    std::vector<std::byte> bytes;
    Read read;
    bool done = false;
  };
  std::vector<Slot> slots(std::min<uint64_t>(pieces, kOwnChecksInFlight));
  std::unique_ptr<Reads> reads = storage.reads(kOwnChecksInFlight);
  uint32_t check = 0;
  uint64_t submitted = 0;
  for (uint64_t piece = 0; piece < pieces; ++piece) {
    for (; submitted < pieces && submitted < piece + slots.size(); ++submitted) {
      Slot& slot = slots[submitted % slots.size()];
      const uint64_t from = submitted * kOwnCheckRead;
      slot.bytes.resize(static_cast<size_t>(std::min(kOwnCheckRead, stretch.bytes - from)));
      slot.read = {.file = &file,
                   .offset = stretch.offset + from,
                   .into = slot.bytes,
                   .status = {},
                   .tag = submitted % slots.size()};
      slot.done = false;
      Read* one = &slot.read;
      reads->submit(std::span(&one, 1));
    }
    Slot& slot = slots[piece % slots.size()];
    while (!slot.done) {
      Read* finished[kOwnChecksInFlight];
      const size_t count = reads->wait(finished);
      for (Read* read : std::span(finished, count)) slots[read->tag].done = true;
    }
    PACKTRAIN_TRY(slot.read.status);
    check = check_of(slot.bytes, check);
    PACKTRAIN_TRY(each(slot.bytes.size()));
  }
  return check == stretch.check;
}

std::string own_check_differs(const CheckedStretch& stretch) {
  return printable(stretch.name) + " does not match the " + std::string(check_kind_name(stretch.kind)) +
         " that the container has of its " + count_in_words(stretch.bytes) + " bytes";
}

Status compare_own_checks(Storage& storage, const Dataset& dataset, const Progress& progress) {
  const std::vector<ShardSpec>& shards = dataset.manifest().shards;
  std::vector<std::vector<CheckedStretch>> stretches(shards.size());
  std::vector<bool> wanted(shards.size());
  uint64_t bytes = 0, bytes_total = 0;
  for (uint32_t shard = 0; shard < shards.size(); ++shard) {
    PACKTRAIN_ASSIGN(found, own_checks(storage, shards[shard], dataset.shard_path(shard)));
    stretches[shard] = std::move(found);
    wanted[shard] = !stretches[shard].empty();
  }
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return {};
  const std::vector<Unchecked> unchecked = unchecked_values(dataset, wanted);
  for (uint32_t shard = 0; shard < shards.size(); ++shard) {
    std::erase_if(stretches[shard],
                  [&](const CheckedStretch& stretch) { return !holds_any(stretch, unchecked[shard]); });
    for (const CheckedStretch& stretch : stretches[shard]) bytes_total += stretch.bytes;
  }
  Pace pace(progress);
  for (uint32_t shard = 0; shard < shards.size(); ++shard) {
    for (const CheckedStretch& stretch : stretches[shard]) {
      const std::string path = dataset.shard_path(shard);
      PACKTRAIN_ASSIGN(file, dataset.shard_file(shard));
      const auto each = [&](uint64_t taken) {
        bytes += taken;
        return pace.tell_now({.phase = "compare",
                              .items = shard,
                              .items_total = shards.size(),
                              .bytes = bytes,
                              .bytes_total = bytes_total,
                              .unit = "containers"});
      };
      const Result<bool> same = has_own_check(storage, *file, stretch, each);
      if (same.ok() && *same) continue;
      Status status = same.status();
      if (same.ok()) {
        status = Status(Code::corrupt, own_check_differs(stretch) +
                                           ": some value in it is damaged; get the container again");
      }
      return status.at("@ " + std::to_string(stretch.offset)).at(path);
    }
  }
  return {};
}

}  // namespace packtrain
