// From record batches to samples: what stands between the metadata of a batch and the index.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "format/arrow_records.h"
#include "format/table_columns.h"
#include "packtrain/format.h"
#include "packtrain/index.h"

namespace packtrain {

// A record batch as it was found: its metadata, with what else that read has brought.
struct ArrowPlace {
  uint64_t offset = 0;  // of the message
  uint64_t body_offset = 0, body_bytes = 0;
  FlatTable header;            // in `held`
  Bytes held;                  // bytes of the file, from held_offset on
  std::vector<std::byte> own;  // where they are, unless somebody else keeps them
  uint64_t held_offset = 0;
};

// Adds the rows of batches as samples, in order. Reads what places values (validity, offsets), labels and
// keys, and no values but the first bytes of one for each column that is named by its content. One thread at
// a time. Memory: some tens of megabytes, or what one batch needs.
class ArrowSamples {
 public:
  // `schema` must stay alive. Sets the dataset's classes if the schema has them.
  ArrowSamples(Storage& storage, const File& file, const ArrowSchema& schema, const IndexOptions& options,
               uint32_t shard, IndexBuilder& out);
  // Batches that follow those of the last call.
  Status add(std::span<const ArrowPlace> places);
  Status finish() const;  // after the last
  // Damage to part of the file: noted if the walk may go on behind it, and handed back otherwise.
  Status pass_over(uint64_t offset, uint64_t bytes, const Status& damage) const;

 private:
  // A leaf of the schema, and what is wanted of it besides its validity.
  struct Used {
    ArrowLeaf leaf;
    bool bring = false;  // the values themselves
    bool place = false;  // where they lie
  };
  // The same of one batch.
  struct LeafData {
    Bytes validity;  // empty: all are valid
    Bytes offsets, values;
    uint64_t at = 0, stored = 0, bytes = 0;  // of the values: in the file, there, and decoded
    bool compressed = false;
    uint64_t block = UINT64_MAX;  // of the index
  };
  enum class Part : uint8_t { validity, offsets, values, length };
  // A stretch of a buffer to be brought.
  struct Need {
    size_t batch = 0, leaf = 0;
    Part part = Part::validity;
    uint64_t offset = 0, bytes = 0;
    Bytes got;
  };
  struct Batch {
    const ArrowPlace* place = nullptr;
    ArrowBatch meta;
    Status damage;
  };
  struct Field {
    size_t value = 0, parent = SIZE_MAX, path = SIZE_MAX;  // into used_
    uint64_t present = 0;
  };
  struct Value {
    uint64_t start = 0, bytes = 0;  // among the values
  };

  size_t use(const ArrowLeaf& leaf, bool bring, bool place);
  Status no_arrow_fields() const;
  Status plan(size_t batch);
  Status plan_leaf(size_t batch, size_t leaf);
  void need(size_t batch, size_t leaf, Part part, ArrowBuffer buffer, uint64_t bytes);
  Status load(std::span<const ArrowPlace> places);
  Status take(const Need& need);
  Result<Bytes> decoded(Bytes stored, ArrowCodec codec);
  Status check(size_t batch) const;
  Status check_leaf(const Batch& batch, const Used& used, const LeafData& data) const;
  Status settle_names();
  Result<std::vector<std::byte>> first_bytes(const Batch& batch, const LeafData& data, Value value) const;
  Status emit(size_t batch);
  void add_field(size_t batch, size_t field, uint64_t row);

  const LeafData& data(size_t batch, size_t leaf) const { return data_[batch * used_.size() + leaf]; }
  LeafData& data(size_t batch, size_t leaf) { return data_[batch * used_.size() + leaf]; }
  Value value(const LeafData& data, const ArrowLeaf& leaf, uint64_t row) const;
  bool present(size_t batch, const Field& field, uint64_t row) const;
  Result<int64_t> label(size_t batch, uint64_t row) const;

  Storage& storage_;
  const File& file_;
  const ArrowSchema& schema_;
  const IndexOptions& options_;
  const uint32_t shard_;
  IndexBuilder& out_;
  std::vector<TableColumn> columns_;
  TableRoles roles_;
  TableFieldNames names_;
  std::vector<Used> used_;
  std::vector<Field> fields_;                                         // as roles_.fields
  size_t label_ = SIZE_MAX, key_ = SIZE_MAX, label_text_ = SIZE_MAX;  // into used_
  uint64_t rows_ = 0;                                                 // so far

  // Of the batches that are being added together:
  std::vector<Batch> batches_;
  std::vector<LeafData> data_;
  std::vector<Need> needs_;
  std::vector<std::byte> arena_;
  std::deque<std::vector<std::byte>> decoded_;
  std::string key_text_, path_text_;
};

}  // namespace packtrain
