#include "pack/sequential_reader.h"

#include <algorithm>
#include <chrono>

namespace packtrain {
namespace {

constexpr uint64_t kSmallBytes = 128 << 10, kLargeBytes = 1 << 20;
constexpr size_t kSmallDepth = 2, kLargeDepth = 4;
constexpr auto kSlowWait = std::chrono::microseconds(500);  // memory answers within tens

}  // namespace

SequentialReader::SequentialReader(Storage& storage, const File& file, uint64_t begin, uint64_t end)
    : file_(file), end_(end), next_offset_(begin), piece_bytes_(kSmallBytes), depth_(kSmallDepth) {
  if (begin >= end) return;
  reads_ = storage.reads(kLargeDepth);
  fill();
}

void SequentialReader::fill() {
  while (in_flight_.size() < depth_ && next_offset_ < end_) {
    std::unique_ptr<Piece> piece = given_ ? std::move(given_) : std::make_unique<Piece>();
    const uint64_t bytes = std::min(piece_bytes_, end_ - next_offset_);
    if (piece->bytes.size() < bytes) piece->bytes.resize(bytes);
    piece->done = false;
    piece->read = {};
    piece->read.file = &file_;
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
  const auto started = std::chrono::steady_clock::now();
  while (!piece.done) {
    Read* finished[kLargeDepth];
    const size_t count = reads_->wait(finished);
    for (size_t i = 0; i < count; ++i) reinterpret_cast<Piece*>(finished[i]->tag)->done = true;
  }
  if (std::chrono::steady_clock::now() - started > kSlowWait) {
    piece_bytes_ = kLargeBytes;
    depth_ = kLargeDepth;
  }
}

Result<Bytes> SequentialReader::next() {
  fill();
  if (in_flight_.empty()) return Bytes();
  if (!in_flight_.front()->done) wait_for(*in_flight_.front());
  given_ = std::move(in_flight_.front());
  in_flight_.pop_front();
  if (!given_->read.status.ok()) return given_->read.status;
  return Bytes(given_->read.into);
}

}  // namespace packtrain
