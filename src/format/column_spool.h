// Columns that grow side by side and are wanted one after the other: in memory while they are small, beyond
// that in one temporary object beside the container.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// One thread at a time. Memory: kMemoryBytes, and 16 bytes for each piece put out. The temporary object is
// never visible under a name of its own (it is a part, PATH.columns.tmp-TOKEN), and goes with this.
class ColumnSpool {
 public:
  static constexpr uint64_t kMemoryBytes = uint64_t{64} << 20;

  ColumnSpool(Storage& storage, std::string_view path, const WriteOptions& options, size_t columns,
              uint64_t memory_bytes = kMemoryBytes);
  ~ColumnSpool();
  ColumnSpool(const ColumnSpool&) = delete;
  ColumnSpool& operator=(const ColumnSpool&) = delete;

  Status append(size_t column, Bytes data);
  uint64_t bytes(size_t column) const { return columns_[column].bytes; }
  // The column's bytes in order, in pieces of up to 4 MiB. It is empty afterwards.
  Status take(size_t column, const std::function<Status(Bytes)>& each);

 private:
  struct Piece {
    uint64_t offset, length;
  };
  struct Column {
    uint64_t bytes = 0;
    std::vector<Piece> pieces;      // put out, in order
    std::vector<std::byte> newest;  // behind them
  };
  Status put_out();

  Storage& storage_;
  const std::string path_;
  WriteOptions options_;
  const uint64_t memory_bytes_;
  std::vector<Column> columns_;
  uint64_t held_ = 0;  // in memory
  std::unique_ptr<Writer> writer_;
  uint64_t written_ = 0, size_ = 0;
};

}  // namespace packtrain
