#include "format/merged_reads.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

namespace packtrain {
namespace {

constexpr uint32_t kMergedReadsInFlight = 32;
constexpr uint64_t kMergeGap = uint64_t{16} << 10;      // stretches nearer than this share a read
constexpr uint64_t kMergedBytes = uint64_t{512} << 10;  // and a shared read is at most this long

// A read that covers the stretches order[first, last).
struct Piece {
  Read read;
  std::vector<std::byte> buffer;
  size_t first = 0, last = 0;
};

}  // namespace

Status read_merged(Storage& storage, const File& file, std::span<const Stretch> wanted,
                   const std::function<Status(size_t, Bytes)>& each) {
  std::vector<size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return wanted[a].offset < wanted[b].offset; });
  const auto plan = [&](size_t first, Piece& piece) {
    const uint64_t start = wanted[order[first]].offset;
    uint64_t end = start + wanted[order[first]].bytes;
    size_t last = first + 1;
    for (; last < order.size(); ++last) {
      const Stretch& next = wanted[order[last]];
      const uint64_t further = std::max(end, next.offset + next.bytes);
      if (next.offset > end + kMergeGap || further - start > std::max(kMergedBytes, end - start)) break;
      end = further;
    }
    piece.first = first;
    piece.last = last;
    piece.buffer.resize(static_cast<size_t>(end - start));
    piece.read = {.file = &file, .offset = start, .into = piece.buffer, .status = {}, .tag = piece.read.tag};
    return last;
  };

  std::vector<Piece> pieces(
      std::min<size_t>(kMergedReadsInFlight, wanted.size()));  // outlives what is in flight
  std::vector<Piece*> idle;
  for (size_t i = 0; i < pieces.size(); ++i) {
    pieces[i].read.tag = i;
    idle.push_back(&pieces[i]);
  }
  std::unique_ptr<Reads> reads = storage.reads(kMergedReadsInFlight);
  for (size_t next = 0; next < order.size() || reads->in_flight() > 0;) {
    std::vector<Read*> batch;
    for (; next < order.size() && !idle.empty(); idle.pop_back()) {
      next = plan(next, *idle.back());
      batch.push_back(&idle.back()->read);
    }
    if (!batch.empty()) reads->submit(batch);
    Read* finished[kMergedReadsInFlight];
    const size_t count = reads->wait(finished);
    for (Read* read : std::span(finished, count)) {
      Piece& piece = pieces[read->tag];
      PACKTRAIN_TRY(read->status);
      for (size_t at = piece.first; at < piece.last; ++at) {
        const Stretch& stretch = wanted[order[at]];
        PACKTRAIN_TRY(
            each(order[at], Bytes(piece.buffer).subspan(stretch.offset - read->offset, stretch.bytes)));
      }
      idle.push_back(&piece);
    }
  }
  return {};
}

}  // namespace packtrain
