#include "pack/sequential_reader.h"

#include <algorithm>
#include <bit>
#include <string>

#include "io/cached_view.h"

namespace packtrain {
namespace {

using ReaderClock = std::chrono::steady_clock;

constexpr uint64_t kDirectBytes = 256 << 10;  // half of a second-level cache
constexpr uint64_t kAheadBytes = 1 << 20;
constexpr size_t kDepth = 4;
// Memory answers within tens of microseconds. A slow answer may be the scheduler's doing, who lets others run
// for milliseconds; several of the last eight are not.
constexpr auto kSlowWait = std::chrono::microseconds(200);
constexpr int kSlowWaits = 3;

// Of a view, at a time: so often progress is told.
constexpr uint64_t kSeenBytes = 1 << 20;
// For less than this a mapping costs more than the copy.
constexpr uint64_t kViewFrom = 1 << 20;

}  // namespace

SequentialReader::SequentialReader(Storage& storage, bool looks) : storage_(storage), looks_(looks) {}
SequentialReader::~SequentialReader() = default;

void SequentialReader::start(const File& file, uint64_t begin, uint64_t end) {
  while (!in_flight_.empty()) {
    if (!in_flight_.front()->done) wait_for(*in_flight_.front());
    give_back(std::move(in_flight_.front()));
    in_flight_.pop_front();
  }
  // Reads in flight together arrive together: of those ahead, one slow wait in a few is enough to go on so.
  ahead_ = ahead_ && slow_waits_ != 0;
  slow_waits_ = 0;
  file_ = &file;
  next_offset_ = begin;
  end_ = std::max(begin, end);
  seen_ = 0;
  view_ =
      looks_ && !ahead_ && end_ - begin >= kViewFrom ? CachedView::of(file, begin, end_ - begin) : nullptr;
}

Result<Bytes> SequentialReader::next() {
  if (view_ != nullptr) return next_in_view();
  return ahead_ ? next_of_those_ahead() : next_directly();
}

Result<Bytes> SequentialReader::next_in_view() {
  const Bytes rest = view_->bytes().subspan(seen_);
  if (!rest.empty()) {
    const auto given = rest.first(static_cast<size_t>(std::min<uint64_t>(kSeenBytes, rest.size())));
    seen_ += given.size();
    return given;
  }
  // What was handed on counts only now.
  const bool cut = view_->cut();
  view_.reset();
  next_offset_ = end_;
  return cut ? Result<Bytes>(Status(Code::corrupt, std::string(kCutWhileRead))) : Bytes();
}

Result<Bytes> SequentialReader::next_directly() {
  const uint64_t bytes = std::min(kDirectBytes, end_ - next_offset_);
  if (bytes == 0) return Bytes();
  if (buffer_.size() < bytes) buffer_.resize(bytes);
  const MutableBytes into(buffer_.data(), bytes);
  const ReaderClock::time_point started = ReaderClock::now();
  PACKTRAIN_TRY(storage_.read(*file_, next_offset_, into));
  note_wait(ReaderClock::now() - started);
  next_offset_ += bytes;
  return Bytes(into);
}

Result<Bytes> SequentialReader::next_of_those_ahead() {
  give_back(std::move(given_));
  fill();
  if (in_flight_.empty()) return Bytes();
  const ReaderClock::time_point started = ReaderClock::now();
  wait_for(*in_flight_.front());
  note_wait(ReaderClock::now() - started);
  given_ = std::move(in_flight_.front());
  in_flight_.pop_front();
  if (!given_->read.status.ok()) return given_->read.status;
  return Bytes(given_->read.into);
}

void SequentialReader::fill() {
  if (reads_ == nullptr) reads_ = storage_.reads(kDepth);
  while (in_flight_.size() < kDepth && next_offset_ < end_) {
    std::unique_ptr<Piece> piece;
    if (spare_.empty()) {
      piece = std::make_unique<Piece>();
      piece->bytes.resize(kAheadBytes);
    } else {
      piece = std::move(spare_.back());
      spare_.pop_back();
    }
    const uint64_t bytes = std::min(kAheadBytes, end_ - next_offset_);
    piece->done = false;
    piece->read = {};
    piece->read.file = file_;
    piece->read.offset = next_offset_;
    piece->read.into = MutableBytes(piece->bytes.data(), bytes);
    piece->read.tag = reinterpret_cast<uintptr_t>(piece.get());
    next_offset_ += bytes;
    in_flight_.push_back(std::move(piece));
    Read* const request = &in_flight_.back()->read;
    reads_->submit({&request, 1});
  }
}

void SequentialReader::wait_for(Piece& piece) {
  while (!piece.done) {
    Read* finished[kDepth];
    const size_t count = reads_->wait(finished);
    for (size_t i = 0; i < count; ++i) reinterpret_cast<Piece*>(finished[i]->tag)->done = true;
  }
}

void SequentialReader::note_wait(ReaderClock::duration waited) {
  slow_waits_ = static_cast<uint8_t>(slow_waits_ << 1 | (waited > kSlowWait ? 1 : 0));
  if (std::popcount(slow_waits_) >= kSlowWaits) ahead_ = true;
}

void SequentialReader::give_back(std::unique_ptr<Piece> piece) {
  if (piece != nullptr) spare_.push_back(std::move(piece));
}

}  // namespace packtrain
