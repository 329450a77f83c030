#include "format/flatbuffer.h"

#include <algorithm>
#include <cassert>

#include "packtrain/storage.h"

namespace packtrain {

Status FlatTable::outside() { return Status(Code::corrupt, "a value of the metadata lies outside of them"); }

Result<FlatTable> FlatTable::root(Bytes buffer) {
  if (buffer.size() < sizeof(uint32_t)) return outside();
  return at(buffer, load_le<uint32_t>(buffer.data()));
}

Result<FlatTable> FlatTable::at(Bytes buffer, size_t at) {
  if (at > buffer.size() || buffer.size() - at < sizeof(int32_t)) return outside();
  const int64_t vtable_at = static_cast<int64_t>(at) - load_le<int32_t>(buffer.data() + at);
  if (vtable_at < 0 || static_cast<uint64_t>(vtable_at) > buffer.size()) return outside();
  const Bytes vtable = buffer.subspan(static_cast<size_t>(vtable_at));
  constexpr size_t kHead = 2 * sizeof(uint16_t);
  if (vtable.size() < kHead) return outside();
  const size_t vtable_bytes = load_le<uint16_t>(vtable.data());
  FlatTable table;
  table.buffer_ = buffer;
  table.at_ = at;
  table.bytes_ = load_le<uint16_t>(vtable.data() + sizeof(uint16_t));
  if (vtable_bytes < kHead || vtable_bytes > vtable.size() || table.bytes_ < sizeof(int32_t) ||
      table.bytes_ > buffer.size() - at)
    return outside();
  table.vtable_ = vtable.subspan(kHead, vtable_bytes - kHead);
  return table;
}

size_t FlatTable::place(uint16_t slot) const {
  const size_t at = size_t{slot} * sizeof(uint16_t);
  if (at > vtable_.size() || vtable_.size() - at < sizeof(uint16_t)) return 0;
  return load_le<uint16_t>(vtable_.data() + at);
}

Result<size_t> FlatTable::target(uint16_t slot) const {
  const size_t at = place(slot);
  if (at > bytes_ || bytes_ - at < sizeof(uint32_t)) return outside();
  const size_t from = at_ + at;
  const size_t ahead = load_le<uint32_t>(buffer_.data() + from);
  if (ahead > buffer_.size() - from) return outside();
  return from + ahead;
}

Result<FlatVector> FlatTable::structs(uint16_t slot, size_t element_bytes) const {
  if (!has(slot)) return FlatVector{};
  PACKTRAIN_ASSIGN(at, target(slot));
  if (buffer_.size() - at < sizeof(uint32_t)) return outside();
  const size_t count = load_le<uint32_t>(buffer_.data() + at);
  const Bytes rest = buffer_.subspan(at + sizeof(uint32_t));
  if (count > rest.size() / element_bytes) return outside();
  return FlatVector{count, rest.first(count * element_bytes)};
}

Result<std::string_view> FlatTable::text(uint16_t slot) const {
  PACKTRAIN_ASSIGN(vector, structs(slot, 1));
  return as_text(vector.bytes);
}

Result<FlatTable> FlatTable::table(uint16_t slot) const {
  if (!has(slot)) return FlatTable();
  PACKTRAIN_ASSIGN(to, target(slot));
  return at(buffer_, to);
}

Result<FlatTables> FlatTable::tables(uint16_t slot) const {
  PACKTRAIN_ASSIGN(vector, structs(slot, sizeof(uint32_t)));
  FlatTables found;
  if (vector.count == 0) return found;
  found.buffer_ = buffer_;
  found.start_ = static_cast<size_t>(vector.bytes.data() - buffer_.data());
  found.references_ = vector.bytes;
  return found;
}

Result<FlatTable> FlatTables::at(size_t index) const {
  assert(index < size());
  const size_t from = start_ + index * sizeof(uint32_t);
  const size_t ahead = load_le<uint32_t>(buffer_.data() + from);
  if (ahead > buffer_.size() - from) return FlatTable::outside();
  return FlatTable::at(buffer_, from + ahead);
}

size_t FlatWriter::root(std::span<const Slot> slots) {
  bytes_.assign(sizeof(uint32_t), std::byte{0});
  const size_t table = put_table(slots);
  point(0, table);
  return table;
}

size_t FlatWriter::table(size_t parent, uint16_t slot, std::span<const Slot> slots) {
  const size_t made = put_table(slots);
  point(reference(parent, slot), made);
  return made;
}

void FlatWriter::text(size_t table, uint16_t slot, std::string_view text) {
  structs(table, slot, as_bytes(text), 1, sizeof(uint32_t));
  bytes_.push_back(std::byte{0});  // its length does not count it
}

size_t FlatWriter::structs(size_t table, uint16_t slot, Bytes elements, size_t element_bytes,
                           size_t alignment) {
  align(std::max(alignment, sizeof(uint32_t)), sizeof(uint32_t));
  const size_t at = bytes_.size();
  bytes_.resize(at + sizeof(uint32_t));
  store_le(bytes_.data() + at, static_cast<uint32_t>(elements.size() / element_bytes));
  bytes_.insert(bytes_.end(), elements.begin(), elements.end());
  point(reference(table, slot), at);
  return at + sizeof(uint32_t);
}

size_t FlatWriter::tables(size_t table, uint16_t slot, size_t count) {
  const std::vector<std::byte> references(count * sizeof(uint32_t));
  return structs(table, slot, references, sizeof(uint32_t), sizeof(uint32_t));
}

size_t FlatWriter::element(size_t tables, size_t index, std::span<const Slot> slots) {
  const size_t made = put_table(slots);
  point(tables + index * sizeof(uint32_t), made);
  return made;
}

Bytes FlatWriter::finish() {
  align(8);
  return bytes_;
}

size_t FlatWriter::put_table(std::span<const Slot> slots) {
  uint16_t count = 0;
  for (const Slot& slot : slots) count = std::max<uint16_t>(count, static_cast<uint16_t>(slot.slot + 1));
  const size_t vtable_bytes = (2 + size_t{count}) * sizeof(uint16_t);
  align(8, vtable_bytes);
  const size_t vtable = bytes_.size(), table = vtable + vtable_bytes;
  size_t end = sizeof(int32_t);
  for (const Slot& slot : slots) end = (end + slot.bytes - 1) / slot.bytes * slot.bytes + slot.bytes;
  bytes_.resize(table + end);
  store_le(bytes_.data() + vtable, static_cast<uint16_t>(vtable_bytes));
  store_le(bytes_.data() + vtable + 2, static_cast<uint16_t>(end));
  store_le(bytes_.data() + table, static_cast<int32_t>(vtable_bytes));
  size_t at = sizeof(int32_t);
  for (const Slot& slot : slots) {
    at = (at + slot.bytes - 1) / slot.bytes * slot.bytes;
    store_le(bytes_.data() + vtable + (2 + size_t{slot.slot}) * sizeof(uint16_t), static_cast<uint16_t>(at));
    std::memcpy(bytes_.data() + table + at, &slot.value, slot.bytes);
    at += slot.bytes;
  }
  return table;
}

size_t FlatWriter::reference(size_t table, uint16_t slot) const {
  const size_t vtable = table - static_cast<size_t>(load_le<int32_t>(bytes_.data() + table));
  const auto place = load_le<uint16_t>(bytes_.data() + vtable + (2 + size_t{slot}) * sizeof(uint16_t));
  assert(place != 0);
  return table + place;
}

void FlatWriter::point(size_t reference, size_t target) {
  store_le(bytes_.data() + reference, static_cast<uint32_t>(target - reference));
}

void FlatWriter::align(size_t alignment, size_t behind) {
  while ((bytes_.size() + behind) % alignment != 0) bytes_.push_back(std::byte{0});
}

}  // namespace packtrain
