#include "format/index_containers.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/hash.h"

namespace packtrain {
namespace {

// One walk over all containers. `folders` becomes the class folders of each.
Result<IndexBuilder> walk(Storage& storage, std::span<const ContainerPath> containers,
                          const IndexOptions& options, std::vector<std::vector<std::string>>& folders) {
  IndexBuilder builder;
  folders.assign(containers.size(), {});
  for (size_t i = 0; i < containers.size(); ++i) {
    const ContainerPath& container = containers[i];
    PACKTRAIN_ASSIGN(format, recognise_format(storage, container.path));
    IndexOptions mine = options;
    mine.shard_path = container.recorded;
    mine.class_folders = &folders[i];
    if (options.progress && containers.size() > 1) {
      mine.progress = [&](const ProgressEvent& event) {
        return options.progress(
            {.phase = event.phase, .items = i, .items_total = containers.size(), .unit = "containers"});
      };
    }
    size_t known_damage = options.damage ? options.damage->size() : 0;
    PACKTRAIN_TRY(format->index(storage, container.path, mine, builder));
    if (options.damage == nullptr || containers.size() == 1) continue;
    for (size_t d = known_damage; d < options.damage->size(); ++d) {
      std::string& what = (*options.damage)[d].what;
      what.insert(0, container.path + ": ");
    }
  }
  return builder;
}

}  // namespace

Result<IndexBuilder> index_containers(Storage& storage, std::span<const ContainerPath> containers,
                                      const IndexOptions& options) {
  size_t known_damage = options.damage ? options.damage->size() : 0;
  const LinksLeftOut known_links = options.links ? *options.links : LinksLeftOut();
  std::vector<std::vector<std::string>> folders;
  PACKTRAIN_ASSIGN(builder, walk(storage, containers, options, folders));
  if (containers.size() < 2 || options.classes != nullptr) return builder;

  std::set<std::string> all;
  bool all_trees = true;
  for (const auto& mine : folders) {
    all.insert(mine.begin(), mine.end());
    all_trees = all_trees && !mine.empty();
  }
  std::vector<std::string> classes;
  if (all_trees && all.size() > 1) classes.assign(all.begin(), all.end());
  // A single folder counts as a class only together with others.
  bool agree = std::all_of(folders.begin(), folders.end(), [&](const auto& mine) {
    return (mine.size() > 1 ? mine : std::vector<std::string>()) == classes;
  });
  if (agree) return builder;
  if (options.damage) options.damage->resize(known_damage);
  if (options.links) *options.links = known_links;
  IndexOptions again = options;
  again.classes = &classes;
  return walk(storage, containers, again, folders);
}

std::string seal_manifest(IndexBuilder::Finished& finished) {
  finished.manifest.files = {
      {"index.npz", finished.index_npz.size(), xxh128_hex(as_bytes(finished.index_npz))},
      {"names.npz", finished.names_npz.size(), xxh128_hex(as_bytes(finished.names_npz))},
  };
  return finished.manifest.encode();
}

Status publish_index(Storage& storage, std::string_view folder, IndexBuilder::Finished& finished,
                     bool durable) {
  std::string target(folder), part = target + ".tmp-" + std::to_string(::getpid()), old = part + "-old";
  std::string manifest = seal_manifest(finished);
  WriteOptions write{.durable = durable, .replace = true};
  auto write_all = [&]() -> Status {
    PACKTRAIN_TRY(storage.make_folder(part));
    PACKTRAIN_TRY(write_whole(storage, part + "/index.npz", as_bytes(finished.index_npz), write));
    PACKTRAIN_TRY(write_whole(storage, part + "/names.npz", as_bytes(finished.names_npz), write));
    PACKTRAIN_TRY(write_whole(storage, part + "/manifest.json", as_bytes(manifest), write));
    if (!storage.stat(target, false).ok()) return storage.rename(part, target);
    if (!storage.stat(target + "/manifest.json").ok()) {
      return Status(Code::invalid, "exists and is no index; remove it or choose another --out").at(target);
    }
    PACKTRAIN_TRY(storage.rename(target, old));
    Status renamed = storage.rename(part, target);
    if (!renamed.ok()) (void)storage.rename(old, target);
    return renamed;
  };
  Status status = write_all();
  // What cannot be cleaned up does no harm: it is in nobody's way.
  (void)remove_tree(storage, part);
  (void)remove_tree(storage, old);
  return status;
}

std::string absolute_path(std::string_view path) {
  std::error_code ignored;
  auto absolute = std::filesystem::absolute(std::filesystem::path(path), ignored);
  return (ignored ? std::filesystem::path(path) : absolute).lexically_normal().string();
}

}  // namespace packtrain
