#include "format/hdf5_output.h"

#include <set>
#include <utility>

#include "base/words.h"
#include "format/grouping.h"

namespace packtrain {

Result<Hdf5Output> Hdf5Output::create(Storage& storage, std::string_view path, const WriteSpec& spec) {
  if (spec.compress != "none" && spec.compress != "auto") {
    return Status(Code::unsupported, "HDF5 is written with --compress none, not " + spec.compress);
  }
  PACKTRAIN_ASSIGN(writer, storage.create(path, spec.expected_bytes, spec.write));
  return Hdf5Output(
      std::make_unique<Appender>(std::move(writer), spec.expected_bytes, kHdf5WrittenSuperblockBytes),
      std::string(path));
}

Status Hdf5Output::finish(const Hdf5GroupToWrite& root) {
  PACKTRAIN_TRY(align());
  const Hdf5Metadata metadata = encode_hdf5_metadata(root, address());
  PACKTRAIN_TRY(append(metadata.objects));
  PACKTRAIN_TRY(out_->settle());
  PACKTRAIN_TRY(out_->overwrite(0, metadata.superblock));
  return out_->commit();
}

Result<Hdf5Names> Hdf5Names::make(const std::vector<std::string>& fields,
                                  const std::vector<std::string_view>& suffixes,
                                  const std::vector<std::string_view>& reserved) {
  Hdf5Names made;
  std::set<std::string> taken(reserved.begin(), reserved.end());
  for (const std::string& field : fields) {
    if (field.empty() || field == "." || field.find('/') != std::string::npos ||
        field.find('\0') != std::string::npos) {
      return Status(Code::invalid, "a dataset of HDF5 cannot be named '" + printable(field) + "'");
    }
    made.positions_.emplace(field, made.positions_.size());
    for (std::string_view suffix : suffixes) {
      std::string name = field + std::string(suffix);
      if (!taken.insert(name).second) {
        return Status(Code::invalid, "two datasets would be named '" + printable(name) +
                                         "'; leave out or rename the field '" + printable(field) + "'");
      }
    }
  }
  return made;
}

size_t Hdf5Names::position(std::string_view field) const {
  const auto found = positions_.find(std::string(field));
  return found == positions_.end() ? SIZE_MAX : found->second;
}

int64_t label_to_write(const SampleToWrite& sample) {
  if (sample.label != kNoLabel) return sample.label;
  for (const SampleToWrite::Field& field : sample.fields) {
    if (field.name == "cls" && field.bytes.size() <= kLabelBytes)
      return parse_label(field.bytes).value_or(kNoLabel);
  }
  return kNoLabel;
}

}  // namespace packtrain
