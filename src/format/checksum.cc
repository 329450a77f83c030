#include "format/checksum.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/words.h"
#include "format/own_checks.h"
#include "format/pace.h"

namespace packtrain {
namespace {

constexpr uint32_t kChecksumReadsInFlight = 4;

// An uncompressed field and its check so far.
struct Extent {
  uint64_t sample, offset, length;
  uint32_t field;
  uint32_t shard;
  CheckKind native;
  uint32_t native_check;
  uint32_t crc32c = 0, native_now = 0;
};

// Takes the checks of one shard. `extents` are its own, sorted by offset. One thread at a time.
class ShardScan {
 public:
  ShardScan(Storage& storage, const File& file, std::vector<Extent*> extents)
      : storage_(storage), file_(file), extents_(std::move(extents)), buffers_(kChecksumReadsInFlight) {}

  // `each_block` is called after every block with the bytes taken by it.
  template <class EachBlock>
  Status run(EachBlock each_block) {
    const uint64_t blocks = (file_.size() + kBlockBytes - 1) / kBlockBytes;
    std::vector<Read> reads(kChecksumReadsInFlight);
    std::vector<bool> done(kChecksumReadsInFlight);
    std::unique_ptr<Reads> in_flight = storage_.reads(kChecksumReadsInFlight);
    uint64_t submitted = 0;
    for (uint64_t block = 0; block < blocks; ++block) {
      for (; submitted < blocks && submitted < block + kChecksumReadsInFlight; ++submitted) {
        size_t slot = submitted % kChecksumReadsInFlight;
        uint64_t offset = submitted * kBlockBytes;
        buffers_[slot].resize(static_cast<size_t>(std::min(kBlockBytes, file_.size() - offset)));
        reads[slot] =
            Read{.file = &file_, .offset = offset, .into = buffers_[slot], .status = {}, .tag = slot};
        done[slot] = false;
        Read* one = &reads[slot];
        in_flight->submit(std::span(&one, 1));
      }
      size_t slot = block % kChecksumReadsInFlight;
      while (!done[slot]) {
        Read* finished[kChecksumReadsInFlight];
        size_t count = in_flight->wait(finished);
        for (Read* read : std::span(finished, count)) done[read->tag] = true;
      }
      PACKTRAIN_TRY(reads[slot].status);
      take(block * kBlockBytes, buffers_[slot]);
      PACKTRAIN_TRY(each_block(buffers_[slot].size()));
    }
    return {};
  }

  std::vector<uint32_t> take_block_checks() { return std::move(block_checks_); }

 private:
  void take(uint64_t start, Bytes block) {
    block_checks_.push_back(crc32c(block));
    uint64_t end = start + block.size();
    for (; next_ < extents_.size() && extents_[next_]->offset < end; ++next_)
      open_.push_back(extents_[next_]);
    // Those that reach into the next block stay open.
    std::erase_if(open_, [&](Extent* extent) {
      uint64_t from = std::max(start, extent->offset), to = std::min(end, extent->offset + extent->length);
      if (from < to) {
        Bytes piece = block.subspan(from - start, to - from);
        extent->crc32c = crc32c(piece, extent->crc32c);
        if (extent->native == CheckKind::crc32) extent->native_now = crc32(piece, extent->native_now);
        if (extent->native == CheckKind::crc32c) extent->native_now = extent->crc32c;
      }
      return extent->offset + extent->length <= end;
    });
  }

  Storage& storage_;
  const File& file_;
  const std::vector<Extent*> extents_;
  size_t next_ = 0;
  std::vector<Extent*> open_;
  std::vector<std::vector<std::byte>> buffers_;
  std::vector<uint32_t> block_checks_;
};

std::vector<Extent> plain_extents(const Dataset& dataset) {
  std::vector<Extent> extents;
  const auto fields = static_cast<uint32_t>(dataset.manifest().fields.size());
  for (uint64_t sample = 0; sample < dataset.samples(); ++sample) {
    for (uint32_t field = 0; field < fields; ++field) {
      FieldLocation place = dataset.locate(sample, field);
      if (!place.present || !place.plain) continue;
      extents.push_back({.sample = sample,
                         .offset = place.offset,
                         .length = place.length,
                         .field = field,
                         .shard = place.shard,
                         .native = place.check_kind,
                         .native_check = place.check});
    }
  }
  return extents;
}

// The container's own checks of longer stretches, as `sample` those of no sample.
std::vector<Extent> extents_of(const std::vector<CheckedStretch>& stretches) {
  std::vector<Extent> extents;
  extents.reserve(stretches.size());
  for (const CheckedStretch& stretch : stretches) {
    extents.push_back({.sample = UINT64_MAX,
                       .offset = stretch.offset,
                       .length = stretch.bytes,
                       .field = UINT32_MAX,
                       .shard = 0,
                       .native = stretch.kind,
                       .native_check = stretch.check});
  }
  return extents;
}

// Decodes a block, compares its check, and gives it one if it has none.
Status check_block(const Dataset& dataset, Block& block, std::vector<std::byte>& stored,
                   std::vector<std::byte>& raw) {
  const Pipeline& pipeline = dataset.manifest().pipelines[block.pipeline];
  if (block.hole || is_fill(pipeline)) return {};
  PACKTRAIN_ASSIGN(file, dataset.shard_file(block.shard));
  stored.resize(block.stored);
  PACKTRAIN_TRY(dataset.storage().read(*file, block.offset, stored));
  raw.resize(block.raw);
  PACKTRAIN_TRY(decode_checked(pipeline, block.check_kind, block.check, stored, raw));
  if (block.check_kind != CheckKind::none) return {};
  block.check_kind = CheckKind::crc32c;
  block.check = crc32c(raw);
  return {};
}

// The dataset's samples once more, with the checks of `extents`, which are in the order of plain_extents.
Status copy_samples(const Dataset& dataset, const std::vector<Extent>& extents, IndexBuilder& out) {
  const Manifest& manifest = dataset.manifest();
  std::vector<uint16_t> pipelines;
  for (const Pipeline& pipeline : manifest.pipelines) pipelines.push_back(out.add_pipeline(pipeline));
  // Several fields may share one. What is not stored has no place that would tell it from others.
  std::map<std::tuple<uint32_t, uint64_t, uint64_t, uint64_t, uint16_t, bool>, uint64_t> blocks;
  std::vector<std::byte> stored, raw;
  std::vector<std::pair<Block, Slice>> pieces;
  std::vector<Slice> slices;
  size_t extent = 0, split = 0;
  for (uint64_t sample = 0; sample < dataset.samples(); ++sample) {
    while (split < manifest.splits.size() && manifest.splits[split].first <= sample) {
      out.begin_split(manifest.splits[split++].name);
    }
    PACKTRAIN_ASSIGN(key, dataset.key(sample));
    out.begin_sample(key);
    for (uint32_t field = 0; field < manifest.fields.size(); ++field) {
      FieldLocation place = dataset.locate(sample, field);
      if (!place.present) continue;
      PACKTRAIN_ASSIGN(path, dataset.path(sample, field));
      const std::string& name = manifest.fields[field].name;
      if (place.plain) {
        const Extent& found = extents[extent++];
        out.add_field(name, found.shard, found.offset, found.length, CheckKind::crc32c, found.crc32c, path);
        continue;
      }
      pieces.clear();
      slices.clear();
      PACKTRAIN_TRY(dataset.slices(sample, field, pieces));
      for (auto& [block, slice] : pieces) {
        auto [known, is_new] = blocks.try_emplace(
            {block.shard, block.offset, block.stored, block.raw, block.pipeline, block.hole}, 0);
        if (is_new) {
          const Status sound = check_block(dataset, block, stored, raw);
          if (!sound.ok()) {
            return sound.at(printable(key) + "." + name + " @ " + std::to_string(block.offset))
                .at(dataset.shard_path(block.shard));
          }
          block.pipeline = pipelines[block.pipeline];
          known->second = out.add_block(block);
        }
        slices.push_back({known->second, slice.start, slice.length});
      }
      out.add_field(name, slices, path);
    }
    if (dataset.label(sample) != kNoLabel) out.set_label(dataset.label(sample));
    auto [width, height] = dataset.image_size(sample);
    if (width != 0) out.set_image_size(width, height);
    PACKTRAIN_TRY(out.end_sample());
  }
  return {};
}

}  // namespace

Result<IndexBuilder::Finished> with_checksums(Storage& storage, std::string_view folder,
                                              IndexBuilder::Finished index, const Progress& progress) {
  PACKTRAIN_ASSIGN(dataset, Dataset::from_memory(storage, folder, std::move(index)));
  const Manifest& manifest = dataset->manifest();
  std::vector<Extent> extents = plain_extents(*dataset);
  std::vector<std::vector<Extent*>> by_shard(manifest.shards.size());
  for (Extent& extent : extents) by_shard[extent.shard].push_back(&extent);

  uint64_t bytes_total = 0, bytes = 0;
  for (const ShardSpec& shard : manifest.shards) bytes_total += shard.bytes;
  Pace pace(progress);
  IndexBuilder out;
  for (uint32_t shard = 0; shard < manifest.shards.size(); ++shard) {
    PACKTRAIN_ASSIGN(file, dataset->shard_file(shard));
    PACKTRAIN_ASSIGN(stretches, own_checks(storage, manifest.shards[shard], dataset->shard_path(shard)));
    std::vector<Extent> wider = extents_of(stretches);
    std::vector<Extent*> all = by_shard[shard];
    for (Extent& extent : wider) all.push_back(&extent);
    std::sort(all.begin(), all.end(), [](const Extent* a, const Extent* b) { return a->offset < b->offset; });
    ShardScan scan(storage, *file, std::move(all));
    Status status = scan.run([&](uint64_t taken) {
      bytes += taken;
      return pace.tell_now({.phase = "checksum",
                            .items = shard,
                            .items_total = manifest.shards.size(),
                            .bytes = bytes,
                            .bytes_total = bytes_total,
                            .unit = "containers"});
    });
    if (!status.ok()) return status.at(dataset->shard_path(shard));
    for (const Extent* extent : by_shard[shard]) {
      if (extent->native == CheckKind::none || extent->native_now == extent->native_check) continue;
      PACKTRAIN_ASSIGN(key, dataset->key(extent->sample));
      return Status(Code::corrupt, "its bytes do not match the container's own " +
                                       std::string(check_kind_name(extent->native)) +
                                       "; get the container again")
          .at(printable(key) + "." + manifest.fields[extent->field].name + " @ " +
              std::to_string(extent->offset))
          .at(dataset->shard_path(shard));
    }
    for (size_t i = 0; i < wider.size(); ++i) {
      if (wider[i].native_now == wider[i].native_check) continue;
      return Status(Code::corrupt, own_check_differs(stretches[i]) + "; get the container again")
          .at("@ " + std::to_string(wider[i].offset))
          .at(dataset->shard_path(shard));
    }
    out.add_shard(manifest.shards[shard]);
    out.set_block_checks(shard, scan.take_block_checks());
  }
  PACKTRAIN_TRY(copy_samples(*dataset, extents, out));
  out.set_classes(manifest.classes);
  return out.finish();
}

}  // namespace packtrain
