// The kinds of sources that a scan understands. Each file *_source.cc adds the samples of one source to a
// catalog.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pack/catalog.h"
#include "pack/catalog_builder.h"
#include "pack/scan_progress.h"
#include "pack/walk.h"

namespace packtrain {

// What every source needs while a scan runs.
struct ScanContext {
  Storage& storage;
  const ScanOptions& options;
  CatalogBuilder& out;
  ScanProgress& progress;
};

// One source of the scan.
struct Source {
  std::string path;
  std::string split;  // as the user named it; "": not named
  std::string name;   // a word for it: the split's name, or what the path ends with
  std::string split_or_default() const { return split.empty() ? "train" : split; }
};

// Trees. `fill` completes a cell of the listed file whose position it gets: origin, source, size.
using FillCell = std::function<void(size_t file, Cell& cell)>;
// What the listed file, a .cls beside its sample, says: kNoLabel if that is no whole number, nothing if it
// was not read.
using LabelOf = std::function<std::optional<int64_t>(size_t file)>;
struct TreeOptions {
  // An archive of one folder (tar cf photos.tar photos) has that folder's content as its tree.
  bool enter_lone_folder = false;
};
// Adds the samples of a listing whose paths lie in the catalog's names. Empties the listing.
Status add_tree(ScanContext& context, const Source& source, Listing& listing, const TreeOptions& options,
                const FillCell& fill, const LabelOf& label_of);
// Lists a folder for add_walked_tree.
Result<Listing> walk_source(ScanContext& context, const Source& source);
Status add_walked_tree(ScanContext& context, const Source& source, Listing& listing);

// Lists of files with labels.
Status add_pickle_list(ScanContext& context, const Source& source);
Status add_table_list(ScanContext& context, const Source& source);  // csv, tsv; captions too
Status add_json_list(ScanContext& context, const Source& source);   // json; COCO captions too
Status add_json_lines_list(ScanContext& context, const Source& source);
Status add_token_list(ScanContext& context, const Source& source);  // Flickr's "NAME#0<tab>text"
bool looks_like_token_list(std::string_view head);

// Containers: archives of trees, shards, datasets.
Status add_container(ScanContext& context, const Source& source);  // a path or a pattern of several
// The samples of a dataset. `fill` completes a cell of the field that lies at `location`: origin, source,
// where.
using FillField =
    std::function<void(uint64_t sample, uint32_t field, const FieldLocation& location, Cell& cell)>;
Status add_samples_of(ScanContext& context, const Source& source, const Dataset& dataset,
                      const FillField& fill);
Status add_compressed_archive(ScanContext& context, const Source& source);
Status add_archive(ScanContext& context, const Source& source);  // zip or tar: a tree, or samples

}  // namespace packtrain
