// Where the values of one column chunk lie: its pages, walked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/parquet_records.h"
#include "packtrain/codec.h"
#include "packtrain/format.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// A stretch of the file that decodes to values: a compressed page, or its part that is.
struct ParquetBlock {
  Pipeline pipeline;
  uint64_t offset = 0, stored = 0, raw = 0;
  std::optional<uint32_t> crc = {};  // CRC-32 of what is stored, as the pipeline says too
};

// The values of a column in one row group.
struct ParquetValues {
  static constexpr uint32_t kPlain = UINT32_MAX;
  struct Value {
    uint64_t offset = 0;  // in the file, or in the decoded block
    uint32_t bytes = 0;
    uint32_t block = kPlain;  // into `blocks`
    bool present = false;
  };
  std::vector<Value> rows;
  std::vector<ParquetBlock> blocks;
  std::string brought;           // the bytes of all values, if they were asked for
  std::vector<uint64_t> starts;  // of each row's in `brought`
};

enum class Bring : uint8_t { nothing, short_values, all };

// Walks the pages of chunks of one file. Of plain pages that are not compressed it reads heads, levels and
// lengths, and of values what is to be brought; of others, which do not show their lengths, everything. The
// CRC-32 of a page, where it has one, is compared if nobody will read it again: if it brings values, or holds
// numbers into a dictionary. One thread at a time. Memory: some megabytes, the largest page that is read
// whole, and what it returns.
class ParquetPages {
 public:
  // `end`: where the footer begins.
  ParquetPages(Storage& storage, const File& file, uint64_t end)
      : storage_(storage), file_(file), end_(end) {}

  // What is neither plain nor by a dictionary, or compressed by an unknown codec, is Code::unsupported.
  // `shortest`: values up to so many bytes are short.
  Status read(const ParquetLeaf& leaf, const ParquetChunk& chunk, uint64_t rows, Bring bring,
              uint64_t shortest, ParquetValues& out);

  // Adds the checks of the chunk's pages, of which either all have one or none.
  Status own_checks(const ParquetChunk& chunk, std::string_view column, std::vector<CheckedStretch>& out);

 private:
  struct Walk;
  // Where the pages of a chunk begin and end.
  Result<std::pair<uint64_t, uint64_t>> place(const ParquetChunk& chunk) const;

  Storage& storage_;
  const File& file_;
  const uint64_t end_;
};

}  // namespace packtrain
