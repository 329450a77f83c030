// Fills a Catalog: what all sources share of numbering fields, splits and classes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pack/catalog.h"

namespace packtrain {

// Cell::mtime_ns() of a file that nobody has looked at yet, and of one that a list names and that is not
// there, or is a folder.
inline constexpr int64_t kNotLookedAt = INT64_MIN;
inline constexpr int64_t kNotThere = INT64_MIN + 1;

// A file that could not be looked at.
struct LookFailure {
  uint64_t cell = 0;
  BadSample bad;
};

// Takes the samples of one source after the other. Classes are numbered once all are known: until finish() a
// label of a source with named labels is a provisional number from class_id(). One thread at a time; linear
// in all.
class CatalogBuilder {
 public:
  explicit CatalogBuilder(bool cls_field) : cls_field_(cls_field) {}

  Catalog& catalog() { return catalog_; }
  // Room for that many more, so that growing copies nothing: what is not used costs no memory.
  void reserve(uint64_t samples, uint64_t cells);

  // Each gives the number of an equal one from before. `name` is what stands in front of its paths in the
  // dataset's names if there are several roots, containers and streams.
  uint32_t add_root(std::string_view folder, std::string_view name);
  uint32_t add_container(std::shared_ptr<Dataset> dataset, std::string_view name);
  uint32_t add_stream(PieceFile file, std::string_view name);
  uint32_t split(std::string_view name);
  Result<uint16_t> field(std::string_view name);  // Code::unsupported beyond 65,535
  int64_t class_id(std::string_view name);

  // Samples that follow come from another source, which messages call by `name`.
  void begin_source(std::string_view name);
  // Labels of the source begun last are numbers from class_id(). Otherwise they are what they are.
  void labels_are_named() { sources_.back().named = true; }
  // An order of classes that is kept if no source says otherwise.
  void prefer_classes(const std::vector<std::string>& classes) { preferred_.push_back(classes); }

  void begin_sample(NameRef stem, uint32_t split);
  void set_label(int64_t label) { catalog_.samples.back().label = label; }
  void add(const Cell& cell) { catalog_.cells.push_back(cell); }
  Status add_text(std::string_view field, std::string_view text);
  bool has_field(std::string_view name) const;  // the sample begun last
  // Sorts the sample's cells by field, and makes its label a field "cls", if it has one and no such field.
  Status end_sample();

  // Numbers the classes: in the order of `classes` (from the file of that name) unless it is empty; as a
  // dataset had them; by sorted name. Sets prefixes. Afterwards the catalog is whole but for the sizes of
  // files.
  Status finish(const std::vector<std::string>& classes, std::string_view classes_file);
  // A folder or link of the source that cannot be read.
  void note_unreadable(BadSample bad);
  // Takes samples out that have a file marked kNotThere and adds up bytes. `failures`, by cell, say why where
  // the reason is another than that a list names what is not there.
  void settle_missing(const std::vector<LookFailure>& failures);
  Catalog take() { return std::move(catalog_); }

 private:
  struct Source {
    size_t first_sample = 0;
    std::string name;
    bool named = false;
  };
  struct Numbering;

  Status order_classes(const std::vector<std::string>& classes, std::string_view classes_file);
  Status check_kinds_of_labels() const;
  Status number_labels();
  size_t end_sample_of(size_t source) const {
    return source + 1 < sources_.size() ? sources_[source + 1].first_sample : catalog_.samples.size();
  }
  void set_prefixes();

  const bool cls_field_;
  Catalog catalog_;
  std::unordered_map<std::string, uint16_t> field_numbers_;
  std::unordered_map<std::string, uint32_t> split_numbers_;
  std::unordered_map<std::string, uint32_t> class_numbers_;
  std::vector<std::string> class_names_;  // by provisional number
  std::vector<int64_t> final_numbers_;    // by provisional number
  std::vector<std::vector<std::string>> preferred_;
  std::vector<std::string> root_names_, container_names_, stream_names_;
  std::vector<Source> sources_;
};

}  // namespace packtrain
