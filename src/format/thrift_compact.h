// Thrift's compact protocol, which Parquet keeps its metadata in: structs of numbered fields, read and
// written without generated code.
//
// A field begins with a byte: how much its number is above the last one's (0: the number follows, zigzag),
// and its type. Whole numbers are varints, zigzag; texts and lists begin with their length; a struct ends
// with 0.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "packtrain/status.h"

namespace packtrain {

enum class ThriftType : uint8_t {
  stop = 0,
  yes = 1,
  no = 2,
  i8 = 3,
  i16 = 4,
  i32 = 5,
  i64 = 6,
  real = 7,
  binary = 8,
  list = 9,
  set = 10,
  map = 11,
  structure = 12,
  uuid = 13,
};

// Reads values one after the other. Every access is checked against the bytes' bounds; what does not fit is
// Code::corrupt. One thread at a time; the bytes must stay alive.
class ThriftReader {
 public:
  explicit ThriftReader(Bytes bytes) : bytes_(bytes) {}

  size_t position() const { return at_; }

  // Calls `each(id, type)` for every field of the struct that begins here. It takes the field's value and
  // returns, or leaves it, which skips it; to see whether it did, it returns whether the value was taken.
  template <class Each>
  Status structure(const Each& each) {
    int16_t id = 0;
    while (true) {
      PACKTRAIN_ASSIGN(type, field(id));
      if (type == ThriftType::stop) return {};
      const Result<bool> taken = each(id, type);
      if (!taken.ok()) return taken.status();
      if (!*taken) PACKTRAIN_TRY(skip(type, 0));
    }
  }
  // The number of elements that follow, each at least one byte long; `type` becomes theirs.
  Result<size_t> list(ThriftType& type);

  Result<int64_t> integer();  // of 16 bits or more
  Result<std::string_view> text();
  Status skip(ThriftType type, uint32_t depth);

 private:
  static constexpr uint32_t kDeepest = 32;
  static Status outside();
  Result<uint8_t> byte();
  Result<uint64_t> varint();
  Result<ThriftType> field(int16_t& id);
  Status skip_bytes(uint64_t bytes);
  Status skip_element(ThriftType type, uint32_t depth);

  Bytes bytes_;
  size_t at_ = 0;
};

// Takes fields of any struct in ascending order of their numbers. One thread at a time.
class ThriftWriter {
 public:
  void integer(int16_t id, ThriftType type, int64_t value);  // i16, i32 or i64
  void small(int16_t id, int8_t value);
  void boolean(int16_t id, bool value);
  void text(int16_t id, std::string_view text);
  void begin_list(int16_t id, ThriftType type, size_t count);
  void begin_structure(int16_t id);  // as a field
  void begin_element();              // of a list of structs, or the whole
  void end_structure();
  // Elements of lists.
  void integer_element(int64_t value);
  void text_element(std::string_view text);

  Bytes bytes() const { return bytes_; }
  void clear();

 private:
  void field(int16_t id, ThriftType type);
  void varint(uint64_t value);

  std::vector<std::byte> bytes_;
  std::vector<int16_t> last_;  // number of the last field, for each struct that is open
};

}  // namespace packtrain
