#include "format/hdf5_elements.h"

#include <algorithm>
#include <cstring>

#include "format/hdf5_chunks.h"
#include "packtrain/storage.h"

namespace packtrain {
namespace {

constexpr size_t kMostLengths = 64;  // of parts that were never written, whose blocks are remembered

Status corrupt_elements(std::string what) { return Status(Code::corrupt, std::move(what)); }

}  // namespace

Result<Hdf5Elements> Hdf5Elements::find(Hdf5File& file, const Hdf5Object& dataset) {
  PACKTRAIN_TRY(dataset.trouble);
  Hdf5Elements made;
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(hdf5_rows(dataset), hdf5_row_bytes(dataset), &bytes)) {
    return corrupt_elements("is too large");
  }
  made.bytes_ = bytes;
  PACKTRAIN_TRY(check_hdf5_claim(file, bytes));
  PACKTRAIN_TRY(check_hdf5_fill(dataset));
  if (dataset.type.big_endian && dataset.type.size > 1) {
    return Status(Code::unsupported, "holds big-endian numbers; write them as little-endian ones");
  }
  if (bytes == 0) return made;
  if (!dataset.fill.empty()) made.fill_ = fill_pipeline(as_text(dataset.fill));
  if (dataset.layout.kind == Hdf5Layout::Kind::chunked) {
    PACKTRAIN_ASSIGN(listed, list_hdf5_chunks(file, dataset));
    made.chunk_bytes_ = listed.rows * listed.row_bytes;
    made.chunks_.reserve(listed.chunks.size());
    for (const Hdf5Chunk& chunk : listed.chunks)
      PACKTRAIN_TRY(made.take_chunk(file, dataset, chunk.address, chunk.stored, chunk.skipped_filters));
    return made;
  }
  if (dataset.layout.kind != Hdf5Layout::Kind::contiguous) {
    return Status(Code::unsupported,
                  "is kept within its description, or in other datasets; `h5repack -l CONTI OLD NEW` lays it "
                  "out plainly");
  }
  const bool written = dataset.layout.address != kHdf5Nowhere;
  if (written && (dataset.layout.bytes < bytes || !file.holds(dataset.layout.address, bytes))) {
    return corrupt_elements("lies outside of the file");
  }
  made.chunk_bytes_ = bytes;
  PACKTRAIN_TRY(made.take_chunk(file, dataset, dataset.layout.address, bytes, UINT32_MAX));
  return made;
}

Status Hdf5Elements::take_chunk(const Hdf5File& file, const Hdf5Object& dataset, uint64_t address,
                                uint64_t stored, uint32_t skipped_filters) {
  Chunk made;
  if (address == kHdf5Nowhere) {
    made.kind = Kind::unwritten;
    chunks_.push_back(made);
    return {};
  }
  made.offset = file.offset(address);
  auto known = std::find_if(pipelines_.begin(), pipelines_.end(),
                            [&](const auto& one) { return one.first == skipped_filters; });
  if (known == pipelines_.end()) {
    PACKTRAIN_ASSIGN(pipeline, hdf5_pipeline(dataset, skipped_filters));
    if (pipelines_.size() > UINT8_MAX) return corrupt_elements("has chunks filtered in too many ways");
    known = pipelines_.emplace(pipelines_.end(), skipped_filters, std::move(pipeline));
  }
  if (!known->second.empty()) {
    if (stored > UINT32_MAX) return corrupt_elements("has a compressed chunk that is too large");
    made.kind = Kind::coded;
    made.stored = static_cast<uint32_t>(stored);
    made.pipeline = static_cast<uint16_t>(known - pipelines_.begin());
  }
  chunks_.push_back(made);
  return {};
}

uint64_t Hdf5Elements::block_of(Chunk& chunk, uint32_t shard, IndexBuilder& out) {
  if (chunk.block != kNoBlock) return chunk.block;
  Block block{.shard = shard, .offset = chunk.offset, .stored = chunk_bytes_, .raw = chunk_bytes_};
  if (chunk.kind == Kind::coded) {
    block.stored = chunk.stored;
    block.pipeline = out.add_pipeline(pipelines_[chunk.pipeline].second);
  }
  return chunk.block = out.add_block(block);
}

uint64_t Hdf5Elements::unwritten_block(uint64_t length, uint32_t shard, IndexBuilder& out) {
  const auto known = std::find_if(unwritten_.begin(), unwritten_.end(),
                                  [&](const auto& one) { return one.first == length; });
  if (known != unwritten_.end()) return known->second;
  Block block{.shard = shard, .hole = fill_.empty(), .raw = length};
  if (!fill_.empty()) block.pipeline = out.add_pipeline(fill_);
  const uint64_t made = out.add_block(block);
  if (unwritten_.size() < kMostLengths) unwritten_.emplace_back(length, made);
  return made;
}

void Hdf5Elements::add_field(IndexBuilder& out, uint32_t shard, std::string_view name, uint64_t begin,
                             uint64_t length, std::string_view path) {
  if (length == 0) {
    const uint64_t near = begin < bytes_ ? chunks_[begin / chunk_bytes_].offset : 0;
    return out.add_field(name, shard, near, 0, CheckKind::none, 0, path);
  }
  const Chunk& first = chunks_[begin / chunk_bytes_];
  if (first.kind == Kind::plain && begin / chunk_bytes_ == (begin + length - 1) / chunk_bytes_) {
    return out.add_field(name, shard, first.offset + begin % chunk_bytes_, length, CheckKind::none, 0, path);
  }
  slices_.clear();
  while (length > 0) {
    Chunk& chunk = chunks_[begin / chunk_bytes_];
    const uint64_t start = begin % chunk_bytes_, part = std::min(length, chunk_bytes_ - start);
    if (chunk.kind == Kind::unwritten) {
      // Parts begin with an element, and so does the fill value.
      slices_.push_back({unwritten_block(part, shard, out), 0, part});
    } else {
      slices_.push_back({block_of(chunk, shard, out), start, part});
    }
    begin += part;
    length -= part;
  }
  out.add_field(name, slices_, path);
}

Result<size_t> Hdf5Elements::read(const Hdf5File& file, uint64_t begin, MutableBytes into) const {
  if (begin >= bytes_) return size_t{0};
  const Chunk& chunk = chunks_[begin / chunk_bytes_];
  const uint64_t start = begin % chunk_bytes_;
  into = into.first(
      static_cast<size_t>(std::min<uint64_t>({into.size(), chunk_bytes_ - start, bytes_ - begin})));
  switch (chunk.kind) {
    case Kind::plain:
      PACKTRAIN_TRY(file.storage().read(file.file(), chunk.offset + start, into));
      break;
    case Kind::coded: {
      std::vector<std::byte> stored(chunk.stored), raw(static_cast<size_t>(chunk_bytes_));
      PACKTRAIN_TRY(file.storage().read(file.file(), chunk.offset, stored));
      PACKTRAIN_TRY(decode(pipelines_[chunk.pipeline].second, stored, raw));
      std::memcpy(into.data(), raw.data() + start, into.size());
      break;
    }
    case Kind::unwritten:
      std::fill(into.begin(), into.end(), std::byte{0});
      if (!fill_.empty()) PACKTRAIN_TRY(decode(fill_, {}, into));
      break;
  }
  return into.size();
}

}  // namespace packtrain
