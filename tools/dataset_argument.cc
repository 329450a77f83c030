#include "tools/dataset_argument.h"

#include <algorithm>
#include <charconv>

#include "base/words.h"
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

Result<Selection> select(const Manifest& manifest, const std::string& split, const std::string& class_name) {
  Selection selection{0, manifest.samples, kNoLabel};
  if (!split.empty()) {
    const auto at = std::find_if(manifest.splits.begin(), manifest.splits.end(),
                                 [&](const SplitSpec& each) { return each.name == split; });
    if (at == manifest.splits.end()) {
      std::string known;
      for (const SplitSpec& each : manifest.splits) known += (known.empty() ? "" : ", ") + each.name;
      return Status(Code::not_found, "there is no split '" + printable(split) + "'; there is " +
                                         (known.empty() ? "none" : printable(known)));
    }
    selection.first = at->first;
    selection.end = at->first + at->count;
  }
  if (class_name.empty()) return selection;
  const auto at = std::find(manifest.classes.begin(), manifest.classes.end(), class_name);
  if (at != manifest.classes.end()) {
    selection.label = at - manifest.classes.begin();
    return selection;
  }
  const char* const end = class_name.data() + class_name.size();
  const auto [stop, error] = std::from_chars(class_name.data(), end, selection.label);
  if (error == std::errc() && stop == end) return selection;
  return Status(Code::not_found,
                "there is no class '" + printable(class_name) + "'; packtrain info lists the classes");
}

std::string label_in_words(const Manifest& manifest, int64_t label) {
  if (label == kNoLabel) return "";
  if (label >= 0 && static_cast<uint64_t>(label) < manifest.classes.size()) return manifest.classes[label];
  return std::to_string(label);
}

}  // namespace packtrain::tools
