// Catalog: what a scan found: every sample to come, where its bytes are now, and nothing of the bytes
// themselves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "packtrain/index.h"
#include "packtrain/progress.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

enum class Origin : uint8_t {
  file,       // a loose file: roots[source].folder + "/" + path, or path itself if it is absolute
  text,       // bytes that the scan made (a label, captions): in Catalog::texts at `where`
  container,  // a field of an open dataset: containers[source], sample `where`, field `inner_field`
  stream,     // the member with running number `where` of the compressed archive streams[source]
};

// A string in Catalog::names: 12 bytes, whatever its length. Packed, since there are millions of them.
struct [[gnu::packed, gnu::aligned(4)]] NameRef {
  uint64_t at = 0;
  uint32_t bytes = 0;
};

// One field of one sample to come: 48 bytes, and its path.
struct Cell {
  uint64_t where = 0;
  uint64_t size = 0;
  int64_t mtime_ns = 0;  // of a file when it was scanned; 0 elsewhere
  NameRef path;          // where it is now, relative to its root; empty for text
  uint32_t source = 0;
  uint32_t inner_field = 0;
  uint16_t field = 0;  // into Catalog::fields
  Origin origin = Origin::file;
  bool converted = false;  // an image that is not packed as it is; `size` is the source's
};

struct CatalogSample {
  uint64_t first_cell = 0;  // its cells end where the next sample's begin; sorted by field name
  int64_t label = kNoLabel;
  NameRef stem;        // what the key is made from: the relative path without the extension
  uint32_t split = 0;  // into Catalog::splits
};
static_assert(sizeof(Cell) == 48 && sizeof(CatalogSample) == 32, "a set has millions of them");

struct CatalogRoot {
  std::string folder;  // as given by the user
  std::string prefix;  // what stands in front of a path in the dataset's own names: "" or a split's name
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
  std::vector<std::string> streams;    // paths of tar.gz, tar.zst
  std::vector<CatalogSample> samples;  // in source order: by path for trees, as listed for lists
  std::vector<Cell> cells;
  std::string names;   // every path and stem
  std::string texts;   // bytes of Origin::text
  uint64_t files = 0;  // inodes the source takes: files and folders
  uint64_t bytes = 0;  // of all cells
  Skipped skipped;
  std::vector<std::string> missing;  // what a list names as a file and no file is, up to 1000
  uint64_t missing_count = 0;
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
};

struct SourceSpec {
  std::string split;  // "" where the user gave none
  std::string path;
};

struct ScanOptions {
  std::vector<SourceSpec> sources;
  std::string root;  // what paths in lists are relative to; "": the list's folder
  std::string classes_file;
  std::string path_column, label_column;  // of csv, tsv, json lists; "": guessed from common names
  bool cls_field =
      true;  // add a "cls" field with the label in digits where a sample has a label and no such field
  uint32_t stats_in_flight = 32;
  bool skip_missing =
      false;  // lists: leave out what is not there (counted); otherwise it is in `missing` and pack fails
  Progress progress;
};

// Looks at every source once. Deterministic: equal sources give equal catalogs.
Result<Catalog> scan(Storage& storage, const ScanOptions& options);

// The key of every sample, unique in the whole catalog and fit for every reader of tar shards:
// [A-Za-z0-9_/-] only, so short that key + "." + field fits into 100 bytes. Deterministic. A key that is not
// its sample's stem is added to the catalog's names.
std::vector<NameRef> make_keys(Catalog& catalog);
// The name a field's bytes get in the dataset's own record of names: safe to extract, relative, without "..";
// of a converted image with the extension of what it became.
std::string recorded_path(const Catalog& catalog, const Cell& cell);

}  // namespace packtrain
