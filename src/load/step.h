// What the loader's threads hand each other: a step of the order, the places of its batch, and the reads that
// bring their bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load/batch_pool.h"
#include "packtrain/load.h"

namespace packtrain {

class CachedView;
struct Step;
struct Extent;

// One place of a batch to fill. Written by the planner, then by the one thread that fills it.
struct Task {
  Step* step = nullptr;
  Extent* extent = nullptr;  // null: no single read brings it
  Task* next = nullptr;      // in the list it waits in: of its extent, then of its step
  uint64_t sample = 0;       // of its part's dataset
  uint64_t position = 0;     // in the epoch's order
  uint32_t part = 0;         // of LoadSpec::parts
  uint32_t place = 0;
};

// One read, and the places whose bytes it brings. The loader's mutex guards `waiting` and `arrived`.
struct Extent {
  Read read;
  uint32_t shard = 0;
  uint64_t length = 0;
  Buffer buffer;            // of a read that is larger than all that may be read ahead
  Task* waiting = nullptr;  // tasks that need it
  bool arrived = false;
  bool direct = false;                 // read into the batch of its only task
  const CachedView* mapped = nullptr;  // of its shard, for what is read directly; null: there is none
  bool is_checked = false;             // before it is used
  // No sample of the run's first step is in it. Its read has a use of its own, as it may have no task yet.
  bool can_wait = false;
  Extent* behind = nullptr;  // the next part of the same piece, of one that is read in parts; the planner's
  // Tasks that still need its bytes, one for a planner that may find more, and one for a read that can wait.
  std::atomic<uint32_t> uses = 0;

  // The bytes of a field, if they came with this read: rows of a foreign or damaged index may lie elsewhere
  // than their neighbours in a piece.
  std::optional<Bytes> part(const FieldLocation& field) const {
    if (!read.status.ok() || !field.plain || field.shard != shard || field.offset < read.offset) return {};
    const uint64_t at = field.offset - read.offset;
    if (at > length || field.length > length - at) return {};
    return Bytes(read.into).subspan(at, field.length);
  }
};

struct BadPlace {
  uint32_t place = 0;
  uint32_t part = 0;
  uint64_t sample = 0;
  Status status;
  bool replaced = false;
  bool with_its_batch = false;  // it is bad only beside the others, which was seen too late to replace it
};

// One step of one epoch on its way. The loader's mutex guards `ready`, `remaining` and `bad`.
struct Step {
  uint64_t epoch = 0, number = 0, consumed_before = 0, consumed_after = 0;
  bool last_of_epoch = false;
  std::vector<Pick> picks;
  std::vector<Task> tasks;
  std::vector<Extent*> extents;    // first needed by this step
  std::vector<Extent*> rest;       // of pieces that this step needs parts of; read after those
  std::vector<uint64_t> value_at;  // per place and field: where in the batch's value area
  std::vector<uint64_t> value_bytes;
  uint64_t area_bytes = 0;
  BatchPtr batch;  // set when the step is opened
  Task* ready = nullptr;
  size_t remaining = 0;
  std::vector<BadPlace> bad;
  Status refused;         // what was asked for cannot be had, whichever samples these are
  uint64_t warnings = 0;  // oddities of its images

  PooledBatch& filling() { return static_cast<PooledBatch&>(*batch); }
  bool open() const { return batch != nullptr; }
  bool done() const { return open() && remaining == 0; }
};

}  // namespace packtrain
