#include "format/hdf5_fractal_heap.h"

#include <algorithm>
#include <bit>

namespace packtrain {
namespace {

constexpr uint64_t kHeapHeadBytes = 146;  // with its checksum, of a heap that is not filtered
constexpr uint64_t kMostHeapBits = 63;

Status corrupt_heap(std::string_view what) { return Status(Code::corrupt, std::string(what)); }

}  // namespace

Result<Hdf5FractalHeap> Hdf5FractalHeap::open(Hdf5File& file, uint64_t address) {
  Hdf5FractalHeap heap(file);
  PACKTRAIN_TRY(heap.parse(address));
  return heap;
}

Status Hdf5FractalHeap::parse(uint64_t address) {
  PACKTRAIN_ASSIGN(head, file_->read(address, kHeapHeadBytes));
  Hdf5Cursor at(head);
  if (!at.starts_with("FRHP") || at.u8() != 0) return corrupt_heap("no heap of links");
  at.skip(2);  // bytes of an identity
  if (at.u16() != 0) return Status(Code::unsupported, "filters the names of its links");
  if (hdf5_checksum(Bytes(head).first(head.size() - 4)) != Hdf5Cursor(Bytes(head).last(4)).u32())
    return corrupt_heap("a heap of links does not match its checksum");
  at.skip(1);  // flags
  const uint32_t largest_object = at.u32();
  at.skip(12 * 8);  // counts, sizes, and what keeps large objects and free space
  width_ = at.u16();
  first_bytes_ = at.u64();
  largest_direct_ = at.u64();
  const uint16_t bits = at.u16();
  at.skip(2);  // rows at the start
  root_ = at.u64();
  root_rows_ = at.u16();
  const bool sound = width_ > 0 && width_ <= 1024 && std::has_single_bit(first_bytes_) &&
                     std::has_single_bit(largest_direct_) && largest_direct_ >= first_bytes_ &&
                     largest_direct_ <= UINT32_MAX && bits <= kMostHeapBits;
  // The last row is not longer than the line.
  const bool fits = sound && root_rows_ <= static_cast<uint64_t>(std::countl_zero(width_ * first_bytes_));
  if (!fits) return corrupt_heap("a heap of links has impossible sizes");
  place_bytes_ = (uint64_t{bits} + 7) / 8;
  // As many bytes as a length within a block takes, or fewer where objects are shorter.
  length_bytes_ = std::min((static_cast<uint64_t>(std::countr_zero(largest_direct_)) + 7) / 8,
                           (static_cast<uint64_t>(std::bit_width(largest_object)) + 7) / 8);
  return {};
}

uint64_t Hdf5FractalHeap::row_block_bytes(uint64_t row) const {
  return row == 0 ? first_bytes_ : first_bytes_ << (row - 1);
}

Result<Hdf5FractalHeap::Direct> Hdf5FractalHeap::find(uint64_t place) const {
  if (root_ == kHdf5Nowhere) return corrupt_heap("a heap of links is empty");
  if (root_rows_ == 0) return Direct{root_, 0, first_bytes_};
  const auto direct_rows = static_cast<uint64_t>(std::countr_zero(largest_direct_ / first_bytes_)) + 2;
  uint64_t block = root_, rows = root_rows_, begin = 0;
  // Each step leads to a smaller block, so that this ends.
  while (true) {
    uint64_t row = 0, row_begin = begin;
    while (row < rows && place - row_begin >= width_ * row_block_bytes(row)) {
      row_begin += width_ * row_block_bytes(row);
      ++row;
    }
    if (row >= rows) return corrupt_heap("a link lies outside of its heap");
    const uint64_t column = (place - row_begin) / row_block_bytes(row);
    const uint64_t child_begin = row_begin + column * row_block_bytes(row);
    const uint64_t head = 4 + 1 + 8 + place_bytes_;
    std::byte number[8];
    if (!file_->holds(block, head)) return corrupt_heap("a heap of links lies outside of the file");
    PACKTRAIN_ASSIGN(front, file_->read(block, head));
    if (!Hdf5Cursor(front).starts_with("FHIB")) return corrupt_heap("no block of a heap");
    PACKTRAIN_TRY(file_->read(block + head + 8 * (row * width_ + column), MutableBytes(number)));
    const uint64_t child = Hdf5Cursor(number).u64();
    if (row < direct_rows) return Direct{child, child_begin, row_block_bytes(row)};
    // An indirect block of this size has as many rows as fill it.
    const uint64_t size = row_block_bytes(row);
    rows = static_cast<uint64_t>(std::bit_width(size / (first_bytes_ * width_)));
    block = child;
    begin = child_begin;
  }
}

Result<std::vector<std::byte>> Hdf5FractalHeap::object(Bytes identity) {
  enum : uint8_t { managed, huge, tiny };
  Hdf5Cursor at(identity);
  const uint8_t first = at.u8();
  const uint8_t kind = first >> 4 & 3;
  if (kind == tiny) {
    const Bytes inside = at.take((first & 15) + uint64_t{1});
    if (at.failed()) return corrupt_heap("a link is cut short");
    return std::vector<std::byte>(inside.begin(), inside.end());
  }
  if (kind != managed) return Status(Code::unsupported, "has links that lie outside of their heap");
  const uint64_t place = at.number(place_bytes_), length = at.number(length_bytes_);
  if (at.failed()) return corrupt_heap("a link is cut short");
  PACKTRAIN_ASSIGN(block, find(place));
  if (place < block.begin || place - block.begin > block.bytes ||
      length > block.bytes - (place - block.begin) || !file_->holds(block.address, block.bytes))
    return corrupt_heap("a link lies outside of its heap");
  std::byte signature[4];
  PACKTRAIN_TRY(file_->read(block.address, MutableBytes(signature)));
  if (as_text(signature) != "FHDB") return corrupt_heap("no block of a heap");
  return file_->read(block.address + (place - block.begin), length);
}

}  // namespace packtrain
