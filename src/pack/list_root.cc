#include "pack/list_root.h"

#include <algorithm>

#include "base/words.h"
#include "pack/stems.h"

namespace packtrain {
namespace {

std::vector<std::string> subfolders(Storage& storage, const std::string& folder) {
  std::vector<std::string> names;
  const Status listed = storage.list(folder, [&](FolderEntry&& entry) {
    if (entry.kind == FileKind::folder && name_kind(entry.name) == NameKind::ordinary)
      names.push_back(folder + "/" + entry.name);
    return true;
  });
  if (!listed.ok()) names.clear();  // only a search: what cannot be listed holds nothing for us
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string folder_around(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(slash == 0 ? "/" : path.substr(0, slash));
}

Result<std::string> find_root(ScanContext& context, const Source& source,
                              const std::vector<std::string>& probes) {
  if (!context.options.root.empty()) return context.options.root;
  const std::string own = folder_around(source.path);
  if (probes.empty()) return own;
  const auto has = [&](const std::string& folder) {
    return [&context, folder](const std::string& path) {
      const auto info = context.storage.stat(folder + "/" + path);
      return info.ok() && info->kind == FileKind::file;
    };
  };
  if (std::any_of(probes.begin(), probes.end(), has(own))) return own;
  std::vector<std::string> candidates = subfolders(context.storage, own);
  if (own != "." && own != "/") {
    for (std::string& folder : subfolders(context.storage, folder_around(own)))
      if (folder != own) candidates.push_back(std::move(folder));
  }
  // Those that hold all of them; if there is none, since files are missing, those that hold any.
  std::vector<std::string> fitting, partly;
  for (const std::string& folder : candidates) {
    const auto there = std::count_if(probes.begin(), probes.end(), has(folder));
    if (there == static_cast<std::ptrdiff_t>(probes.size())) fitting.push_back(folder);
    if (there > 0) partly.push_back(folder);
  }
  if (fitting.empty()) fitting = std::move(partly);
  if (fitting.empty()) return own;
  if (fitting.size() > 1)
    return Status(Code::invalid, "its paths are not in " + printable(own) +
                                     ", but in several folders in it or beside it: " +
                                     names_in_words(fitting, fitting.size()) +
                                     "; say with --root which one they are relative to")
        .at(printable(source.path));
  context.out.catalog().warnings.push_back(
      "the paths in " + printable(source.path) + " are taken as relative to " + printable(fitting[0]) +
      ", the only folder in or beside " + printable(own) +
      " where they are; if that is not what is meant, say which one with --root");
  return fitting[0];
}

}  // namespace packtrain
