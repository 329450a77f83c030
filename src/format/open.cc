// open_dataset: a folder, an indexed container, or bare containers.
#include "base/words.h"
#include "format/index_cache.h"
#include "format/index_containers.h"
#include "format/publish_index.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

// Whether a container is no longer what was indexed.
Result<bool> changed_since(Storage& storage, const ShardSpec& indexed, const std::string& file) {
  PACKTRAIN_ASSIGN(info, storage.stat(file));
  return info.size != indexed.bytes || (indexed.mtime_ns != 0 && info.mtime_ns != indexed.mtime_ns);
}

std::string has_changed(const std::string& file, const std::string& folder) {
  return printable(file) + " has changed since " + printable(folder) +
         " was made, which is not used; run `packtrain index` again";
}

// The first file beside the containers that is not what it was when its content went into the index; nothing
// if there is none. One that has come or gone counts as well if what is there now is wanted: an index that is
// opened by its own name stays of use without it.
Result<std::optional<std::string>> changed_beside(Storage& storage, const Dataset& dataset,
                                                  bool as_it_is_now) {
  for (const BesideSpec& file : dataset.manifest().beside) {
    const std::string path = file.path.starts_with('/') ? file.path : dataset.folder() + "/" + file.path;
    const auto info = storage.stat(path);
    if (!info.ok() && info.status().code() != Code::not_found) return info.status();
    if (info.ok() == file.absent && !as_it_is_now) continue;
    const bool same =
        info.ok() ? !file.absent && info->size == file.bytes && info->mtime_ns == file.mtime_ns : file.absent;
    if (!same) return std::optional(path);
  }
  return std::optional<std::string>();
}

// The index beside the first container, if it is of these containers as they are now, and of no others.
// `stale` becomes what to tell the user if they have changed.
Result<std::shared_ptr<Dataset>> open_beside(Storage& storage, std::span<const std::string> containers,
                                             std::string& stale) {
  std::string folder = containers[0] + ".packtrain";
  if (!storage.stat(folder + "/manifest.json").ok()) return std::shared_ptr<Dataset>();
  PACKTRAIN_ASSIGN(dataset, Dataset::open(storage, folder));
  // A container that is a folder has its files as shards.
  size_t container = 0;
  bool begun = false;
  const auto within = [&](const std::string& file) {
    const std::string whole = absolute_path(containers[container]);
    return file == whole || file.starts_with(whole + "/");
  };
  for (uint32_t i = 0; i < dataset->manifest().shards.size(); ++i) {
    const std::string file = absolute_path(dataset->shard_path(i));
    if (begun && container + 1 < containers.size() && !within(file)) {
      ++container;
      begun = false;
    }
    if (!within(file)) return std::shared_ptr<Dataset>();
    begun = true;
  }
  if (!begun || container + 1 != containers.size()) return std::shared_ptr<Dataset>();
  for (uint32_t i = 0; i < dataset->manifest().shards.size(); ++i) {
    const std::string file = dataset->shard_path(i);
    PACKTRAIN_ASSIGN(changed, changed_since(storage, dataset->manifest().shards[i], file));
    if (!changed) continue;
    stale = has_changed(file, folder);
    return std::shared_ptr<Dataset>();
  }
  PACKTRAIN_ASSIGN(beside, changed_beside(storage, *dataset, true));
  if (!beside) return dataset;
  stale = has_changed(*beside, folder);
  return std::shared_ptr<Dataset>();
}

// Null if there is none, or none that can be used.
std::shared_ptr<Dataset> open_cached(Storage& storage, const std::string& folder) {
  if (!storage.stat(folder + "/manifest.json").ok()) return nullptr;
  auto cached = Dataset::open(storage, folder);
  if (!cached.ok()) return nullptr;
  const auto beside = changed_beside(storage, **cached, true);
  return beside.ok() && !*beside ? *cached : nullptr;
}

Result<std::shared_ptr<Dataset>> open_bare(Storage& storage, std::span<const std::string> containers,
                                           const OpenOptions& options) {
  std::vector<ContainerPath> paths;
  for (const std::string& container : containers) paths.push_back({container, absolute_path(container)});

  std::optional<std::string> cached;
  std::optional<CacheLock> lock;
  if (options.cache) {
    PACKTRAIN_ASSIGN(folder, cache_folder(storage, containers));
    cached = std::move(folder);
  }
  if (cached) {
    if (auto dataset = open_cached(storage, *cached)) return dataset;
    if (storage.make_folder(cached->substr(0, cached->rfind('/'))).ok()) {
      PACKTRAIN_ASSIGN(held, CacheLock::take(*cached, options.progress));
      lock.emplace(std::move(held));
      if (auto dataset = open_cached(storage, *cached)) return dataset;
    }
  }
  MembersLeftOut links, without_extension, columns;
  std::vector<std::string> notes;
  IndexOptions index_options;
  index_options.progress = options.progress;
  index_options.links = &links;
  index_options.without_extension = &without_extension;
  index_options.columns = &columns;
  index_options.notes = &notes;
  PACKTRAIN_ASSIGN(builder, index_containers(storage, paths, index_options));
  IndexBuilder::Finished finished = builder.finish();
  note_equal_keys(finished, index_options);
  std::string kept = "not kept";
  std::shared_ptr<Dataset> dataset;
  if (cached) {
    Status status = publish_index(storage, *cached, finished, {.durable = false, .replace_damaged = true});
    if (status.ok()) {
      dataset = open_cached(storage, *cached);
      kept = "kept in " + *cached;
    } else {
      kept = "could not be kept: " + status.text();
    }
  }
  if (dataset == nullptr) {
    seal_manifest(finished);
    PACKTRAIN_ASSIGN(in_memory, Dataset::from_memory(storage, "", std::move(finished)));
    dataset = std::move(in_memory);
  }
  if (options.note) {
    *options.note =
        "indexed " + counted(dataset->samples(), "sample") + " of " +
        (containers.size() == 1 ? containers[0] : count_in_words(containers.size()) + " containers") +
        " on the fly (" + kept + "); run `packtrain index` on " + (containers.size() == 1 ? "it" : "them") +
        " to have the index beside " + (containers.size() == 1 ? "it" : "them");
  }
  if (columns.count > 0) notes.insert(notes.begin(), columns_in_words(columns));
  if (without_extension.count > 0) notes.insert(notes.begin(), without_extension_in_words(without_extension));
  if (links.count > 0) notes.insert(notes.begin(), links_in_words(links));
  if (options.found) {
    options.found->insert(options.found->end(), notes.begin(), notes.end());
  } else if (options.note) {
    for (const std::string& note : notes) *options.note += "; " + note;
  }
  return dataset;
}

// A dataset folder, by its own name.
Result<std::shared_ptr<Dataset>> open_folder(Storage& storage, std::string_view path) {
  PACKTRAIN_ASSIGN(dataset, Dataset::open(storage, path));
  PACKTRAIN_ASSIGN(beside, changed_beside(storage, *dataset, false));
  if (!beside) return dataset;
  return Status(Code::corrupt, "was changed after the index had taken its labels; run packtrain index again")
      .at(printable(*beside));
}

// Whether a folder is a container of its own, such as LMDB's, and no dataset with a manifest.
bool is_container_folder(Storage& storage, std::string_view path) {
  return !storage.stat(std::string(path) + "/manifest.json").ok() && recognise_format(storage, path).ok();
}

}  // namespace

Result<std::shared_ptr<Dataset>> open_dataset(Storage& storage, std::string_view path,
                                              const OpenOptions& options) {
  if (options.note) options.note->clear();
  if (path.empty()) return Status(Code::invalid, "name a dataset: a folder or containers");
  auto info = storage.stat(path);
  if (info.ok() && info->kind == FileKind::folder && !is_container_folder(storage, path))
    return open_folder(storage, path);
  if (info.ok() && (path == "manifest.json" || path.ends_with("/manifest.json"))) {
    return open_folder(storage, path == "manifest.json" ? "." : path.substr(0, path.rfind('/')));
  }
  PACKTRAIN_ASSIGN(containers, expand_paths(storage, path));
  std::string stale;
  PACKTRAIN_ASSIGN(dataset, open_beside(storage, containers, stale));
  if (dataset != nullptr) return dataset;
  for (const std::string& container : containers) {
    PACKTRAIN_ASSIGN(found, storage.stat(container));
    if (found.kind != FileKind::folder || is_container_folder(storage, container)) continue;
    if (containers.size() == 1) return open_folder(storage, container);
    return Status(Code::invalid, "is a folder; give one dataset folder, or container files").at(container);
  }
  PACKTRAIN_ASSIGN(bare, open_bare(storage, containers, options));
  if (options.note && !stale.empty()) *options.note = stale;
  return bare;
}

}  // namespace packtrain
