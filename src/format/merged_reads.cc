#include "format/merged_reads.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/threads.h"
#include "io/cached_read.h"
#include "io/cached_view.h"
#include "io/grant.h"

namespace packtrain {
namespace {

constexpr uint32_t kMergedReadsInFlight = 32;
constexpr uint64_t kMergeGap = uint64_t{16} << 10;      // stretches nearer than this share a read
constexpr uint64_t kMergedBytes = uint64_t{512} << 10;  // and a shared read is at most this long
// From memory a call costs about as much as copying this much: what lies between is passed over from here on.
constexpr uint64_t kCachedGap = uint64_t{2} << 10;

// Many stretches near each other are looked at where they are, if the kernel has all of them in memory: so
// many, no further apart than this on average, within this many bytes at a time.
constexpr size_t kViewStretches = 128;
constexpr uint64_t kViewGap = uint64_t{24} << 10;
constexpr uint64_t kViewBytes = uint64_t{256} << 20;
constexpr size_t kLookAhead = 4;  // stretches, of which the memory is asked in advance
// Threads that look side by side take so many stretches at a time; for less a thread does not pay.
constexpr size_t kTakenAtOnce = 1024;
constexpr uint32_t kMostLookers = 4;

// From a disk of this machine, so many stretches that share a read are read by whoever looks at them: front
// to back, as the kernel reads ahead of. Others are copied out of memory if they are there, so many at a
// time; of those that follow so many that were not, no more is hoped for.
constexpr size_t kDense = 8;
constexpr uint64_t kThroughBytes = uint64_t{1} << 20;
constexpr size_t kSparseAtOnce = 128;
constexpr int kMissesBorne = 4;

using Each = std::function<Status(size_t, Bytes)>;

// A read that covers the stretches order[first, last).
struct Piece {
  Read read;
  std::vector<std::byte> buffer;
  size_t first = 0, last = 0;

  // Memory that was used before is not cleared again.
  MutableBytes room(uint64_t bytes) {
    if (buffer.size() < bytes) buffer.resize(static_cast<size_t>(bytes));
    return MutableBytes(buffer).first(static_cast<size_t>(bytes));
  }
};

// One call of read_merged. One thread at a time.
class MergedReads {
 public:
  MergedReads(Storage& storage, const File& file, std::span<const Stretch> wanted, const Each& each,
              EachCall calls)
      : storage_(storage), file_(file), wanted_(wanted), each_(each), calls_(calls), order_(wanted.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    const auto before = [&](size_t a, size_t b) { return wanted_[a].offset < wanted_[b].offset; };
    if (!std::is_sorted(order_.begin(), order_.end(), before))
      std::sort(order_.begin(), order_.end(), before);
  }

  Status run() {
    for (size_t next = 0; next < order_.size();) {
      const size_t last = end_of_view(next);
      PACKTRAIN_ASSIGN(seen, look_at(next, last));
      // Where something must be waited for, all that follows is read.
      if (!seen) return is_near(file_) ? read_near(next) : read(next, order_.size());
      next = last;
    }
    return {};
  }

 private:
  // Where the stretches end that are looked at together with order_[first].
  size_t end_of_view(size_t first) const {
    const uint64_t start = wanted_[order_[first]].offset;
    size_t last = first + 1;
    while (last < order_.size() && wanted_[order_[last]].offset - start < kViewBytes) ++last;
    return last;
  }

  // Hands on order_[first, last) from memory; false if that cannot be, and nothing was handed on.
  Result<bool> look_at(size_t first, size_t last) {
    const uint64_t start = wanted_[order_[first]].offset, end = end_offset(first, last);
    if (last - first < kViewStretches || (end - start) / (last - first) > kViewGap) return false;
    const std::unique_ptr<CachedView> view = CachedView::of(file_, start, end - start);
    if (!view) return false;
    const Status status = hand_all(first, last, start, *view);
    if (view->cut()) return Status(Code::corrupt, std::string(kCutWhileRead));
    PACKTRAIN_TRY(status);
    return true;
  }

  // Hands on order_[first, last) of what begins at `start`, by several threads where the caller allows it.
  Status hand_all(size_t first, size_t last, uint64_t start, const CachedView& view) {
    const size_t takes = (last - first + kTakenAtOnce - 1) / kTakenAtOnce;
    if (calls_ == EachCall::one_by_one || takes < 2) return hand_some(first, last, start, view.bytes());
    const auto workers = static_cast<uint32_t>(
        std::min<size_t>(takes, std::clamp<uint32_t>(affinity_cores(), 1, kMostLookers)));
    std::vector<Status> told(takes);
    std::atomic<size_t> next = 0;
    std::atomic<bool> failed = false;
    run_on("look", workers, [&](uint32_t) {
      // Takes are begun in order, so that all in front of one that fails are finished too.
      for (size_t take = next++; take < takes && !failed.load(std::memory_order_relaxed); take = next++) {
        const size_t begin = first + take * kTakenAtOnce, end = std::min(last, begin + kTakenAtOnce);
        told[take] = hand_some(begin, end, start, view.bytes());
        const uint64_t after = end < last ? wanted_[order_[end]].offset - start : view.bytes().size();
        view.leave(wanted_[order_[begin]].offset - start, after);
        if (!told[take].ok()) failed.store(true, std::memory_order_relaxed);
      }
    });
    for (const Status& status : told) PACKTRAIN_TRY(status);
    return {};
  }

  Status hand_some(size_t first, size_t last, uint64_t start, Bytes all) const {
    std::vector<std::byte> copied;
    for (size_t at = first; at < last; ++at) {
      if (at + kLookAhead < last)
        __builtin_prefetch(all.data() + (wanted_[order_[at + kLookAhead]].offset - start));
      const Stretch& stretch = wanted_[order_[at]];
      const auto bytes = static_cast<size_t>(stretch.bytes);
      // Copied first, so that what somebody writes into the file meanwhile cannot change between check and
      // use.
      if (copied.size() < bytes) copied.resize(bytes);
      std::copy_n(all.data() + (stretch.offset - start), bytes, copied.data());
      PACKTRAIN_TRY(each_(order_[at], Bytes(copied).first(bytes)));
    }
    return {};
  }

  // order_[begin, …) of a file that is near. What is neither dense nor in memory is left to read().
  Status read_near(size_t begin) {
    Near near{.next = begin, .failed_at = order_.size()};
    const size_t takes = (order_.size() - begin + kSparseAtOnce - 1) / kSparseAtOnce;
    uint32_t workers = 1;
    if (calls_ == EachCall::side_by_side)
      workers = static_cast<uint32_t>(
          std::min<size_t>(takes, std::clamp<uint32_t>(affinity_cores(), 1, kMostLookers)));
    run_on("look", workers, [&](uint32_t) { take_near(near); });
    const Lock lock(near.mutex);
    // Those that lie in front of a failure may fail too, and are the first then.
    std::vector<size_t> left;
    std::sort(near.left.begin(), near.left.end());
    for (const size_t at : near.left)
      if (at < near.failed_at) left.push_back(order_[at]);
    order_ = std::move(left);
    PACKTRAIN_TRY(read(0, order_.size()));
    return near.failure;
  }

  // What threads share that read a near file.
  struct Near {
    Mutex mutex;
    size_t next GUARDED_BY(mutex);  // into order_
    size_t failed_at GUARDED_BY(mutex);
    Status failure GUARDED_BY(mutex) = {};
    std::vector<size_t> left GUARDED_BY(mutex) = {};  // into order_
  };

  void take_near(Near& near) {
    Piece piece;
    std::vector<size_t> left;
    while (true) {
      bool dense = false;
      {
        const Lock lock(near.mutex);
        near.left.insert(near.left.end(), left.begin(), left.end());
        if (near.next == order_.size() || !near.failure.ok()) return;
        piece.first = near.next;
        near.next = piece.last = end_of_take(piece.first, dense);
      }
      left.clear();
      const Status status = dense ? read_dense(piece) : take_sparse(piece, left);
      if (status.ok()) continue;
      const Lock lock(near.mutex);
      near.left.insert(near.left.end(), left.begin(), left.end());
      left.clear();
      if (piece.first >= near.failed_at) continue;
      near.failed_at = piece.first;
      near.failure = status;
    }
  }

  // Where the stretches end that one thread takes with order_[first].
  size_t end_of_take(size_t first, bool& dense) const {
    size_t last = end_of(first, kMergeGap, kThroughBytes);
    dense = last - first >= kDense;
    if (dense) return last;
    while (last < order_.size() && last - first < kSparseAtOnce) {
      const size_t further = end_of(last, kMergeGap, kThroughBytes);
      if (further - last >= kDense) break;
      last = further;
    }
    return last;
  }

  Status read_dense(Piece& piece) {
    cover(piece);
    PACKTRAIN_TRY(storage_.read(file_, piece.read.offset, piece.read.into));
    return hand_on(piece, piece.last);
  }

  // Hands on what is in memory, and notes in `left` what is not.
  Status take_sparse(Piece& piece, std::vector<size_t>& left) {
    for (int misses = 0; piece.first < piece.last; ++misses) {
      size_t last = piece.last;
      if (misses < kMissesBorne) {
        PACKTRAIN_TRY(take_cached(piece));
        if (piece.first == piece.last) break;
        last = std::min(last, end_of(piece.first, kCachedGap, kMergedBytes));
      }
      for (; piece.first < last; ++piece.first) left.push_back(piece.first);
    }
    return {};
  }

  Status read(size_t begin, size_t end) {
    std::vector<Piece> pieces(
        std::min<size_t>(kMergedReadsInFlight, end - begin));  // outlives what is in flight
    std::vector<Piece*> idle;
    for (size_t i = 0; i < pieces.size(); ++i) {
      pieces[i].read.tag = i;
      idle.push_back(&pieces[i]);
    }
    std::unique_ptr<Reads> reads;  // made for the first that must be waited for
    std::vector<Read*> batch;
    // Reads are begun in order and end in any. After a failure those in flight are waited for, so that told
    // is the one that lies first in the file, whatever came first.
    Status failure;
    size_t failed_at = end;
    const auto note = [&](Status status, size_t at) {
      if (status.ok() || at >= failed_at) return;
      failure = std::move(status);
      failed_at = at;
    };
    for (size_t next = begin; next < end || (reads && reads->in_flight() > 0);) {
      batch.clear();
      while (next < end && !idle.empty() && failure.ok()) {
        Piece& piece = *idle.back();
        const size_t first = piece.first = next;
        next = piece.last = std::min(end, end_of(next, kMergeGap, kMergedBytes));
        note(take_cached(piece), first);
        if (!failure.ok() || piece.first == piece.last) continue;
        cover(piece);
        batch.push_back(&piece.read);
        idle.pop_back();
      }
      if (batch.empty() && (!reads || reads->in_flight() == 0)) break;
      if (!reads) reads = storage_.reads(kMergedReadsInFlight);
      if (!batch.empty()) reads->submit(batch);
      Read* finished[kMergedReadsInFlight];
      const size_t count = reads->wait(finished);
      for (Read* read : std::span(finished, count)) {
        Piece& piece = pieces[read->tag];
        const size_t first = piece.first;
        note(read->status, first);
        if (first < failed_at) note(hand_on(piece, piece.last), first);
        idle.push_back(&piece);
      }
    }
    return failure;
  }

  // Where the stretches end that share a read with order_[first].
  size_t end_of(size_t first, uint64_t gap, uint64_t longest) const {
    const uint64_t start = wanted_[order_[first]].offset;
    uint64_t end = start + wanted_[order_[first]].bytes;
    size_t last = first + 1;
    for (; last < order_.size(); ++last) {
      const Stretch& next = wanted_[order_[last]];
      const uint64_t further = std::max(end, next.offset + next.bytes);
      if (next.offset > end + gap || further - start > std::max(longest, end - start)) break;
      end = further;
    }
    return last;
  }

  uint64_t end_offset(size_t first, size_t last) const {
    uint64_t end = 0;
    for (size_t at = first; at < last; ++at)
      end = std::max(end, wanted_[order_[at]].offset + wanted_[order_[at]].bytes);
    return end;
  }

  void cover(Piece& piece) {
    const uint64_t start = wanted_[order_[piece.first]].offset;
    piece.read = {.file = &file_,
                  .offset = start,
                  .into = piece.room(end_offset(piece.first, piece.last) - start),
                  .status = {},
                  .tag = piece.read.tag};
  }

  // Copies what the kernel has in memory, without what lies between, and hands it on; the rest of the piece
  // stays to be read.
  Status take_cached(Piece& piece) {
    while (piece.first < piece.last) {
      const uint64_t start = wanted_[order_[piece.first]].offset;
      const size_t last = std::min(piece.last, end_of(piece.first, kCachedGap, kMergedBytes));
      piece.read.offset = start;
      piece.read.into = piece.room(end_offset(piece.first, last) - start);
      if (!read_if_cached(file_, start, piece.read.into)) return {};
      PACKTRAIN_TRY(hand_on(piece, last));
    }
    return {};
  }

  Status hand_on(Piece& piece, size_t last) {
    for (; piece.first < last; ++piece.first) {
      const Stretch& stretch = wanted_[order_[piece.first]];
      PACKTRAIN_TRY(each_(order_[piece.first],
                          Bytes(piece.read.into).subspan(stretch.offset - piece.read.offset, stretch.bytes)));
    }
    return {};
  }

  Storage& storage_;
  const File& file_;
  const std::span<const Stretch> wanted_;
  const Each& each_;
  const EachCall calls_;
  std::vector<size_t> order_;  // by place in the file
};

}  // namespace

Status read_merged(Storage& storage, const File& file, std::span<const Stretch> wanted,
                   const std::function<Status(size_t, Bytes)>& each, EachCall calls) {
  return MergedReads(storage, file, wanted, each, calls).run();
}

}  // namespace packtrain
