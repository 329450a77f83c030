#include "format/hdf5_heap.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "base/mutex.h"
#include "base/threads.h"
#include "format/merged_reads.h"
#include "io/cached_read.h"
#include "io/cached_view.h"
#include "io/grant.h"

namespace packtrain {
namespace {

using State = Hdf5Value::State;

constexpr uint32_t kHeapReadsInFlight = 64;
constexpr uint64_t kHeapMergeGap = uint64_t{8} << 10;       // heads nearer than this share a read
constexpr uint64_t kHeapMergedBytes = uint64_t{256} << 10;  // and a read is at most this long
constexpr uint64_t kHeadsBytes = 2 * kHdf5HeapHeadBytes;    // of a collection and its first object
constexpr uint64_t kHeapReadBytes = 512;                    // with small objects in front of a large one

// Collections in memory are looked at where they are: as many values, no further apart on average, within so
// many bytes at a time.
constexpr size_t kMostRuns = 8;  // of values in order, which are merged and not sorted
constexpr size_t kHeapViewValues = 128;
constexpr uint64_t kHeapViewGap = uint64_t{64} << 10, kHeapViewBytes = uint64_t{256} << 20;

// Threads take so many collections at a time; for less a thread does not pay.
constexpr size_t kWalksAtOnce = 1024;
constexpr uint32_t kMostHeapLookers = 4;

uint64_t padded_object(uint64_t bytes) { return (bytes + 7) & ~uint64_t{7}; }

// One collection on its way. Addresses, not offsets.
struct Walk {
  uint64_t start = 0, limit = 0;  // where it begins, and where the next one that is wanted does
  uint64_t end = 0;               // 0: its head is not read yet
  uint64_t cursor = 0;            // the next head to read
  size_t first = 0, last = 0;     // the values wanted of it, by index
  size_t found = 0;
  bool done = false;
};

// Walks all collections that values refer to. One thread at a time.
class HeapWalker {
 public:
  HeapWalker(Hdf5File& file, std::span<Hdf5Value> values, Pace& pace)
      : file_(file), values_(values), pace_(pace) {}

  Status run() {
    sort_values();
    make_walks();
    for (Walk& walk : walks_) {
      if (walk.limit - walk.start < kHeadsBytes) give_up(walk, State::overlap);
    }
    PACKTRAIN_TRY(look_at_cached());
    std::vector<size_t> walking;
    for (size_t i = 0; i < walks_.size(); ++i) {
      if (!walks_[i].done) walking.push_back(i);
    }
    while (!walking.empty()) {
      PACKTRAIN_TRY(read_round(walking));
      std::erase_if(walking, [&](size_t walk) { return walks_[walk].done; });
    }
    return {};
  }

 private:
  struct Piece {
    Read read;
    std::vector<std::byte> buffer;
    uint64_t address = 0;
    size_t first = 0, last = 0;  // of the round's walks
  };

  void sort_values() {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i].state == State::wanted) order_.push_back(i);
    }
    const auto before = [&](size_t a, size_t b) {
      return std::pair(values_[a].place, values_[a].index) < std::pair(values_[b].place, values_[b].index);
    };
    // Each column mostly lies in order, keys before values: such runs are merged, which a sort would not
    // notice.
    std::vector<size_t> ends;
    for (size_t i = 1; i < order_.size() && ends.size() < kMostRuns; ++i) {
      if (before(order_[i], order_[i - 1])) ends.push_back(i);
    }
    if (ends.size() == kMostRuns) return std::sort(order_.begin(), order_.end(), before);
    ends.push_back(order_.size());
    const auto at = [&](size_t i) { return order_.begin() + static_cast<std::ptrdiff_t>(i); };
    for (size_t i = 0; i + 1 < ends.size(); ++i)
      std::inplace_merge(order_.begin(), at(ends[i]), at(ends[i + 1]), before);
  }

  void make_walks() {
    for (size_t i = 0; i < order_.size();) {
      Walk walk{.start = values_[order_[i]].place, .limit = file_.bytes(), .first = i};
      while (i < order_.size() && values_[order_[i]].place == walk.start) ++i;
      walk.cursor = walk.start;
      walk.last = i;
      if (!file_.holds(walk.start, kHeadsBytes)) {
        give_up(walk, State::outside);
        continue;
      }
      if (!walks_.empty()) walks_.back().limit = walk.start;
      walks_.push_back(walk);
    }
  }

  // What was not found of a collection never will be.
  void give_up(Walk& walk, State why) {
    for (size_t i = walk.first; i < walk.last; ++i) {
      if (values_[order_[i]].state == State::wanted) values_[order_[i]].state = why;
    }
    walk.done = true;
  }

  // What the kernel has in memory is walked where it is, without the payload between the heads.
  Status look_at_cached() {
    for (size_t first = 0; first < walks_.size();) {
      const uint64_t start = walks_[first].start;
      size_t last = first + 1, values = walks_[first].last - walks_[first].first;
      uint64_t end = std::min(walks_[first].limit, start + kHeapViewBytes);
      for (; last < walks_.size() && walks_[last].limit - start <= kHeapViewBytes; ++last) {
        end = walks_[last].limit;
        values += walks_[last].last - walks_[last].first;
      }
      if (values >= kHeapViewValues && (end - start) / values <= kHeapViewGap) {
        const std::unique_ptr<CachedView> view =
            CachedView::of(file_.file(), file_.offset(start), end - start);
        if (!view) return {};  // the rest is read as if none of it were in memory
        look_at(first, last, start, *view);
        if (view->cut()) return Status(Code::corrupt, std::string(kCutWhileRead));
      }
      first = last;
    }
    return {};
  }

  // One step of the walks [first, last). No two of them have a value in common, so that threads share them.
  void look_at(size_t first, size_t last, uint64_t base, const CachedView& view) {
    const Bytes bytes = view.bytes();
    const size_t takes = (last - first + kWalksAtOnce - 1) / kWalksAtOnce;
    const auto workers = static_cast<uint32_t>(
        std::min<size_t>(takes, std::clamp<uint32_t>(affinity_cores(), 1, kMostHeapLookers)));
    std::atomic<size_t> next = 0;
    run_on("look", workers, [&](uint32_t) {
      for (size_t take = next++; take < takes; take = next++) {
        const size_t begin = first + take * kWalksAtOnce, end = std::min(last, begin + kWalksAtOnce);
        for (size_t i = begin; i < end; ++i) {
          if (!walks_[i].done) step(walks_[i], base, bytes);
        }
        if (workers > 1)
          view.leave(walks_[begin].start - base, (end < last ? walks_[end].start - base : bytes.size()));
      }
    });
  }

  // Whether a shared read mostly serves several walks.
  bool is_dense(const std::vector<size_t>& walking) const {
    const uint64_t bytes = walks_[walking.back()].cursor - walks_[walking.front()].cursor;
    return bytes / walking.size() <= kHeapMergeGap;
  }

  // One step of every walk, front to back as the kernel reads ahead of, by several threads.
  Status read_dense_round(const std::vector<size_t>& walking) {
    Mutex mutex;
    size_t next = 0;  // both guarded by the mutex
    Status failure;
    const auto workers = static_cast<uint32_t>(
        std::min<size_t>(walking.size(), std::clamp<uint32_t>(affinity_cores(), 1, kMostHeapLookers)));
    run_on("look", workers, [&](uint32_t worker) {
      Piece piece;
      while (true) {
        {
          const Lock lock(mutex);
          if (next == walking.size() || !failure.ok()) return;
          if (worker == 0)  // the caller's thread: nobody else calls what the user has given
            failure = pace_.tell_now(
                {.phase = "index", .items = next, .items_total = walking.size(), .unit = "heaps"});
          if (!failure.ok()) return;
          next = plan(walking, next, piece);
        }
        const Status status = file_.storage().read(file_.file(), piece.read.offset, piece.read.into);
        if (!status.ok()) {
          const Lock lock(mutex);
          if (failure.ok()) failure = status;
          return;
        }
        for (size_t i = piece.first; i < piece.last; ++i)
          step(walks_[walking[i]], piece.address, piece.read.into);
      }
    });
    return failure;
  }

  // One step of every walk, in the order of the file.
  Status read_round(const std::vector<size_t>& walking) {
    if (is_near(file_.file()) && is_dense(walking)) return read_dense_round(walking);
    std::vector<Piece> pieces(kHeapReadsInFlight);  // outlives what is in flight
    std::vector<Piece*> idle;
    idle.reserve(pieces.size());
    for (Piece& piece : pieces) idle.push_back(&piece);
    std::unique_ptr<Reads> reads = file_.storage().reads(kHeapReadsInFlight);
    for (size_t next = 0; next < walking.size() || reads->in_flight() > 0;) {
      std::vector<Read*> batch;
      for (; next < walking.size() && !idle.empty(); idle.pop_back()) {
        next = plan(walking, next, *idle.back());
        idle.back()->read.tag = static_cast<uint64_t>(idle.back() - pieces.data());
        batch.push_back(&idle.back()->read);
      }
      if (!batch.empty()) reads->submit(batch);
      Read* finished[kHeapReadsInFlight];
      size_t count = reads->wait(finished);
      for (Read* read : std::span(finished, count)) {
        Piece& piece = pieces[read->tag];
        PACKTRAIN_TRY(read->status);
        for (size_t i = piece.first; i < piece.last; ++i)
          step(walks_[walking[i]], piece.address, piece.read.into);
        idle.push_back(&piece);
      }
      PACKTRAIN_TRY(
          pace_.tell_now({.phase = "index", .items = next, .items_total = walking.size(), .unit = "heaps"}));
    }
    return {};
  }

  // How far to read from a walk's cursor: through the collection where its objects are small.
  uint64_t wanted_end(const Walk& walk) const {
    const uint64_t end = walk.end != 0 ? walk.end : walk.limit, left = end - walk.cursor;
    const uint64_t wanted = walk.last - walk.first - walk.found;
    return walk.cursor + std::min(left, left / wanted <= kHeapMergeGap ? kHeapMergedBytes : kHeapReadBytes);
  }

  size_t plan(const std::vector<size_t>& walking, size_t first, Piece& piece) {
    const Walk& walk = walks_[walking[first]];
    uint64_t end = wanted_end(walk);
    size_t last = first + 1;
    for (; last < walking.size(); ++last) {
      const Walk& further = walks_[walking[last]];
      const uint64_t further_end = wanted_end(further);
      if (further.cursor > end + kHeapMergeGap || further_end - walk.cursor > kHeapMergedBytes) break;
      end = further_end;
    }
    piece.first = first;
    piece.last = last;
    piece.address = walk.cursor;
    const auto bytes = static_cast<size_t>(end - walk.cursor);
    if (piece.buffer.size() < bytes) piece.buffer.resize(bytes);
    piece.read.file = &file_.file();
    piece.read.offset = file_.offset(walk.cursor);
    piece.read.into = MutableBytes(piece.buffer).first(bytes);
    piece.read.status = {};
    return last;
  }

  // As far as the bytes go, which begin at address `base`. They may change meanwhile: each head is copied
  // first.
  void step(Walk& walk, uint64_t base, Bytes bytes) {
    std::byte copied[kHdf5HeapHeadBytes];
    const auto head_at = [&](uint64_t address) {
      std::copy_n(bytes.data() + (address - base), kHdf5HeapHeadBytes, copied);
      return Hdf5Cursor(copied);
    };
    const auto holds_head = [&](uint64_t address) {
      return address - base <= bytes.size() && bytes.size() - (address - base) >= kHdf5HeapHeadBytes;
    };
    if (walk.end == 0) {
      Hdf5Cursor head = head_at(walk.start);
      if (!head.starts_with("GCOL") || head.u8() != 1) return give_up(walk, State::no_collection);
      head.skip(3);
      const uint64_t size = head.u64();
      if (size < kHdf5HeapHeadBytes || !file_.holds(walk.start, size)) return give_up(walk, State::damaged);
      // Collections share no bytes. Those that do are damaged, and walking them could take forever.
      if (size > walk.limit - walk.start) return give_up(walk, State::overlap);
      walk.end = walk.start + size;
      walk.cursor += kHdf5HeapHeadBytes;
    }
    while (walk.end - walk.cursor >= kHdf5HeapHeadBytes) {
      if (!holds_head(walk.cursor)) return;  // the next round's
      Hdf5Cursor head = head_at(walk.cursor);
      const uint16_t index = head.u16();
      head.skip(6);
      const uint64_t size = head.u64(), room = walk.end - walk.cursor - kHdf5HeapHeadBytes;
      if (index == 0) {
        if (size < kHdf5HeapHeadBytes || size - kHdf5HeapHeadBytes > room) break;
        walk.cursor += padded_object(size);
        if (walk.cursor > walk.end) break;
        continue;
      }
      if (size > room) return give_up(walk, State::damaged);
      take(walk, index, walk.cursor + kHdf5HeapHeadBytes, size);
      if (walk.found == walk.last - walk.first) {
        walk.done = true;
        return;
      }
      // The padding of the last object may be missing.
      walk.cursor += kHdf5HeapHeadBytes + std::min(padded_object(size), room);
    }
    give_up(walk, State::absent);
  }

  void take(Walk& walk, uint16_t index, uint64_t address, uint64_t size) {
    const auto first = order_.begin() + static_cast<std::ptrdiff_t>(walk.first);
    const auto last = order_.begin() + static_cast<std::ptrdiff_t>(walk.last);
    // Objects mostly come in the order of their indices, so that it is the first that is not found yet.
    auto at = first + static_cast<std::ptrdiff_t>(walk.found);
    const auto has = [&](auto value) { return values_[*value].index == index; };
    if (at == last || !has(at) || (at != first && has(at - 1))) {
      at = std::lower_bound(first, last, index,
                            [&](size_t value, uint16_t than) { return values_[value].index < than; });
    }
    for (; at != last && values_[*at].index == index; ++at) {
      Hdf5Value& value = values_[*at];
      if (value.state != State::wanted) continue;
      ++walk.found;
      value.state = value.bytes <= size ? State::found : State::short_object;
      value.place = file_.offset(address);
    }
  }

  Hdf5File& file_;
  std::span<Hdf5Value> values_;
  Pace& pace_;
  std::vector<size_t> order_;  // the wanted values, by collection and index
  std::vector<Walk> walks_;    // by place in the file
};

}  // namespace

Hdf5Value parse_hdf5_reference(Bytes reference, uint32_t item_size) {
  Hdf5Cursor at(reference);
  Hdf5Value value;
  value.bytes = uint64_t{at.u32()} * item_size;
  value.place = at.u64();
  value.index = at.u32();
  value.state = value.bytes == 0 ? State::found : State::wanted;
  if (value.bytes == 0) value.place = 0;
  return value;
}

Status find_hdf5_values(Hdf5File& file, std::span<Hdf5Value> values, Pace& pace) {
  return HeapWalker(file, values, pace).run();
}

std::string_view hdf5_value_trouble(State state) {
  switch (state) {
    case State::outside:
      return "its heap lies outside of the file";
    case State::no_collection:
      return "its heap is no heap";
    case State::overlap:
      return "its heap overlaps the next one";
    case State::damaged:
      return "its heap is damaged";
    case State::absent:
      return "is not in its heap";
    case State::short_object:
      return "is longer than what its heap holds";
    case State::wanted:
    case State::found:
      break;
  }
  return "";
}

Result<TextRow> read_hdf5_texts(Hdf5File& file, std::span<const Hdf5Value> values) {
  TextRow texts;
  std::vector<Stretch> wanted;
  std::vector<size_t> of;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool found = values[i].state == State::found;
    texts.add_zeros(found ? static_cast<size_t>(values[i].bytes) : 0);
    if (!found || values[i].bytes == 0) continue;
    wanted.push_back({values[i].place, values[i].bytes});
    of.push_back(i);
  }
  PACKTRAIN_TRY(read_merged(file.storage(), file.file(), wanted, [&](size_t position, Bytes bytes) {
    texts.fill(of[position], as_text(bytes));
    return Status();
  }));
  return texts;
}

}  // namespace packtrain
