// Flatbuffers, read and written without a schema compiler: tables whose values are found by their slot.
//
// A buffer begins with the u32 position of its root table. A table begins with an i32 that leads back to its
// vtable: u16 bytes of the vtable, u16 bytes of the table, then for each slot the u16 place of its value in
// the table, 0 where it has none. Texts, vectors and other tables lie elsewhere, a u32 ahead of the place
// that refers to them; vectors and texts begin with their u32 length.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/little_endian.h"
#include "packtrain/status.h"

namespace packtrain {

// A vector of structs or numbers, each `bytes.size() / count` long.
struct FlatVector {
  size_t count = 0;
  Bytes bytes;
};

class FlatTables;

// A table within a buffer that must stay alive. Every access is checked against the buffer's bounds; what
// does not fit is Code::corrupt. Tables may refer to the same table twice: whoever follows references in
// depth must count. A plain value.
class FlatTable {
 public:
  FlatTable() = default;  // one that is not there: it has no slots
  static Result<FlatTable> root(Bytes buffer);

  bool present() const { return !buffer_.empty(); }
  bool has(uint16_t slot) const { return place(slot) != 0; }

  template <class T>
  Result<T> number(uint16_t slot, T otherwise) const {
    const size_t at = place(slot);
    if (at == 0) return otherwise;
    if (at > bytes_ || bytes_ - at < sizeof(T)) return outside();
    return load_le<T>(buffer_.data() + at_ + at);
  }
  Result<std::string_view> text(uint16_t slot) const;                     // "" where there is none
  Result<FlatTable> table(uint16_t slot) const;                           // one that is not there
  Result<FlatVector> structs(uint16_t slot, size_t element_bytes) const;  // an empty one
  Result<FlatTables> tables(uint16_t slot) const;                         // an empty one

 private:
  friend class FlatTables;
  static Result<FlatTable> at(Bytes buffer, size_t at);
  static Status outside();
  size_t place(uint16_t slot) const;  // of the value in the table; 0: it has none
  // Where the reference in a slot leads; the slot must have a value.
  Result<size_t> target(uint16_t slot) const;

  Bytes buffer_;
  size_t at_ = 0;
  size_t bytes_ = 0;  // of the table
  Bytes vtable_;      // the places alone
};

// A vector of tables.
class FlatTables {
 public:
  size_t size() const { return references_.size() / sizeof(uint32_t); }
  Result<FlatTable> at(size_t index) const;

 private:
  friend class FlatTable;
  Bytes buffer_;
  size_t start_ = 0;  // of the references in the buffer
  Bytes references_;
};

// Writes a buffer front to back: a table first, then what its slots refer to. One thread at a time.
class FlatWriter {
 public:
  struct Slot {
    uint16_t slot;
    uint8_t bytes;  // of the value; 4 for a reference, which is set by what follows
    uint64_t value = 0;
  };
  static constexpr uint8_t kReference = 4;

  size_t root(std::span<const Slot> slots);  // begins a new buffer; returns the table's position
  size_t table(size_t parent, uint16_t slot, std::span<const Slot> slots);
  void text(size_t table, uint16_t slot, std::string_view text);
  // Returns the position of the first element.
  size_t structs(size_t table, uint16_t slot, Bytes elements, size_t element_bytes, size_t alignment = 8);
  // A vector of `count` tables, each to be written by `element`.
  size_t tables(size_t table, uint16_t slot, size_t count);
  size_t element(size_t tables, size_t index, std::span<const Slot> slots);

  // The buffer so far, padded to 8 bytes; valid until the next call. A buffer has less than 2 GiB.
  Bytes finish();
  MutableBytes bytes() { return bytes_; }

 private:
  size_t put_table(std::span<const Slot> slots);
  size_t reference(size_t table, uint16_t slot) const;  // where the reference in a slot lies
  void point(size_t reference, size_t target);
  void align(size_t alignment, size_t behind = 0);  // so that what comes `behind` bytes later is aligned

  std::vector<std::byte> bytes_;
};

}  // namespace packtrain
