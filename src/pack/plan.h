// Plan: what will stand where, fixed before a byte of payload is read. Order, shards, names and sizes are in
// it, so every offset of every shard follows, for any number of threads, tasks and restarts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pack/catalog.h"
#include "pack/image_conversion.h"
#include "packtrain/format.h"
#include "packtrain/pack.h"
#include "packtrain/status.h"

namespace packtrain {

// Bytes of a field that come out of a container: a slice of a block of a file. Unlike a Dataset it can be
// written down, so that a task which did not scan can still read it.
struct Piece {
  uint32_t file = 0;                       // into Plan::piece_files
  uint16_t pipeline = 0;                   // into Plan::pipelines
  CheckKind check_kind = CheckKind::none;  // of the whole decoded block
  bool hole = false;
  uint32_t check = 0;
  uint64_t offset = 0, stored = 0, raw = 0;
  uint64_t start = 0, length = 0;  // the slice of the decoded block
};

struct ShardPlan {
  std::string name;    // path in OUT
  uint32_t split = 0;  // of its first sample; only a container that keeps splits itself has more than one
  uint64_t first = 0, count = 0;  // a range of Plan::order
};

// A plain value; about 100 bytes a file for a tree of photographs.
struct Plan {
  // Cells of Origin::container have been turned into pieces: `where` is the first, `inner_field` their
  // number. Stems have become keys.
  Catalog catalog;
  std::vector<PieceFile> piece_files;
  std::vector<Pipeline> pipelines;
  std::vector<Piece> pieces;
  BigVector<uint32_t> order;  // samples of the catalog, shard by shard, split by split
  std::vector<ShardPlan> shards;
  std::string format;
  std::string compress;                    // "none" or a codec
  std::vector<std::string> compressed;     // the fields that it is for, sorted
  std::vector<FieldCompression> findings;  // why
  std::string identity;                    // JSON of every option that the output depends on
  std::string fingerprint;                 // of the catalog as it was scanned
  uint64_t renamed = 0;                    // keys that differ from their stem
  ImageConversion conversion;
  ConversionCost cost;  // of the conversion, measured when the plan was made

  // What the cell will take in the dataset: about, where it is converted.
  uint64_t expected_size(const Cell& cell) const;
  std::string_view key(uint64_t sample) const { return catalog.name(catalog.samples[sample].stem); }
};

// The options that the output's bytes depend on, as one line of JSON: equal lines, equal bytes.
Result<std::string> plan_identity(Storage& storage, const PackOptions& options);
// Orders and cuts what a scan found.
Result<Plan> make_plan(Storage& storage, Catalog catalog, const PackOptions& options);

// The plan as a file that other tasks and later runs load; checked on the way in.
std::string encode_plan(const Plan& plan);
// The same bytes straight to a file, a column at a time.
Status write_plan(Storage& storage, const std::string& path, const Plan& plan, const WriteOptions& options);
Result<Plan> decode_plan(Bytes bytes);

}  // namespace packtrain
