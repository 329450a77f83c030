// Samples of an open dataset as Python objects: what index.cc gives its class Dataset.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bind.h"
#include "packtrain/index.h"

namespace packtrain::bind {

using SampleDict = nb::typed<nb::dict, nb::str, nb::any>;
using SampleList = nb::typed<nb::list, SampleDict>;

// A dataset, or one split of it: positions count from the split's first sample. Immutable once opened, so
// safe from many threads; safe after fork().
class Samples {
 public:
  // Finds the split; not_found names those that there are. `path` is how to open the same dataset again.
  static Result<Samples> of(std::shared_ptr<Dataset> dataset, std::string path,
                            std::optional<std::string> split);

  const Dataset& dataset() const { return *dataset_; }
  const std::shared_ptr<Dataset>& owner() const { return dataset_; }
  const std::string& path() const { return path_; }
  const std::optional<std::string>& split() const { return split_; }
  uint64_t first() const { return first_; }
  uint64_t size() const { return size_; }

  // A position in the whole dataset. Counts from the end if negative, as lists do; raises IndexError.
  uint64_t sample_at(int64_t position) const;
  // Raises NotFoundError if no sample of the split has that key.
  uint64_t sample_with(nb::handle key) const;
  bool has_key(nb::handle key) const;
  nb::str key(uint64_t sample) const;
  std::span<const int64_t> labels() const;   // of the whole dataset, compared with their check; raises
  uint32_t field_id(nb::handle name) const;  // raises NotFoundError

  // One dict per sample. `fields` None: the key and every field the sample has.
  std::vector<SampleDict> read(std::span<const uint64_t> samples, nb::handle fields, bool check) const;
  nb::bytes read_field(uint64_t sample, uint32_t field, bool check) const;

 private:
  struct Wanted {  // which members a dict gets
    bool key = true;
    std::vector<uint32_t> fields;
  };
  Wanted wanted(nb::handle fields) const;

  std::shared_ptr<Dataset> dataset_;
  std::string path_;
  std::optional<std::string> split_;
  uint64_t first_ = 0, size_ = 0;
  Wanted everything_;
  std::vector<nb::str> names_;  // of the fields; made once, so that a dict costs no new strings
  nb::str key_name_;
  uint32_t label_field_ = UINT32_MAX;  // "cls"
};

}  // namespace packtrain::bind
