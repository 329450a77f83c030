#include <algorithm>
#include <cstring>

#include "base/give_back.h"
#include "index/open_dataset.h"
#include "index/rows.h"
#include "io/cached_read.h"
#include "packtrain/index.h"

namespace packtrain {
namespace {

constexpr uint32_t kReadsInFlight = 32;
// Fewer reads than this are done one after the other: setting up a queue would cost more than it hides.
constexpr size_t kFewestToQueue = 4;

// Fields that one read brings: wanted[first, last).
struct Extent {
  size_t first = 0, last = 0;
  Read read;
  std::vector<std::byte> between;  // where several fields share the read
};

// One call of read_fields. One thread at a time.
class FieldReader {
 public:
  FieldReader(const Dataset& dataset, std::span<FieldRead> wanted, bool check)
      : dataset_(dataset), wanted_(wanted), check_(check), locations_(wanted.size()) {}

  void run() {
    plan();
    // What the kernel has in memory is copied at once; a queue pays for what has to be waited for.
    size_t waiting = 0;
    const auto* open = dynamic_cast<const OpenDataset*>(&dataset_);
    for (Extent& extent : extents_) {
      begin(extent);
      const uint32_t shard = locations_[extent.first].shard;
      if ((open != nullptr && open->copy_mapped(shard, extent.read.offset, extent.read.into)) ||
          read_if_cached(*extent.read.file, extent.read.offset, extent.read.into)) {
        finish(extent);
      } else if (&extent != &extents_[waiting++]) {
        extents_[waiting - 1] = std::move(extent);
      }
    }
    extents_.resize(waiting);
    if (extents_.size() < kFewestToQueue) {
      for (Extent& extent : extents_) {
        extent.read.status = dataset_.storage().read(*extent.read.file, extent.read.offset, extent.read.into);
        finish(extent);
      }
    } else {
      run_queued();
    }
  }

 private:
  void plan() {
    for (size_t i = 0; i < wanted_.size(); ++i) {
      FieldRead& wanted = wanted_[i];
      wanted.status = {};
      if (wanted.sample < dataset_.samples()) locations_[i] = dataset_.locate(wanted.sample, wanted.field);
      if (!is_simple(i)) {
        read_by_dataset(wanted);
      } else if (!extents_.empty() && extents_.back().last == i && follows(i)) {
        extents_.back().last = i + 1;
      } else {
        extents_.emplace_back();
        extents_.back().first = i;
        extents_.back().last = i + 1;
      }
    }
  }

  // Whatever is not one sound stretch of a shard goes the dataset's own way, which also knows the words for
  // what is wrong with it.
  bool is_simple(size_t i) const {
    const FieldLocation& location = locations_[i];
    if (!location.plain || location.length != wanted_[i].into.size()) return false;
    const auto& shards = dataset_.manifest().shards;
    return location.shard < shards.size() && location.offset <= shards[location.shard].bytes &&
           location.length <= shards[location.shard].bytes - location.offset &&
           dataset_.shard_file(location.shard).ok();
  }

  bool follows(size_t i) const {
    const FieldLocation &before = locations_[i - 1], &location = locations_[i];
    return wanted_[i].sample == wanted_[i - 1].sample && location.shard == before.shard &&
           location.offset >= before.offset + before.length &&
           location.offset - (before.offset + before.length) <= rows::kMostSlack;
  }

  void read_by_dataset(FieldRead& wanted) {
    std::vector<std::byte> bytes;
    wanted.status = dataset_.read(wanted.sample, wanted.field, bytes, check_);
    if (!wanted.status.ok()) return;
    if (bytes.size() != wanted.into.size()) {
      wanted.status = Status(Code::invalid, "the memory given for a field is not of the field's length");
    } else if (!bytes.empty()) {
      std::memcpy(wanted.into.data(), bytes.data(), bytes.size());
    }
  }

  void begin(Extent& extent) {
    const FieldLocation &first = locations_[extent.first], &last = locations_[extent.last - 1];
    extent.read.file = dataset_.shard_file(first.shard).value();
    extent.read.offset = first.offset;
    if (extent.last - extent.first == 1) {
      extent.read.into = wanted_[extent.first].into;
    } else {
      extent.between.resize(last.offset + last.length - first.offset);
      extent.read.into = extent.between;
    }
  }

  void finish(Extent& extent) {
    for (size_t i = extent.first; i < extent.last; ++i) {
      FieldRead& wanted = wanted_[i];
      if (extent.read.status.ok() && !extent.between.empty() && !wanted.into.empty()) {
        std::memcpy(wanted.into.data(),
                    extent.between.data() + (locations_[i].offset - locations_[extent.first].offset),
                    wanted.into.size());
      }
      // A second look the dataset's own way tells a passing failure from a lasting one, and names the place.
      if (!extent.read.status.ok() || !dataset_.unchanged(wanted.sample, kLookAtMost).ok() ||
          (check_ && !matches(locations_[i].check_kind, locations_[i].check, wanted.into)))
        read_by_dataset(wanted);
    }
    give_back(extent.between);
  }

  void run_queued() {
    auto reads = dataset_.storage().reads(kReadsInFlight);
    std::vector<Read*> batch, finished(kReadsInFlight);
    size_t submitted = 0, done = 0;
    while (done < extents_.size()) {
      batch.clear();
      while (submitted < extents_.size() && submitted < done + kReadsInFlight) {
        Extent& extent = extents_[submitted];
        extent.read.tag = submitted++;
        batch.push_back(&extent.read);
      }
      if (!batch.empty()) reads->submit(batch);
      const size_t count = reads->wait(finished);
      for (size_t i = 0; i < count; ++i) finish(extents_[finished[i]->tag]);
      done += count;
    }
  }

  const Dataset& dataset_;
  const std::span<FieldRead> wanted_;
  const bool check_;
  std::vector<FieldLocation> locations_;
  std::vector<Extent> extents_;
};

// The usual case, without anything that is allocated. False: whatever is in its way, FieldReader deals with.
bool read_alone(const Dataset& dataset, const FieldLocation& location, MutableBytes into, bool check) {
  return location.plain && dataset.read_plain(location, into).ok() &&
         (!check || matches(location.check_kind, location.check, into));
}

}  // namespace

void read_fields(const Dataset& dataset, std::span<FieldRead> wanted, bool check) {
  if (wanted.size() == 1 && wanted[0].sample < dataset.samples()) {
    wanted[0].status = {};
    if (read_alone(dataset, dataset.locate(wanted[0].sample, wanted[0].field), wanted[0].into, check)) return;
  }
  FieldReader(dataset, wanted, check).run();
}

Status read_field(const Dataset& dataset, uint64_t sample, uint32_t field, const FieldLocation& location,
                  MutableBytes into, bool check) {
  if (read_alone(dataset, location, into, check)) return {};
  FieldRead wanted{.sample = sample, .field = field, .into = into, .status = {}};
  FieldReader(dataset, {&wanted, 1}, check).run();
  return wanted.status;
}

}  // namespace packtrain
