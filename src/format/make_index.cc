// Existing containers become a dataset in place: a folder with an index beside them.
#include <algorithm>
#include <map>
#include <set>

#include "base/json.h"
#include "base/words.h"
#include "format/checksum.h"
#include "format/index_containers.h"
#include "format/publish_index.h"
#include "index/split_name.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

// Relative where both move together: the container lies beside the index's folder or below its parent.
std::string recorded_path(const std::string& container, const std::string& folder) {
  std::string parent = folder.substr(0, folder.rfind('/') + 1);
  return container.starts_with(parent) ? "../" + container.substr(parent.size()) : container;
}

// A folder inside a dataset's own would be foreign to it, and the dataset has an index already.
Status check_outside_datasets(Storage& storage, const std::string& folder) {
  const std::string parent = folder.substr(0, folder.rfind('/'));
  Result<std::string> text = read_whole(storage, parent + "/manifest.json");
  if (!text.ok() || !Manifest::decode(*text).ok()) return {};
  return Status(Code::invalid, "lies inside the dataset " + printable(parent) +
                                   ", which has an index; use that dataset, or put this index elsewhere with "
                                   "--out DIR")
      .at(printable(folder));
}

Status check_split_names(const std::vector<std::string>& splits, size_t containers) {
  if (splits.empty()) return {};
  if (splits.size() != containers) return Status(Code::invalid, "there must be a split for each container");
  const auto named = [](const std::string& split) { return !split.empty(); };
  if (std::none_of(splits.begin(), splits.end(), named)) return {};
  if (!std::all_of(splits.begin(), splits.end(), named))
    return Status(Code::invalid, "name the split of every container (NAME=CONTAINER), or of none");
  for (const std::string& split : splits) PACKTRAIN_TRY(check_split_name(split));
  return {};
}

// A split is one range of samples: its containers come together, in the order of the first of each.
void sort_by_split(std::vector<ContainerPath>& paths) {
  std::map<std::string, size_t> order;
  for (const ContainerPath& path : paths) order.try_emplace(path.split, order.size());
  std::stable_sort(paths.begin(), paths.end(), [&](const ContainerPath& a, const ContainerPath& b) {
    return order[a.split] < order[b.split];
  });
}

Result<std::string> advice_for_folder(Storage& storage, std::string folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  std::set<std::string_view> suffixes;
  bool dataset = false;
  PACKTRAIN_TRY(storage.list(folder, [&](FolderEntry&& entry) {
    dataset = dataset || entry.name == "manifest.json";
    for (const Format* format : formats()) {
      if (entry.name.ends_with(format->suffix)) suffixes.insert(format->suffix);
    }
    return true;
  }));
  const std::string name = printable(folder);
  if (const std::string tables = saved_tables(storage, folder); !tables.empty()) {
    return "it was saved by Hugging Face's save_to_disk: index its tables: packtrain index " + tables +
           " --out " + name + ".packtrain";
  }
  if (dataset) return "if it is a dataset it has an index already: packtrain info " + name;
  if (suffixes.empty()) return "pack it: packtrain pack " + name + " OUT";
  return "index the containers in it: packtrain index '" + name + "/*" + std::string(*suffixes.begin()) + "'";
}

}  // namespace

std::string links_in_words(const MembersLeftOut& links) {
  if (links.count == 0) return "";
  return counted(links.count, "link") +
         (links.count == 1 ? " left out, which has no bytes of its own: "
                           : " left out, which have no bytes of their own: ") +
         names_in_words(links.names, links.count) +
         "; to keep what they lead to, make the archive again with that in their place: tar "
         "--hard-dereference "
         "--dereference, zip -r without -y, or of a folder copied by cp -rL";
}

std::string without_extension_in_words(const MembersLeftOut& files) {
  if (files.count == 0) return "";
  return counted(files.count, "file") +
         (files.count == 1 ? " left out, which has no extension to name a field: "
                           : " left out, which have no extension to name a field: ") +
         names_in_words(files.names, files.count) + "; packtrain pack keeps such files, as the field bin";
}

std::string columns_in_words(const MembersLeftOut& columns) {
  if (columns.count == 0) return "";
  return counted(columns.count, "column") +
         " left out, as neither a field nor a label: " + names_in_words(columns.names, columns.count);
}

std::string without_number_in_words(const MembersLeftOut& labels) {
  if (labels.count == 0) return "";
  return counted(labels.count, "sample") +
         (labels.count == 1 ? " has no label, as its cls is no whole number: "
                            : " have no label, as their cls is no whole number: ") +
         names_in_words(labels.names, labels.count) +
         "; classes with names are folders, or a column of a list (.csv)";
}

std::string saved_tables(Storage& storage, std::string_view folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.remove_suffix(1);
  const std::string path(folder);
  // Beside the data there may be tables of its cache, such as cache-….arrow.
  const auto tables = [](const std::string& of) { return "'" + printable(of) + "/data-*.arrow'"; };
  if (storage.stat(path + "/state.json").ok() && storage.stat(path + "/dataset_info.json").ok())
    return tables(path);
  constexpr uint64_t kMostBytes = 1 << 20;
  const auto text = read_whole(storage, path + "/dataset_dict.json", kMostBytes);
  const auto about = text.ok() ? Json::parse(*text) : Result<Json>(text.status());
  if (!about.ok()) return "";
  std::string all;
  for (const Json& split : (*about)["splits"].items()) {
    const std::string& name = split.as_string();
    const std::string below = std::string(path).append("/").append(name);
    if (!check_split_name(name).ok() || !storage.stat(below + "/state.json").ok()) continue;
    all.append(all.empty() ? "" : " ").append(name).append("=").append(tables(below));
  }
  return all;
}

Result<MakeIndexReport> make_index(Storage& storage, std::span<const std::string> containers,
                                   const MakeIndexOptions& options) {
  if (containers.empty()) return Status(Code::invalid, "no container was given to index");
  MakeIndexReport report;
  const auto without_slash = [](std::string path) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return path;
  };
  report.folder =
      options.out.empty() ? without_slash(containers[0]) + ".packtrain" : without_slash(options.out);
  std::string folder = absolute_path(report.folder);
  PACKTRAIN_TRY(check_outside_datasets(storage, folder));
  PACKTRAIN_TRY(check_index_place(storage, report.folder));
  std::vector<ContainerPath> paths;
  std::set<std::string> given;
  PACKTRAIN_TRY(check_split_names(options.splits, containers.size()));
  for (size_t i = 0; i < containers.size(); ++i) {
    const std::string& container = containers[i];
    PACKTRAIN_ASSIGN(info, storage.stat(container));
    if (info.kind == FileKind::folder && !recognise_format(storage, container).ok()) {
      PACKTRAIN_ASSIGN(advice, advice_for_folder(storage, container));
      return Status(Code::unsupported, "is a folder, no container; " + advice).at(printable(container));
    }
    paths.push_back({without_slash(container), absolute_path(without_slash(container)),
                     options.splits.empty() ? "" : options.splits[i]});
    if (!given.insert(paths.back().recorded).second) {
      return Status(Code::invalid, "is given twice; name each container once").at(printable(container));
    }
  }
  sort_by_split(paths);
  IndexOptions index_options = options.index;
  index_options.notes = &report.notes;
  index_options.links = &report.links;
  index_options.without_extension = &report.without_extension;
  index_options.columns = &report.columns;
  PACKTRAIN_ASSIGN(builder, index_containers(storage, paths, index_options));
  report.samples = builder.samples();
  report.containers = paths.size();
  report.unlabelled_folders = builder.unlabelled_folders();
  IndexBuilder::Finished finished = builder.finish();
  note_equal_keys(finished, index_options);
  if (report.samples == 0) {
    report.notes.emplace_back(
        "there are no samples in what was given; if there should be, make it again from its source");
  }
  for (const ShardSpec& shard : finished.manifest.shards) report.bytes += shard.bytes;
  if (options.checksum) {
    PACKTRAIN_ASSIGN(checked, with_checksums(storage, folder, std::move(finished), options.index.progress));
    finished = std::move(checked);
  }
  for (ShardSpec& shard : finished.manifest.shards) shard.path = recorded_path(shard.path, folder);
  for (BesideSpec& file : finished.manifest.beside) file.path = recorded_path(file.path, folder);
  Status published = publish_index(storage, report.folder, finished, {});
  if (published.ok()) return report;
  if (!options.out.empty() || published.code() == Code::invalid) return published;
  return Status(published.code(), published.message() + "; with --out DIR it can lie elsewhere")
      .at(published.where());
}

}  // namespace packtrain
