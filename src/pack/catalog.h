// Catalog: what a scan found: every sample to come, where its bytes are now, and nothing of the bytes
// themselves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/big_vector.h"
#include "packtrain/index.h"
#include "packtrain/pack.h"
#include "packtrain/progress.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

enum class Origin : uint8_t {
  file,       // a loose file: roots[source].folder + "/" + path, or path itself if it is absolute
  text,       // bytes that the scan made (a label, captions): in Catalog::texts at `where`
  container,  // a field of an open dataset: containers[source], sample `where`, field `inner_field`
  stream,     // the member with running number `where` of the compressed archive streams[source]
  label,      // the digits of the label `where`: made when it is asked for, never among Catalog::cells
};

// A string in Catalog::names: 12 bytes, whatever its length. Packed, since there are millions of them.
struct [[gnu::packed, gnu::aligned(4)]] NameRef {
  uint64_t at = 0;
  uint32_t bytes = 0;
};

// One field of one sample to come: 40 bytes, and its path.
struct Cell {
  uint64_t where = 0;  // by origin; of a file its date when it was scanned
  uint64_t size = 0;
  NameRef path;  // where it is now, relative to its root; empty for text
  uint32_t source = 0;
  uint32_t inner_field = 0;
  uint16_t field = 0;  // into Catalog::fields
  Origin origin = Origin::file;
  bool converted = false;  // an image that is not packed as it is; `size` is the source's

  int64_t mtime_ns() const { return origin == Origin::file ? static_cast<int64_t>(where) : 0; }
  void set_mtime_ns(int64_t time) { where = static_cast<uint64_t>(time); }
};

struct CatalogSample {
  uint64_t first_cell = 0;  // its cells end where the next sample's begin; sorted by field name
  int64_t label = kNoLabel;
  NameRef stem;  // what the key is made from, the relative path without the extension; of a plan the key
  uint32_t split : 31 = 0;          // into Catalog::splits
  uint32_t label_is_field : 1 = 0;  // it has a field "cls", the label in digits, and no Cell for that
};
static_assert(sizeof(Cell) == 40 && sizeof(CatalogSample) == 32, "a set has millions of them");

inline constexpr std::string_view kLabelField = "cls";
// The number of a cell that is not among Catalog::cells: the label's.
inline constexpr uint64_t kLabelCell = UINT64_MAX;
// A label in digits.
std::string label_text(int64_t label);

struct CatalogRoot {
  std::string folder;  // as given by the user
  std::string prefix;  // what stands in front of a path in the dataset's own names: "" or a split's name
};

// A file that holds many fields, and what it is known by.
struct PieceFile {
  std::string path;
  uint64_t bytes = 0;
  int64_t mtime_ns = 0;
};

struct Skipped {  // what was left out, and why; counted in full, named up to a limit
  uint64_t hidden = 0, temporary = 0, special = 0, broken_links = 0, loops = 0, empty_folders = 0;
  std::vector<std::string> examples;
};

struct Catalog {
  std::vector<std::string> fields;           // names of fields in the order of first use
  std::map<std::string, ArrayValue> arrays;  // fields whose values are all arrays of one type and shape
  std::vector<std::string> splits;
  std::vector<std::string> classes;
  std::vector<CatalogRoot> roots;
  std::vector<std::shared_ptr<Dataset>> containers;
  std::vector<PieceFile> streams;    // tar.gz, tar.zst
  BigVector<CatalogSample> samples;  // in source order: by path for trees, as listed for lists
  BigVector<Cell> cells;
  uint16_t label_field = 0;  // into `fields`, where any sample's label is a field
  BigString names;           // every path and stem
  std::string texts;         // bytes of Origin::text
  uint64_t files = 0;        // inodes the source takes: files and folders
  uint64_t bytes = 0;        // of all cells
  Skipped skipped;
  // Samples that were taken out, counted in full and named up to a limit, one file each: those whose files a
  // list names and that are not there; and those that vanished or could not be looked at during the scan. A
  // folder that cannot be listed counts as one of the latter.
  std::vector<std::string> missing;
  uint64_t missing_count = 0;
  std::vector<BadSample> unreadable;
  uint64_t unreadable_count = 0;
  std::vector<std::string> warnings;  // what the user should know, a sentence each
  // What stands in front of the paths of containers[i] and streams[i], as CatalogRoot::prefix does for files.
  std::vector<std::string> container_prefixes, stream_prefixes;

  std::string_view name(NameRef ref) const { return std::string_view(names).substr(ref.at, ref.bytes); }
  NameRef keep(std::string_view text) {
    NameRef ref{names.size(), static_cast<uint32_t>(text.size())};
    names.append(text);
    return ref;
  }
  uint64_t end_cell(size_t sample) const {
    return sample + 1 < samples.size() ? samples[sample + 1].first_cell : cells.size();
  }
  // A cell by its number and its sample.
  Cell cell(uint64_t number, uint64_t sample) const {
    return number == kLabelCell ? label_cell(sample) : cells[number];
  }
  Cell label_cell(uint64_t sample) const;
  // How many fields all samples have.
  uint64_t count_fields() const;
};

// All cells of a sample in the order of their fields' names, its label's among them where that is a field.
// For range-based for. The catalog must stay as it is meanwhile.
class SampleCells {
 public:
  class Iterator {
   public:
    Iterator(const SampleCells& of, uint64_t place) : of_(of), place_(place) {}
    const Cell& operator*() const {
      const uint64_t at = number();
      return at == kLabelCell ? of_.label_ : of_.catalog_.cells[at];
    }
    const Cell* operator->() const { return &**this; }
    Iterator& operator++() {
      ++place_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return place_ != other.place_; }
    // Of the cell, for Catalog::cell.
    uint64_t number() const {
      return place_ == of_.label_place_ ? kLabelCell : of_.first_ + place_ - (place_ > of_.label_place_);
    }

   private:
    const SampleCells& of_;
    uint64_t place_;
  };

  SampleCells(const Catalog& catalog, uint64_t sample);
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, count_}; }
  uint64_t size() const { return count_; }

 private:
  const Catalog& catalog_;
  uint64_t first_, count_;
  uint64_t label_place_ = UINT64_MAX;
  Cell label_;
};

struct SourceSpec {
  std::string split;  // "" where the user gave none
  std::string path;
};

struct ScanOptions {
  std::vector<SourceSpec> sources;
  std::string root;  // what paths in lists are relative to; "": the list's folder
  std::string classes_file;
  // Of csv, tsv, json lists; "": guessed from common names.
  std::string path_column, label_column, split_column;
  bool cls_field =
      true;  // add a "cls" field with the label in digits where a sample has a label and no such field
  uint32_t stats_in_flight = 32;
  bool skip_missing =
      false;  // lists: leave out what is not there (counted); otherwise it is in `missing` and pack fails
  Progress progress;
};

// Looks at every source once. Deterministic: equal sources give equal catalogs.
Result<Catalog> scan(Storage& storage, const ScanOptions& options);

// Makes of every sample's stem its key, unique in the whole catalog and fit for every reader of tar shards:
// [A-Za-z0-9_/-] only, so short that key + "." + field fits into 100 bytes. Deterministic. A key that is not
// its sample's stem is added to the catalog's names. Gives the number of those.
uint64_t make_keys(Catalog& catalog);
// The name a field's bytes get in the dataset's own record of names: safe to extract, relative, without "..";
// of a converted image with the extension of what it became.
std::string recorded_path(const Catalog& catalog, const Cell& cell);

}  // namespace packtrain
