#include "load/filler.h"

#include <cstring>

namespace packtrain {
namespace {

constexpr uint64_t kMostAttempts = 16;    // to replace a bad sample
constexpr uint64_t kShareOfOneValue = 4;  // of memory=: a file may claim any size
constexpr std::chrono::seconds kFarLookAge{1};

}  // namespace

Result<std::unique_ptr<Filler>> Filler::make(const LoadSpec& spec, const Order& order,
                                             const MemoryPlan& memory, bool far) {
  std::unique_ptr<Filler> filler(new Filler(spec, order, memory));
  if (spec.image) {
    PACKTRAIN_ASSIGN(image, ImageReader::make(*spec.image, memory.one_image()));
    filler->image_ = std::move(image);
  }
  if (far) filler->look_age_ = kFarLookAge;
  filler->values_.resize(spec.fields());
  for (size_t field = 0; field < spec.fields(); ++field) {
    if (spec.value(field).kind == ValueKind::bytes) continue;
    PACKTRAIN_ASSIGN(
        reader, ValueReader::make(spec.value(field), spec.memory / kShareOfOneValue, memory.one_image()));
    filler->values_[field] = std::move(reader);
  }
  return filler;
}

Result<Bytes> Filler::field(const Dataset& dataset, uint64_t sample, uint32_t field, const Extent* extent,
                            std::vector<std::byte>& own) {
  if (extent) {
    const FieldLocation location = dataset.locate(sample, field);
    const std::optional<Bytes> bytes = extent->part(location);
    if (bytes && (!spec_.check || matches(location.check_kind, location.check, *bytes))) {
      is_unchecked_ |= !spec_.check || location.check_kind == CheckKind::none;
      return *bytes;
    }
  }
  // A second look, the dataset's own way: it tells a passing failure from a lasting one, and names the place.
  PACKTRAIN_TRY(dataset.read(sample, field, own, spec_.check));
  bytes_read_ += own.size();
  is_unchecked_ = true;  // as far as is known here
  return Bytes(own);
}

uint64_t Filler::warnings() const {
  uint64_t sum = image_ ? image_->warnings() : 0;
  for (const auto& reader : values_)
    if (reader) sum += reader->warnings();
  return sum;
}

Status Filler::with_memory_wanted(Status status, uint64_t wanted) const {
  if (wanted == 0) return status;
  const uint64_t enough = rounded_up(memory_.memory_for_image(wanted));
  // A smaller number of threads has larger shares; more memory than there is would be no advice.
  if (enough > memory_.most)
    return Status(status.code(), status.message() + ". To load it as it is, " +
                                     (memory_.threads > 1 ? "give the loader fewer threads, or ask" : "ask") +
                                     " for more memory for the job: all that can be had here is too little");
  return Status(status.code(), status.message() +
                                   ". To load it as it is, give the loader memory=" + std::to_string(enough) +
                                   (memory_.threads > 1 ? ", or fewer threads" : ""));
}

Status Filler::fill_from(Task& task, uint64_t sample, uint64_t key, bool is_replacement) {
  Step& step = *task.step;
  PooledBatch& batch = step.filling();
  const LoadPart& part = spec_.parts[task.part];
  const Extent* extent = is_replacement ? nullptr : task.extent;
  is_unchecked_ = false;
  if (spec_.image) {
    const uint32_t image_field = part.image_field_of(sample);
    if (!part.dataset->locate(sample, image_field).present) {
      return Status(Code::corrupt,
                    "has no field '" + part.dataset->manifest().fields[image_field].name +
                        "' to make an image of; choose the samples that have one with indices=, or leave "
                        "the others out with on_error=\"skip\"");
    }
    PACKTRAIN_ASSIGN(bytes, field(*part.dataset, sample, image_field, extent, scratch_));
    // By itself, as memory_wanted() is that of the last read.
    if (Status status = image_->read(bytes, key, batch.image(task.place)); !status.ok())
      return with_memory_wanted(std::move(status), image_->memory_wanted());
  }
  const size_t fields = part.fields.size();
  for (size_t i = 0; i < fields; ++i) {
    const FieldLocation location = part.dataset->locate(sample, part.fields[i]);
    if (!location.present) {
      batch.set_value(i, task.place, Bytes());
      continue;
    }
    PACKTRAIN_ASSIGN(bytes, field(*part.dataset, sample, part.fields[i], extent, scratch_));
    if (Status status = fill_value(task, i, bytes); !status.ok())
      return status.at("field '" + part.dataset->manifest().fields[part.fields[i]].name + "'");
  }
  // Last of all: what was read from a shard that has changed since is not what was indexed.
  return is_unchecked_ ? part.dataset->unchanged(sample, look_age_) : Status();
}

Status Filler::fill_value(Task& task, size_t field, Bytes bytes) {
  Step& step = *task.step;
  PooledBatch& batch = step.filling();
  MutableBytes into;
  if (ValueReader* const reader = values_[field].get()) {
    const Result<ValueFacts> facts = reader->look(bytes);
    if (!facts.ok()) return with_memory_wanted(facts.status(), reader->memory_wanted());
    if (facts->is_array) {
      PACKTRAIN_ASSIGN(room, batch.room(field, task.place, *facts));
      batch.set_value(field, task.place, room);
      return reader->read(room);
    }
  }
  const size_t slot = task.place * spec_.fields() + field;
  if (bytes.size() <= step.value_bytes[slot] && step.value_bytes[slot] != UINT64_MAX) {
    into = batch.value_area().subspan(step.value_at[slot], bytes.size());
  } else {
    PACKTRAIN_ASSIGN(room, batch.room(bytes.size()));
    into = room;
  }
  if (into.data() != bytes.data() && !bytes.empty()) std::memcpy(into.data(), bytes.data(), bytes.size());
  batch.set_value(field, task.place, into);
  return {};
}

bool Filler::replace(Task& task, Status& why) {
  Step& step = *task.step;
  const LoadPart& part = spec_.parts[task.part];
  for (uint64_t attempt = 1; attempt <= kMostAttempts; ++attempt) {
    const uint64_t ordered = order_.replacement(step.epoch, task.position, attempt);
    const uint64_t sample = part.sample_at(ordered);
    const uint64_t key = position_key(order_.spec().seed, step.epoch, task.position, attempt);
    PooledBatch& batch = step.filling();
    if (Status filled = fill_from(task, sample, key, true); !filled.ok()) {
      batch.forget(task.place);
      if (filled.code() != Code::limit) continue;
      why = std::move(filled);  // which sample stands in must not depend on what else is open
      return false;
    }
    batch.labels()[task.place] = part.dataset->label(sample);
    batch.indices()[task.place] = part.index_of(sample);
    batch.replaced()[task.place] = 1;
    return true;
  }
  return false;
}

Filler::Outcome Filler::fill(Task& task) {
  const uint64_t key = position_key(order_.spec().seed, task.step->epoch, task.position);
  Outcome outcome{fill_from(task, task.sample, key, false)};
  if (outcome.status.ok()) return outcome;
  task.step->filling().forget(task.place);
  if (spec_.on_error == OnError::replace && outcome.status.code() != Code::limit)
    outcome.replaced = replace(task, outcome.status);
  return outcome;
}

}  // namespace packtrain
