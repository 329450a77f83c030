// Index: every sample of a dataset and where its fields lie. Dataset: an index with the files behind
// it, readable by sample. The bytes on disk are specified in docs/index-format.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "packtrain/codec.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

inline constexpr int64_t kNoLabel = std::numeric_limits<int64_t>::min();
inline constexpr uint64_t kBlockBytes = uint64_t{4}
                                        << 20;  // every shard has a check for each block of this size

// What a stored check is. The numbers live on disk: do not change.
enum class CheckKind : uint8_t { none = 0, crc32 = 1, crc32c = 2 };
std::string_view check_kind_name(CheckKind kind);
// Whether the bytes have the recorded check; true where there is none.
bool matches(CheckKind kind, uint32_t check, Bytes data);
// Decodes a block and compares its check, of the bytes that are stored or of those they decode to, as the
// pipeline says. A difference is Code::corrupt, in few words.
Status decode_checked(const Pipeline& pipeline, CheckKind kind, uint32_t check, Bytes stored,
                      MutableBytes raw);

// What the bytes of a field are, where every value of it is an array without a header: numbers in C order,
// little-endian.
struct ArrayValue {
  std::string type;             // NumPy's word, such as "<f4"
  std::vector<uint64_t> shape;  // of one value
  bool operator==(const ArrayValue&) const = default;
  uint64_t bytes() const;  // of one value; 0 if there is no such number
};

struct FieldSpec {
  std::string name;                   // "jpg", "cls", "seg.png"
  CheckKind check = CheckKind::none;  // of hot rows; a general index has a kind per block
  std::optional<ArrayValue> array = {};
};

struct SplitSpec {
  std::string name;
  uint64_t first = 0, count = 0;  // a contiguous range of samples
};

struct ShardSpec {
  std::string path;    // relative to the dataset's folder, or absolute
  std::string format;  // name in the table of formats
  uint64_t bytes = 0, samples = 0;
  int64_t mtime_ns = 0;  // 0 where packtrain wrote it: its hash says more
  std::string hash;      // xxh3-128 over its block checks, 32 hex digits; empty: no block checks
};

// A file beside the containers whose content is in the index: the labels of a .npy file. Where none was
// found, it is recorded that there was none.
struct BesideSpec {
  std::string path;  // relative to the dataset's folder, or absolute
  bool absent = false;
  uint64_t bytes = 0;
  int64_t mtime_ns = 0;
};

struct FileSpec {  // another file of the folder
  std::string path;
  uint64_t bytes = 0;
  std::string hash;  // xxh3-128 of its bytes, 32 hex digits
};

// manifest.json. A plain value.
struct Manifest {
  uint32_t version = 1;       // major version: an unknown one is refused
  std::string form = "rows";  // "rows" (hot) or "general"
  uint64_t samples = 0;
  std::vector<SplitSpec> splits;
  std::vector<FieldSpec> fields;
  std::vector<std::string> classes;  // label i is classes[i]; empty: labels are plain numbers or absent
  std::vector<Pipeline> pipelines;   // [0] is always the empty one
  std::vector<ShardSpec> shards;
  std::vector<BesideSpec> beside;
  std::vector<FileSpec> files;       // index.npz, names.npz, sidecars
  std::string index_directory_hash;  // xxh3-64 of index.npz's zip directory, 16 hex digits: binds every
                                     // column's CRC-32
  std::string names_directory_hash;  // the same of names.npz; empty in older datasets: not compared
  std::string source_json;  // a JSON object: how it came to be (options, skipped samples); may be empty
  std::string id;           // hash of the manifest's bytes, 32 hex digits; set by encode and decode

  std::string encode();                                    // sets id
  static Result<Manifest> decode(std::string_view bytes);  // checks the hash at its end first
  uint32_t field_id(std::string_view name) const;          // UINT32_MAX if absent
};

// A stretch of a shard, compressed or not. The general form's unit.
struct Block {
  uint32_t shard = 0;
  uint16_t pipeline = 0;                   // into Manifest::pipelines
  CheckKind check_kind = CheckKind::none;  // of the decoded bytes
  bool hole = false;                       // nothing stored: all zero
  uint64_t offset = 0, stored = 0, raw = 0;
  uint32_t check = 0;
};

// A slice of a decoded block. A field is one slice or several, in order.
struct Slice {
  uint64_t block = 0;  // id from add_block
  uint64_t start = 0, length = 0;
};

// Columns by name, in memory or mapped. Immutable once built.
class Columns;

// Collects samples in their final order and makes an index of them: hot rows where every sample is
// one uncompressed stretch of one shard, the general form otherwise. One thread at a time.
class IndexBuilder {
 public:
  IndexBuilder();
  ~IndexBuilder();
  IndexBuilder(IndexBuilder&&) noexcept;
  IndexBuilder& operator=(IndexBuilder&&) noexcept;

  // What is to come, if it is known: spares the copies of growing, and the memory for them.
  void reserve(uint64_t samples, uint64_t fields, uint64_t key_bytes, uint64_t path_bytes);
  uint32_t add_shard(ShardSpec shard);              // its samples follow; `samples` is counted here
  uint16_t add_pipeline(const Pipeline& pipeline);  // the same one gives the same number
  uint64_t add_block(const Block& block);
  void begin_split(std::string_view name);  // samples that follow belong to it; optional
  void begin_container();                   // samples that follow belong to no split that was begun before
  std::vector<std::string> splits() const;  // in their order; one that comes twice makes no sound index

  void begin_sample(std::string_view key);
  // `path`: the name the bytes had where they came from; empty for a field that packtrain made.
  void add_field(std::string_view name, uint32_t shard, uint64_t offset, uint64_t length, CheckKind kind,
                 uint32_t check, std::string_view path);
  void add_field(std::string_view name, std::span<const Slice> slices, std::string_view path);
  void set_label(int64_t label);  // of the sample begun last
  void set_image_size(uint32_t width, uint32_t height);
  Status end_sample();  // a field named twice is Code::corrupt

  void set_classes(std::vector<std::string> classes);
  const std::vector<std::string>& classes() const;  // as they were set last
  // Of all samples so far, kNoLabel where there is none: whoever joins containers may number them anew.
  std::span<int64_t> labels();
  // What the values of a field are, said by every container that has it. Where two say different things, or a
  // value has another length, it is not known.
  void set_array(std::string_view field, const ArrayValue& array);
  void add_beside(BesideSpec file);
  // The checks of a shard's 4 MiB blocks, in order; sets the shard's hash.
  void set_block_checks(uint32_t shard, std::vector<uint32_t> checks);
  uint64_t samples() const;
  // How many folders the keys lie in, where no sample has a label; else 0.
  uint64_t unlabelled_folders() const;
  bool has_field(std::string_view name) const;  // in the sample begun last

  struct Finished {
    Manifest manifest;                 // without `files`
    std::string index_npz, names_npz;  // the bytes of the two files
  };
  // Leaves the builder empty. `side_by_side`: a second thread makes the names meanwhile, which takes some 60
  // bytes a sample more at a time.
  Finished finish(bool side_by_side = true);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// One field of one sample, as the index has it.
struct FieldLocation {
  bool present = false;
  uint64_t length = 0;
  // Set if the bytes lie uncompressed in one piece:
  bool plain = false;
  uint32_t shard = 0;
  uint64_t offset = 0;
  CheckKind check_kind = CheckKind::none;
  uint32_t check = 0;
};

// The bytes of one sample. Reused between reads, it allocates only when it grows.
struct SampleBytes {
  struct Field {
    uint32_t field;  // into Manifest::fields
    Bytes bytes;     // into `buffer`
  };
  std::vector<Field> fields;  // those present, in the manifest's order
  std::vector<std::byte> buffer;
};

// Whether a folder holds a dataset of packtrain's, be it a damaged one, and not merely files of those names.
bool holds_dataset(Storage& storage, std::string_view folder);

// Files of a dataset's index whose columns carry checks, in whole or in part.
enum class IndexPart : uint8_t { labels, index, names };
// Larger parts are compared by those only who read all of them anyway: verify, pack, extract.
inline constexpr uint64_t kQuickToCompare = uint64_t{1} << 30;

// An open dataset. Thread-safe; safe after fork(). Opening costs the same for any number of samples;
// shards are opened when first read, and their size (and time, where recorded) compared then.
class Dataset {
 public:
  // `folder` holds manifest.json. To open containers without one, see open_dataset in format.h.
  static Result<std::shared_ptr<Dataset>> open(Storage& storage, std::string_view folder);
  // From a builder's result, nothing on disk; relative shard paths are below `folder`.
  static Result<std::shared_ptr<Dataset>> from_memory(Storage& storage, std::string_view folder,
                                                      IndexBuilder::Finished finished);
  virtual ~Dataset() = default;

  virtual const Manifest& manifest() const = 0;
  virtual const std::string& folder() const = 0;
  virtual Storage& storage() const = 0;
  uint64_t samples() const { return manifest().samples; }

  virtual int64_t label(uint64_t sample) const = 0;
  virtual std::span<const int64_t> labels() const = 0;
  virtual FieldLocation locate(uint64_t sample, uint32_t field) const = 0;
  // Stretches of the shard that make up a field, for readers that plan their own reads.
  virtual Status slices(uint64_t sample, uint32_t field, std::vector<std::pair<Block, Slice>>& out) const = 0;
  virtual uint32_t shard_of(uint64_t sample) const = 0;                         // of its first byte
  virtual std::span<const uint32_t> block_checks(uint32_t shard) const = 0;     // empty: none recorded
  virtual std::pair<uint32_t, uint32_t> image_size(uint64_t sample) const = 0;  // 0, 0: not recorded

  // From names.npz, opened at the first call.
  virtual Result<std::string_view> key(uint64_t sample) const = 0;  // lives as long as the dataset
  virtual Result<std::string_view> path(uint64_t sample, uint32_t field) const = 0;
  virtual Result<uint64_t> find(std::string_view key) const = 0;  // not_found if there is none

  // `check`: compare the recorded checks where there are any; a difference is Code::corrupt.
  virtual Status read(uint64_t sample, uint32_t field, std::vector<std::byte>& out,
                      bool check = true) const = 0;
  virtual Status read(uint64_t sample, SampleBytes& out,
                      bool check = true) const = 0;  // one read where rows are hot
  // Many samples, many reads in flight; `each` gets them in the order of `samples`, with the position in it.
  // A failure is given to `each` in place of the bytes; returning false stops.
  virtual Status read_many(
      std::span<const uint64_t> samples, bool check,
      const std::function<bool(size_t position, const Status&, const SampleBytes&)>& each) const = 0;

  // Compares columns with the CRC-32 that the index has of each; a difference is Code::corrupt. What fields
  // lead to has checks of its own, labels and names have none but these: whoever hands on all of them asks
  // first. Reads the part once, and only once; not at all where it has more than `most_bytes`.
  virtual Status sound(IndexPart part, uint64_t most_bytes = UINT64_MAX) const = 0;

  // Whether the shards that a sample lies in still are what was indexed, where no recorded check of theirs
  // would tell. To be asked once their bytes were read, before they are believed: a foreign container may be
  // written over in place. A look that is not older than this does; what read() gives was looked at within a
  // second.
  virtual Status unchanged(uint64_t sample, std::chrono::nanoseconds age = {}) const = 0;

  // The bytes of a field that locate() calls plain, without comparing its check; looked at as read() does. A
  // failure is told in fewer words than read() has.
  virtual Status read_plain(const FieldLocation& location, MutableBytes into) const = 0;
  // That read_plain() takes some microseconds at most: a short copy of what is mapped and was copied before.
  virtual bool is_at_hand(const FieldLocation& location) const = 0;

  // The shard's absolute path, and the shard open for reading.
  virtual std::string shard_path(uint32_t shard) const = 0;
  virtual Result<const File*> shard_file(uint32_t shard) const = 0;
  // From now on a shard that was cut short is read as far as it goes, if checks tell what is still right.
  // Before the first read.
  virtual void salvage() = 0;
};

// One field to bring into memory that the caller owns, and its own outcome.
struct FieldRead {
  uint64_t sample = 0;
  uint32_t field = 0;
  MutableBytes into;  // of the length that locate() gives
  Status status;
};
// Many fields, many reads in flight. Fields of one sample that stand together in `wanted` and lie together in
// the shard come by one read; a field that comes alone is read straight into its memory. Thread-safe.
void read_fields(const Dataset& dataset, std::span<FieldRead> wanted, bool check = true);
// One field, whose location the caller has: without another look at the index, or an allocation.
Status read_field(const Dataset& dataset, uint64_t sample, uint32_t field, const FieldLocation& location,
                  MutableBytes into, bool check = true);

}  // namespace packtrain
