// Containers that cannot be planned (their layout depends on compressed sizes, on what images become, or
// their own writer decides) are written front to back, several shards at a time. Each shard has one thread
// that adds its samples in order; threads that have no shard of their own make samples ready ahead of it.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "base/hash.h"
#include "base/out_of_memory.h"
#include "base/threads.h"
#include "base/words.h"
#include "format/laid_out_writer.h"
#include "pack/image_conversion.h"
#include "pack/memory_gate.h"
#include "pack/writers.h"
#include "packtrain/decode.h"

namespace packtrain {
namespace {

// How far samples are made ready ahead of the one that is added, for each shard.
constexpr uint64_t kMostAhead = 1024;
constexpr uint64_t kMostBytesAhead = uint64_t{256} << 20;
// What a thread takes at a time: so many samples, or fewer that have so many bytes.
constexpr uint64_t kSamplesATime = 16;
constexpr uint64_t kBytesATime = uint64_t{1} << 20;

// A sample as it will be added.
struct ReadySample {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<SampleToWrite::Field> fields;  // into `bytes`
  std::vector<uint32_t> checks;
  uint32_t width = 0, height = 0;
  std::array<char, kSourceHashBytes> source_hash{};  // zeros where nothing was converted
  Status status;
  Cell failed;  // the cell that `status` is about

  uint64_t size() const {
    uint64_t sum = 0;
    for (const SampleToWrite::Field& field : fields) sum += field.bytes.size();
    return sum;
  }
};

std::array<char, kSourceHashBytes> hash_of(Bytes bytes) {
  std::array<char, kSourceHashBytes> hash{};
  const std::string hex = xxh128_hex(bytes);
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (size_t i = 0; i < hash.size(); ++i)
    hash[i] = static_cast<char>(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
  return hash;
}

// Brings the fields of a sample and converts its image. One thread at a time.
class SampleMaker {
 public:
  explicit SampleMaker(WriteContext& context) : context_(context) {}

  // What went wrong is in the sample.
  ReadySample make(uint64_t sample) {
    const Catalog& catalog = context_.plan.catalog;
    ReadySample ready;
    const SampleCells cells(catalog, sample);
    ready.bytes.reserve(cells.size());
    for (const Cell& cell : cells) {
      if (!context_.fields.has(catalog.fields[cell.field])) continue;
      if (cell.size >= MemoryGate::kSmall) ready.status = fits_memory(cell.size);
      std::vector<std::byte>& data = ready.bytes.emplace_back(ready.status.ok() ? cell.size : 0);
      if (ready.status.ok()) ready.status = context_.fetcher.fetch(cell, data);
      if (ready.status.ok() && cell.converted) ready.status = convert(data, ready);
      if (!ready.status.ok()) {
        ready.failed = cell;
        break;
      }
      ready.checks.push_back(crc32c(data));
      ready.fields.push_back({catalog.fields[cell.field], data});
      if (ready.width != 0) continue;
      if (const auto shape = image_shape(data))
        std::tie(ready.width, ready.height) = std::pair(shape->width, shape->height);
    }
    return ready;
  }

 private:
  Status convert(std::vector<std::byte>& data, ReadySample& ready) {
    if (!converter_) {
      PACKTRAIN_ASSIGN(converter, ImageConverter::make(context_.plan.conversion));
      converter_ = std::move(converter);
    }
    PACKTRAIN_TRY(converter_->convert(data, converted_));
    if (converted_.empty()) return {};
    ready.source_hash = hash_of(data);
    std::swap(data, converted_);
    return {};
  }

  WriteContext& context_;
  std::optional<ImageConverter> converter_;
  std::vector<std::byte> converted_;
};

// One shard on its way: who makes which of its samples ready. Guarded by SerialWriter's mutex.
struct SerialShard {
  explicit SerialShard(const ShardPlan& of) : plan(of) {}
  const ShardPlan& plan;
  uint64_t claimed = 0;  // samples that some thread makes ready, or has
  uint64_t taken = 0;    // and those that the shard's own thread has got
  uint64_t bytes_ahead = 0;
  struct Ready {
    std::vector<ReadySample> samples;
    uint64_t bytes = 0;
  };
  std::map<uint64_t, Ready> ready;  // by the number of their first

  bool may_claim() const {
    if (claimed == plan.count) return false;
    return claimed == taken || (claimed - taken < kMostAhead && bytes_ahead < kMostBytesAhead);
  }
};

// Samples of a shard that one thread makes ready.
struct Claim {
  std::shared_ptr<SerialShard> shard;
  uint64_t first = 0, count = 0;
  uint64_t bytes = 0;  // what they will take, about
};

// Thread-safe.
class SerialWriter {
 public:
  SerialWriter(WriteContext& context, const std::vector<uint32_t>& shards)
      : context_(context), shards_(shards), unfinished_(shards.size()) {}

  Status run() {
    run_on("pack-write", context_.threads, [this](uint32_t) {
      const Status status = within_memory([this]() -> Status {
        SampleMaker maker(context_);
        while (const auto shard = open_next())
          close(shard, within_memory([&] { return write_shard(shard, maker); }));
        while (const auto claim = claim_any()) deliver(*claim, make_ready(*claim, maker));
        return {};
      });
      if (!status.ok()) give_up(status);
    });
    Lock lock(mutex_);
    return failure_;
  }

 private:
  std::shared_ptr<SerialShard> open_next() {
    Lock lock(mutex_);
    if (next_ == shards_.size() || !failure_.ok()) return nullptr;
    active_.push_back(std::make_shared<SerialShard>(context_.plan.shards[shards_[next_++]]));
    return active_.back();
  }
  void close(const std::shared_ptr<SerialShard>& shard, const Status& status) {
    Lock lock(mutex_);
    if (!status.ok() && failure_.ok()) failure_ = status;
    std::erase(active_, shard);
    --unfinished_;
    changed_.notify_all();
  }

  // What this thread had claimed nobody will deliver.
  void give_up(const Status& status) {
    Lock lock(mutex_);
    if (failure_.ok()) failure_ = status;
    lost_ = true;
    changed_.notify_all();
  }

  uint64_t expected_bytes(uint64_t sample) const;
  uint64_t expected_next(const SerialShard& shard) const {
    return expected_bytes(context_.plan.order[shard.plan.first + shard.claimed]);
  }
  // All shards together hold no more than they may; what is small, and next to be added, is always let in.
  // Whoever holds samples has the next of its shard among them, and so goes on and gives them back.
  bool may_claim(const SerialShard& shard) const REQUIRES(mutex_) {
    if (!shard.may_claim()) return false;
    if (held_ == 0 || !failure_.ok()) return true;
    const uint64_t next = expected_next(shard);
    return (shard.claimed == shard.taken && next < MemoryGate::kSmall) || held_ + next <= limit_;
  }
  void give_back_held(uint64_t bytes) {
    Lock lock(mutex_);
    held_ -= bytes;
    changed_.notify_all();
  }
  Claim claim(const std::shared_ptr<SerialShard>& shard) REQUIRES(mutex_);
  // Of any shard; nothing when all are written.
  std::optional<Claim> claim_any();
  std::vector<ReadySample> make_ready(const Claim& claim, SampleMaker& maker) const;
  void deliver(const Claim& claim, std::vector<ReadySample>&& samples);
  // The next samples of the shard, in order: made ready by another thread, or by this one.
  Result<std::vector<ReadySample>> take(const std::shared_ptr<SerialShard>& shard, SampleMaker& maker);

  Result<std::unique_ptr<ContainerWriter>> create(const ShardPlan& shard, const std::string& path);
  Status write_shard(const std::shared_ptr<SerialShard>& shard, SampleMaker& maker);

  WriteContext& context_;
  const std::vector<uint32_t>& shards_;
  Mutex mutex_;  // not held while samples are made ready or added
  std::condition_variable changed_;
  size_t next_ GUARDED_BY(mutex_) = 0;
  size_t unfinished_ GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<SerialShard>> active_ GUARDED_BY(mutex_);
  const uint64_t limit_ = MemoryGate::usual_limit();
  uint64_t held_ GUARDED_BY(mutex_) = 0;  // bytes of samples that are made ready, or not added yet
  Status failure_ GUARDED_BY(mutex_);
  bool lost_ GUARDED_BY(mutex_) = false;  // samples that are claimed and will never be ready
};

uint64_t SerialWriter::expected_bytes(uint64_t sample) const {
  const Catalog& catalog = context_.plan.catalog;
  uint64_t bytes = 0;
  for (const Cell& cell : SampleCells(catalog, sample))
    bytes += std::max(cell.size, context_.plan.expected_size(cell));
  return bytes;
}

Claim SerialWriter::claim(const std::shared_ptr<SerialShard>& shard) {
  Claim claim{shard, shard->claimed};
  while (claim.count < kSamplesATime && claim.bytes < kBytesATime && shard->claimed < shard->plan.count) {
    const uint64_t next = expected_next(*shard);
    if (claim.count > 0 && next >= MemoryGate::kSmall) break;
    claim.bytes += next;
    ++claim.count;
    ++shard->claimed;
  }
  shard->bytes_ahead += claim.bytes;
  held_ += claim.bytes;
  return claim;
}

std::optional<Claim> SerialWriter::claim_any() {
  Lock lock(mutex_);
  while (unfinished_ > 0 && failure_.ok()) {
    for (const auto& shard : active_)
      if (may_claim(*shard)) return claim(shard);
    lock.wait(changed_);
  }
  return std::nullopt;
}

std::vector<ReadySample> SerialWriter::make_ready(const Claim& claim, SampleMaker& maker) const {
  std::vector<ReadySample> samples;
  for (uint64_t i = claim.first; i < claim.first + claim.count; ++i)
    samples.push_back(maker.make(context_.plan.order[claim.shard->plan.first + i]));
  return samples;
}

void SerialWriter::deliver(const Claim& claim, std::vector<ReadySample>&& samples) {
  uint64_t bytes = 0;
  for (const ReadySample& sample : samples) bytes += sample.size();
  Lock lock(mutex_);
  claim.shard->bytes_ahead = claim.shard->bytes_ahead - claim.bytes + bytes;
  held_ = held_ - claim.bytes + bytes;
  claim.shard->ready.emplace(claim.first, SerialShard::Ready{std::move(samples), bytes});
  changed_.notify_all();
}

Result<std::vector<ReadySample>> SerialWriter::take(const std::shared_ptr<SerialShard>& shard,
                                                    SampleMaker& maker) {
  while (true) {
    Claim own;
    {
      Lock lock(mutex_);
      auto first = shard->ready.begin();
      while ((first == shard->ready.end() || first->first != shard->taken) && !may_claim(*shard)) {
        if (lost_) return failure_;
        lock.wait(changed_);
        first = shard->ready.begin();
      }
      if (first != shard->ready.end() && first->first == shard->taken) {
        std::vector<ReadySample> samples = std::move(first->second.samples);
        shard->bytes_ahead -= first->second.bytes;
        shard->ready.erase(first);
        shard->taken += samples.size();
        changed_.notify_all();
        return samples;
      }
      own = claim(shard);
    }
    deliver(own, make_ready(own, maker));
  }
}

// As laid out where the layout follows from names and sizes, which are known now.
Result<std::unique_ptr<ContainerWriter>> SerialWriter::create(const ShardPlan& shard,
                                                              const std::string& path) {
  const Plan& plan = context_.plan;
  WriteSpec spec;
  spec.compress = plan.compress;
  spec.compressed = plan.compressed;
  spec.write = shard_write_options(context_);
  spec.samples = shard.count;
  spec.fields = context_.fields.names;
  spec.arrays = context_.fields.arrays;
  spec.labels = context_.fields.labels;
  spec.one_image = context_.fields.one_image;
  for (uint64_t i = shard.first; i < shard.first + shard.count; ++i) {
    for (const Cell& cell : SampleCells(plan.catalog, plan.order[i]))
      spec.expected_bytes += plan.expected_size(cell) + 256;
  }
  if (!context_.format.inner_file.empty()) {
    // Making a folder would make OUT.part again, should another task have published it meanwhile.
    PACKTRAIN_TRY(context_.storage.stat(context_.folder).status());
    PACKTRAIN_TRY(context_.storage.make_folder(path.substr(0, path.rfind('/'))));
  }
  if (context_.format.layout && plan.compress == "none")
    return create_laid_out(context_.storage, path, *context_.format.layout, spec);
  return context_.format.create(context_.storage, path, spec);
}

Status SerialWriter::write_shard(const std::shared_ptr<SerialShard>& shard, SampleMaker& maker) {
  const Plan& plan = context_.plan;
  const Catalog& catalog = plan.catalog;
  const std::string path = context_.shard_path(shard->plan);
  PACKTRAIN_ASSIGN(writer, create(shard->plan, path));
  ShardRows rows;
  uint32_t split = UINT32_MAX;
  for (uint64_t at = shard->plan.first; at < shard->plan.first + shard->plan.count;) {
    PACKTRAIN_ASSIGN(samples, take(shard, maker));
    uint64_t bytes = 0;
    for (const ReadySample& ready : samples) {
      bytes += ready.size();
      const uint64_t sample = plan.order[at++];
      if (!context_.meter.add(1, ready.size()))
        return Status(Code::stopped, "stopped; run the same command again to go on");
      if (!ready.status.ok()) {
        if (!is_bad_sample(ready.status))
          return ready.status.at(printable(context_.fetcher.source_path(ready.failed)));
        rows.left_out.push_back(sample);
        rows.reasons.push_back(bad_sample(context_, sample, ready.failed, ready.status));
        continue;
      }
      if (catalog.samples[sample].split != split) {
        split = catalog.samples[sample].split;
        PACKTRAIN_TRY(writer->begin_split(catalog.splits[split]));
      }
      PACKTRAIN_TRY(writer->add(
          {.key = plan.key(sample), .label = catalog.samples[sample].label, .fields = ready.fields}));
      rows.checks.insert(rows.checks.end(), ready.checks.begin(), ready.checks.end());
      rows.widths.push_back(ready.width);
      rows.heights.push_back(ready.height);
      if (!plan.conversion.any()) continue;
      for (const SampleToWrite::Field& field : ready.fields) rows.sizes.push_back(field.bytes.size());
      rows.source_hashes.append(ready.source_hash.data(), ready.source_hash.size());
    }
    give_back_held(bytes);
  }
  std::sort(rows.left_out.begin(), rows.left_out.end());
  if (!rows.left_out.empty() && !context_.give_up(rows.left_out.size())) {
    context_.report_bad(rows.reasons, rows.left_out.size(), 0);
    return {};
  }
  // The block checks can only be taken from the finished container, so here the record comes second; a shard
  // without one is written again.
  PACKTRAIN_TRY(writer->finish());
  PACKTRAIN_ASSIGN(block_checks, read_block_checks(context_.storage, path));
  PACKTRAIN_ASSIGN(info, context_.storage.stat(path));
  rows.block_checks = std::move(block_checks);
  rows.bytes = info.size;
  return write_rows(context_, shard->plan, rows);
}

}  // namespace

Status write_serial(WriteContext& context, const std::vector<uint32_t>& shards) {
  if (shards.empty()) return {};
  return SerialWriter(context, shards).run();
}

}  // namespace packtrain
