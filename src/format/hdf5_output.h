// What both HDF5 writers share: a file that grows at its end, and the columns of a set.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/appender.h"
#include "format/hdf5_metadata.h"
#include "packtrain/format.h"

namespace packtrain {

// An HDF5 file in the making: elements are appended, the metadata come last. Nothing is visible before
// finish(). One thread at a time.
class Hdf5Output {
 public:
  static Result<Hdf5Output> create(Storage& storage, std::string_view path, const WriteSpec& spec);

  const std::string& path() const { return path_; }
  uint64_t address() const { return out_->position(); }  // of what comes next
  Status append(Bytes data) { return out_->append(data); }
  Status align() { return out_->append_zeros((8 - address() % 8) % 8); }  // to eight bytes
  Status finish(const Hdf5GroupToWrite& root);

 private:
  Hdf5Output(std::unique_ptr<Appender> out, std::string path)
      : out_(std::move(out)), path_(std::move(path)) {}

  std::unique_ptr<Appender> out_;
  std::string path_;
};

// The names of the datasets that a set of these fields has, all different; invalid if a field cannot have
// one.
class Hdf5Names {
 public:
  // `reserved`: names that are not a field's.
  static Result<Hdf5Names> make(const std::vector<std::string>& fields,
                                const std::vector<std::string_view>& suffixes,
                                const std::vector<std::string_view>& reserved);
  // Where the field stands in WriteSpec::fields; SIZE_MAX if it does not.
  size_t position(std::string_view field) const;

 private:
  std::unordered_map<std::string, size_t> positions_;
};

// The label of a sample: as given, or as its field "cls" says.
int64_t label_to_write(const SampleToWrite& sample);

}  // namespace packtrain
