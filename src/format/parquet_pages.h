// Where the values of one column chunk lie: its pages, walked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/parquet_records.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// The values of a column in one row group.
struct ParquetValues {
  struct Value {
    uint64_t offset = 0;  // in the file
    uint32_t bytes = 0;
    bool present = false;
  };
  std::vector<Value> rows;
  std::string brought;           // the bytes of all values, if they were asked for
  std::vector<uint64_t> starts;  // of each row's in `brought`
};

enum class Bring : uint8_t { nothing, short_values, all };

// Walks the pages of chunks of one file. Reads heads, levels and lengths, and of values what is to be
// brought. One thread at a time. Memory: some megabytes, and what it returns.
class ParquetPages {
 public:
  // `end`: where the footer begins.
  ParquetPages(Storage& storage, const File& file, uint64_t end)
      : storage_(storage), file_(file), end_(end) {}

  // What is not plain and uncompressed is Code::unsupported. `shortest`: values up to so many bytes are
  // short.
  Status read(const ParquetLeaf& leaf, const ParquetChunk& chunk, uint64_t rows, Bring bring,
              uint64_t shortest, ParquetValues& out);

 private:
  struct Walk;

  Storage& storage_;
  const File& file_;
  const uint64_t end_;
};

}  // namespace packtrain
