// What extract will write, settled before it writes anything.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "packtrain/index.h"
#include "packtrain/pack.h"
#include "packtrain/status.h"

namespace packtrain {

// Immutable once made. Holds 8 bytes a sample and every folder's name; 24 bytes a file more while it is made.
class ExtractPlan {
 public:
  // Fails where a name is not there or not safe, and where fields with different bytes would become one file.
  // Reads no payload but that of fields which have one name.
  static Result<ExtractPlan> make(const Dataset& dataset, const ExtractOptions& options);

  const std::vector<uint64_t>& samples() const { return samples_; }  // ascending
  const std::set<std::string>& folders() const { return folders_; }  // below the target; parents come first
  uint64_t files() const { return files_; }
  uint64_t shared() const { return written_by_others_.size(); }  // fields that another's file holds
  uint64_t bytes() const { return bytes_; }
  uint64_t bytes_on_disk() const { return bytes_on_disk_; }  // as most filesystems round it
  uint64_t largest_field() const { return largest_field_; }
  bool all_fields() const { return fields_.empty(); }
  const std::vector<uint32_t>& fields() const { return fields_; }  // those asked for; empty: all with a path

  // Where a field goes, below the target; empty if it is not to be extracted.
  Result<std::string> target(const Dataset& dataset, uint64_t sample, uint32_t field) const;

 private:
  // A file to come, by the hash of its name.
  struct Target {
    uint64_t hash, sample;
    uint32_t field;
    bool operator<(const Target& other) const {
      return hash != other.hash ? hash < other.hash : sample < other.sample;
    }
  };

  Status select_samples(const Dataset& dataset, const ExtractOptions& options);
  Status add_samples(const Dataset& dataset);
  Status share_names(const Dataset& dataset, std::vector<Target>& targets);
  void add_folders_of(const std::string& path);

  std::vector<uint64_t> samples_;
  std::vector<uint32_t> fields_;
  std::vector<std::pair<uint64_t, uint32_t>> written_by_others_;  // sample and field; sorted
  bool by_key_ = false;
  std::set<std::string> folders_;
  std::string last_folder_;  // most files lie in the folder of the one before
  uint64_t files_ = 0, bytes_ = 0, bytes_on_disk_ = 0, largest_field_ = 0;
};

}  // namespace packtrain
