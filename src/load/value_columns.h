// The memory of a batch's decoded values. Values of one shape lie one behind the other, as one array; others
// where there is room.
#pragma once

#include <span>
#include <vector>

#include "base/mutex.h"
#include "load/buffer.h"
#include "packtrain/load.h"

namespace packtrain {

// A value that cannot be padded like the others of its batch.
struct MisfitValue {
  size_t field = 0, place = 0;
  Status status;
  bool is_any = false;  // no value of its type can be: what was asked for is wrong, not a sample
};

// room() comes from many threads, each with places of its own; the rest from one thread at a time.
class ValueColumns {
 public:
  static size_t bytes_for(size_t size, size_t fields) {
    return size * fields * sizeof(Slot);
  }  // of prepare()
  void prepare(size_t size, size_t fields);
  // The shape of the first value of a field decides which one the others should have: room for all is made
  // at once, unless the values of the batch that was here before were of many shapes.
  Result<MutableBytes> room(size_t field, size_t place, size_t places, const ValueFacts& facts,
                            MemoryAccount& account);
  Result<MutableBytes> room(size_t bytes, MemoryAccount& account);
  // Makes all values of a field as long as the longest; a missing one has the length 0. Those that differ
  // from most others in more than length are misfits.
  void pad(size_t field, const ValueSpec& spec, std::span<Bytes> values, MemoryAccount& account,
           std::vector<MisfitValue>& misfits);
  // A value takes another place; where it lies from then on.
  Bytes move(size_t field, size_t from, size_t to, Bytes value);

  const BatchArray* find(size_t field, size_t place) const {
    if (arrays_.empty()) return nullptr;
    const Slot& slot = arrays_[place * columns_.size() + field];
    return slot.used ? &slot.array : nullptr;
  }
  // A place has no value after all.
  void forget(size_t place);
  size_t memory() const;

 private:
  struct Slot {
    bool used = false;
    uint8_t long_axis = 0, long_axes = 1;
    BatchArray array;
  };
  struct Column {
    Buffer memory, padded_memory;
    MutableBytes area;  // of this filling: rows of `row`
    ArrayShape row;
    bool varied = false;  // the last filling had values of several shapes
    bool begun = false, varies = false;
  };
  // From `buffer`, with what it grows by put to the account first.
  static Result<MutableBytes> take(Buffer& buffer, uint64_t bytes, MemoryAccount& account);
  Result<MutableBytes> take_loose(uint64_t bytes, MemoryAccount& account) REQUIRES(mutex_);
  Slot& slot(size_t field, size_t place) { return arrays_[place * columns_.size() + field]; }
  // Which form most values of a field have, but for their length; null if there are none.
  const Slot* common_form(size_t field, size_t places) const;

  mutable Mutex mutex_;
  std::vector<Column> columns_;
  std::vector<Slot> arrays_;
  std::vector<Buffer> loose_ GUARDED_BY(mutex_);  // values that are in no column
  size_t loose_buffer_ GUARDED_BY(mutex_) = 0, loose_used_ GUARDED_BY(mutex_) = 0;
};

}  // namespace packtrain
