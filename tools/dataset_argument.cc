#include "tools/dataset_argument.h"

#include "packtrain/format.h"
#include "packtrain/storage.h"

namespace packtrain::tools {

Result<std::shared_ptr<Dataset>> open_for(Run& run, const std::string& path) {
  std::string note;
  OpenOptions options;
  options.progress = run.progress();
  options.note = &note;
  PACKTRAIN_ASSIGN(dataset, open_dataset(posix_storage(), path, options));
  if (!note.empty()) run.warn(note);
  return dataset;
}

std::string label_in_words(const Manifest& manifest, int64_t label) {
  if (label == kNoLabel) return "";
  if (label >= 0 && static_cast<uint64_t>(label) < manifest.classes.size()) return manifest.classes[label];
  return std::to_string(label);
}

}  // namespace packtrain::tools
