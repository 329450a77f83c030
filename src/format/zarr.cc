// Zarr, versions 2 and 3, in a folder or a zip: the indexer. The arrays of the root group are columns, as
// array_table.h says; groups below it named after splits hold a table each. A hierarchy that is one array is
// a table of one column.
#include <algorithm>

#include "base/json.h"
#include "base/words.h"
#include "format/array_groups.h"
#include "format/array_table.h"
#include "format/table.h"
#include "format/zarr_chunks.h"
#include "format/zarr_metadata.h"
#include "format/zarr_store.h"
#include "format/zarr_write.h"
#include "format/zip_directory.h"

namespace packtrain {
namespace {

constexpr std::string_view kBareArrayField = "data";  // the column of a hierarchy that is one array
constexpr size_t kMostArrays = 1024;
constexpr std::string_view kV2Array = "/.zarray";

std::string joined(std::string path, std::string_view name) { return path.append("/").append(name); }

// A node of the hierarchy and what its metadata say.
struct Node {
  std::string folder;  // "" is the root
  Json metadata;
};

class ZarrIndexer {
 public:
  ZarrIndexer(Storage& storage, ZarrStore& store) : storage_(storage), store_(store) {}

  Status run(ArrayTable& table) {
    PACKTRAIN_TRY(find_arrays());
    if (arrays_.size() > kMostArrays)
      return Status(Code::unsupported,
                    "has " + count_in_words(arrays_.size()) + " arrays; 256 can be fields");
    for (const Node& node : arrays_) {
      const std::string where = node.folder.empty() ? "the root" : node.folder;
      auto array = version_ == 3 ? parse_zarr_v3(node.metadata) : parse_zarr_v2(node.metadata);
      if (!array.ok()) return array.status().at(printable(where));
      std::string name = node.folder.empty() ? std::string(kBareArrayField) : node.folder;
      std::replace(name.begin(), name.end(), '/', '_');
      PACKTRAIN_ASSIGN(column, zarr_column(storage_, store_, node.folder, std::move(name), *array));
      if (const size_t slash = node.folder.find('/'); slash != std::string::npos)
        column.split = node.folder.substr(0, slash);
      table.arrays.push_back(std::move(column));
    }
    table.files = store_.files;
    table.own_names = own_names_;
    return {};
  }

  // A group below the root that holds an array; empty if there is none, as far as it is looked for.
  Result<std::string> find_deeper(const std::string& group = {}, int depth = 0) {
    constexpr int kDeepest = 16;
    const std::string leaf = version_ == 3 ? "zarr.json" : std::string(kV2Array.substr(1));
    PACKTRAIN_ASSIGN(names, store_.folders(group));
    for (const std::string& name : names) {
      if (++looked_at_ > kMostArrays) break;
      const std::string folder = group.empty() ? name : joined(group, name);
      PACKTRAIN_ASSIGN(metadata, read_json(joined(folder, leaf)));
      if (is_array(metadata)) return group;
      if (depth == kDeepest) continue;
      PACKTRAIN_ASSIGN(deeper, find_deeper(folder, depth + 1));
      if (!deeper.empty()) return deeper;
    }
    return std::string();
  }

 private:
  // Null if there is no such object.
  Result<Json> read_json(const std::string& key) {
    PACKTRAIN_ASSIGN(text, read_zarr_object(storage_, store_, key));
    if (!text) return Json();
    auto json = Json::parse(*text);
    if (!json.ok()) return json.status().at(printable(key));
    if (!json->is_object()) return Status(Code::corrupt, "is no JSON object").at(printable(key));
    return json;
  }

  Status find_arrays() {
    PACKTRAIN_ASSIGN(root, read_json("zarr.json"));
    if (!root.is_null()) {
      version_ = 3;
      if (root["zarr_format"].as_int() != 3)
        return Status(Code::unsupported, "has a zarr.json of an unknown version");
      own_names_ = root["attributes"].has(kZarrMark);
      if (root["node_type"].as_string() == "array") return add("", std::move(root));
      const Json& known = root["consolidated_metadata"]["metadata"];
      if (known.is_object() && !known.members().empty()) {
        for (const auto& [folder, metadata] : known.members()) {
          if (metadata["node_type"].as_string() == "array" && is_of_the_table(folder))
            PACKTRAIN_TRY(add(folder, metadata));
        }
        return {};
      }
      return search("zarr.json");
    }
    version_ = 2;
    PACKTRAIN_ASSIGN(known, read_json(".zmetadata"));
    for (const auto& [key, metadata] : known["metadata"].members()) {
      if (key == kV2Array.substr(1)) PACKTRAIN_TRY(add("", metadata));
      if (!key.ends_with(kV2Array)) continue;
      const std::string folder = key.substr(0, key.size() - kV2Array.size());
      if (is_of_the_table(folder)) PACKTRAIN_TRY(add(folder, metadata));
    }
    if (!known.is_null()) return {};
    PACKTRAIN_ASSIGN(bare, read_json(".zarray"));
    if (!bare.is_null()) return add("", std::move(bare));
    return search(".zarray");
  }

  // The root's arrays, and those of groups that are splits.
  Status search(const std::string& leaf) {
    PACKTRAIN_ASSIGN(names, store_.folders(""));
    for (const std::string& name : names) {
      PACKTRAIN_ASSIGN(metadata, read_json(joined(name, leaf)));
      if (is_array(metadata)) {
        PACKTRAIN_TRY(add(name, std::move(metadata)));
        continue;
      }
      if (!is_split_name(name)) continue;
      PACKTRAIN_ASSIGN(inner, store_.folders(name));
      for (const std::string& below : inner) {
        const std::string folder = joined(name, below);
        PACKTRAIN_ASSIGN(column, read_json(joined(folder, leaf)));
        if (is_array(column)) PACKTRAIN_TRY(add(folder, std::move(column)));
      }
    }
    return {};
  }

  bool is_array(const Json& metadata) const {
    return !metadata.is_null() && (version_ == 2 || metadata["node_type"].as_string() == "array");
  }

  // Names from consolidated metadata are foreign paths.
  static bool is_of_the_table(std::string_view folder) {
    const size_t slash = folder.find('/');
    const std::string_view leaf = folder.substr(slash == std::string_view::npos ? 0 : slash + 1);
    if (leaf.empty() || leaf == "." || leaf == ".." || leaf.find('/') != std::string_view::npos) return false;
    return slash == std::string_view::npos || is_split_name(folder.substr(0, slash));
  }

  Status add(const std::string& folder, Json metadata) {
    arrays_.push_back({folder, std::move(metadata)});
    return {};
  }

  Storage& storage_;
  ZarrStore& store_;
  int version_ = 3;
  bool own_names_ = false;
  size_t looked_at_ = 0;  // by find_deeper
  std::vector<Node> arrays_;
};

Status index_store(Storage& storage, std::string_view path, const IndexOptions& options, IndexBuilder& out) {
  PACKTRAIN_ASSIGN(store, open_zarr_store(storage, path, options));
  ArrayTable table;
  ZarrIndexer indexer(storage, *store);
  PACKTRAIN_TRY(indexer.run(table));
  if (table.arrays.empty()) {
    PACKTRAIN_ASSIGN(deeper, indexer.find_deeper());
    if (deeper.empty())
      return Status(Code::corrupt,
                    "holds no array: it is cut short, or was never filled; copy or make it again");
    const bool folder = storage.stat(std::string(path) + "/" + deeper).ok();
    return Status(
        Code::unsupported,
        "holds no array in its root group, but in groups below it, such as " + printable(deeper) +
            (folder ? "; index one of those: packtrain index " + printable(path) + "/" + printable(deeper)
                    : "; unzip it and index the folder of one of those"));
  }
  return add_array_samples(storage, table, options, out);
}

Status index_zarr(Storage& storage, std::string_view path, const IndexOptions& options, IndexBuilder& out) {
  Status status = index_store(storage, path, options, out);
  return status.ok() ? status : status.at(path);
}

// Of a hierarchy in a zip. In one in a folder every chunk is a container of its own, called by its numbers,
// and what was never written belongs to the metadata.
Status zarr_own_checks(Storage& storage, std::string_view path, std::vector<CheckedStretch>& out) {
  const std::string_view leaf = path.substr(path.rfind('/') + 1);
  if (leaf.find_first_not_of("c.0123456789") == std::string_view::npos) return {};
  PACKTRAIN_ASSIGN(file, storage.open(path));
  std::byte head[2];
  if (file->size() < sizeof head) return {};
  PACKTRAIN_TRY(storage.read(*file, 0, head));
  return as_text(head) == "PK" ? zip_own_checks(storage, path, out) : Status();
}

}  // namespace

const Format kZarr = {
    .name = "zarr",
    .suffix = ".zarr.zip",
    .summary = "Zarr arrays, versions 2 and 3, sharded or not, in a folder or a zip; a row for each sample",
    .recognise = looks_like_zarr,
    .index = index_zarr,
    .layout = nullptr,
    .create = create_zarr,
    .label_column = true,
    .folder = true,
    .codecs = kZarrCodecs,
    .coding = zarr_coding,
    .own_checks = zarr_own_checks,
};

}  // namespace packtrain
