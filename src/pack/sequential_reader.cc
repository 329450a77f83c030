#include "pack/sequential_reader.h"

#include <algorithm>

namespace packtrain {
namespace {

constexpr uint64_t kPieceBytes = 512 << 10;
constexpr size_t kPieces = 4;

}  // namespace

SequentialReader::SequentialReader(Storage& storage, const File& file, uint64_t begin, uint64_t end)
    : file_(file), end_(end), next_offset_(begin) {
  const uint64_t needed = begin < end ? (end - begin + kPieceBytes - 1) / kPieceBytes : 0;
  pieces_.resize(std::min<uint64_t>(kPieces, needed));
  if (pieces_.empty()) return;
  reads_ = storage.reads(static_cast<uint32_t>(pieces_.size()));
  for (Piece& piece : pieces_) {
    piece.bytes.resize(std::min(kPieceBytes, end - begin));
    submit(piece);
  }
}

void SequentialReader::submit(Piece& piece) {
  const uint64_t bytes = std::min(kPieceBytes, end_ - next_offset_);
  piece.done = false;
  piece.read = {};
  piece.read.file = &file_;
  piece.read.offset = next_offset_;
  piece.read.into = MutableBytes(piece.bytes.data(), bytes);
  piece.read.tag = submitted_++ % pieces_.size();
  next_offset_ += bytes;
  Read* const request = &piece.read;
  reads_->submit({&request, 1});
}

Result<Bytes> SequentialReader::next() {
  if (given_ > 0 && next_offset_ < end_) submit(pieces_[(given_ - 1) % pieces_.size()]);
  if (given_ == submitted_) return Bytes();
  Piece& piece = pieces_[given_ % pieces_.size()];
  while (!piece.done) {
    Read* finished[kPieces];
    const size_t count = reads_->wait(finished);
    for (size_t i = 0; i < count; ++i) pieces_[finished[i]->tag].done = true;
  }
  ++given_;
  if (!piece.read.status.ok()) return piece.read.status;
  return Bytes(piece.read.into);
}

}  // namespace packtrain
