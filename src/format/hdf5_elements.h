// Elements of fixed size that are read where they lie: which stretch, compressed block or fill value each
// part of a dataset is.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "format/hdf5_file.h"
#include "packtrain/codec.h"
#include "packtrain/index.h"
#include "packtrain/status.h"

namespace packtrain {

// One thread at a time. Memory: 24 bytes a chunk.
class Hdf5Elements {
 public:
  static Result<Hdf5Elements> find(Hdf5File& file, const Hdf5Object& dataset);

  uint64_t bytes() const { return bytes_; }
  // Bytes from `begin` on: a plain extent where they lie together as they are, slices of blocks otherwise.
  void add_field(IndexBuilder& out, uint32_t shard, std::string_view name, uint64_t begin, uint64_t length,
                 std::string_view path);
  // Fills `into` as far as the chunk goes that `begin` is in; how far that is.
  Result<size_t> read(const Hdf5File& file, uint64_t begin, MutableBytes into) const;

 private:
  static constexpr uint64_t kNoBlock = UINT64_MAX;
  enum class Kind : uint8_t { plain, coded, unwritten };
  struct Chunk {
    uint64_t offset = 0;  // in the file
    uint64_t block = kNoBlock;
    uint32_t stored = 0;    // of coded ones, which are smaller than 4 GiB
    uint16_t pipeline = 0;  // of coded ones: into pipelines_
    Kind kind = Kind::plain;
  };
  uint64_t block_of(Chunk& chunk, uint32_t shard, IndexBuilder& out);
  uint64_t unwritten_block(uint64_t length, uint32_t shard, IndexBuilder& out);
  Status take_chunk(const Hdf5File& file, const Hdf5Object& dataset, uint64_t address, uint64_t stored,
                    uint32_t skipped_filters);

  uint64_t bytes_ = 0, chunk_bytes_ = 1;
  std::vector<Chunk> chunks_;
  std::vector<std::pair<uint32_t, Pipeline>> pipelines_;  // by the filters that were left out
  Pipeline fill_;                                         // empty: zeros
  std::vector<std::pair<uint64_t, uint64_t>> unwritten_;  // length and block: few different ones
  std::vector<Slice> slices_;
};

}  // namespace packtrain
