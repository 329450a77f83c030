// Columns in a NumPy archive (.npz): a zip without compression whose members are .npy files, laid out so that
// every column's numbers start at a multiple of 64 bytes and can be used where they are.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// One-dimensional, little-endian. `type` is NumPy's word for it.
struct Column {
  std::string name;
  std::string_view type;  // "<u8", "<u4", "<u2", "<i8", "|u1"
  Bytes data;
  uint64_t count = 0;
  uint32_t crc32 = 0;  // of the .npy member as stored: its header and its data
  uint64_t member_offset = 0, member_bytes = 0;
};

template <class T>
constexpr std::string_view numpy_type();
template <>
constexpr std::string_view numpy_type<uint64_t>() {
  return "<u8";
}
template <>
constexpr std::string_view numpy_type<uint32_t>() {
  return "<u4";
}
template <>
constexpr std::string_view numpy_type<uint16_t>() {
  return "<u2";
}
template <>
constexpr std::string_view numpy_type<int64_t>() {
  return "<i8";
}
template <>
constexpr std::string_view numpy_type<char>() {
  return "|u1";
}

// Collects columns into the bytes of a file. The bytes depend on the columns alone. One thread at a time.
class NpzWriter {
 public:
  // Takes the file's bytes in order, piece by piece.
  using Sink = std::function<Status(uint64_t offset, Bytes)>;

  NpzWriter() = default;  // to memory: finish() gives the bytes
  explicit NpzWriter(Sink sink)
      : sink_(std::move(sink)) {}  // to the sink: finish_to_sink() says how that went

  template <class T, class Allocator>
  void add(std::string_view name, const std::vector<T, Allocator>& values) {
    add(name, numpy_type<T>(), values.size(), std::as_bytes(std::span(values)));
  }
  void add(std::string_view name, std::string_view bytes_column) {
    add(name, "|u1", bytes_column.size(), std::as_bytes(std::span(bytes_column)));
  }
  void add(std::string_view name, std::string_view type, uint64_t count, Bytes data);
  // How large the file will be, about: spares copies while it grows, and the memory for them.
  void reserve(uint64_t bytes);
  Status finish_to_sink();
  std::string finish();  // leaves the writer empty

 private:
  struct Member {
    std::string name;
    uint64_t offset, bytes;
    uint32_t crc32;
  };
  void put_directory();
  void pass_on(Bytes bytes);
  uint64_t at() const { return passed_on_ + out_.size(); }

  Sink sink_;
  Status status_;  // of the sink: after a failure nothing more is passed on
  uint64_t passed_on_ = 0;
  std::string out_;
  std::vector<Member> members_;
};

// A file of the columns that `add_columns` adds, none of which is copied.
Status write_npz(Storage& storage, const std::string& path, const WriteOptions& options,
                 const std::function<void(NpzWriter&)>& add_columns);

// The columns of a file, without looking at their numbers: costs the same for any length. `file` must stay
// alive. Columns it does not understand (other types, more dimensions) are left out.
Result<std::vector<Column>> read_npz(Bytes file);
// Hash of the zip directory, which holds each member's CRC-32: it changes with any column. 16 hex digits.
Result<std::string> npz_directory_hash(Bytes file);
// Compares every column with its CRC-32, names the damaged ones.
std::vector<std::string> damaged_columns(Bytes file, const std::vector<Column>& columns);

// Values of a column, or corrupt if it is absent, has another type or another count.
template <class T>
Result<std::span<const T>> column_values(const std::vector<Column>& columns, std::string_view name,
                                         uint64_t count) {
  for (const Column& column : columns) {
    if (column.name != name) continue;
    if (column.type != numpy_type<T>())
      return Status(Code::corrupt, "column " + column.name + " has another type than it must have");
    if (column.count != count) {
      return Status(Code::corrupt, "column " + column.name + " has " + std::to_string(column.count) +
                                       " rows instead of " + std::to_string(count));
    }
    return std::span<const T>(reinterpret_cast<const T*>(column.data.data()), count);
  }
  return Status(Code::corrupt, "column " + std::string(name) + " is missing");
}

}  // namespace packtrain
