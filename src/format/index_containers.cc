#include "format/index_containers.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/words.h"

namespace packtrain {
namespace {

// A split is one range of samples.
Status check_splits(const IndexBuilder& builder) {
  std::set<std::string> seen;
  for (const std::string& split : builder.splits()) {
    if (seen.insert(split).second) continue;
    return Status(Code::unsupported,
                  "several containers have the split " + printable(split) +
                      ", which an index cannot join; pack them: packtrain pack CONTAINER… OUT");
  }
  return {};
}

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
    builder.begin_container();
    const size_t known_splits = builder.splits().size();
    if (!container.split.empty()) builder.begin_split(container.split);
    PACKTRAIN_TRY(format->index(storage, container.path, mine, builder));
    if (!container.split.empty() && builder.splits().size() > known_splits + 1) {
      return Status(Code::invalid, "has splits of its own; give it without \"" + container.split + "=\"")
          .at(printable(container.path));
    }
    if (options.damage == nullptr || containers.size() == 1) continue;
    for (size_t d = known_damage; d < options.damage->size(); ++d) {
      std::string& what = (*options.damage)[d].what;
      what.insert(0, container.path + ": ");
    }
  }
  PACKTRAIN_TRY(check_splits(builder));
  return builder;
}

}  // namespace

Result<IndexBuilder> index_containers(Storage& storage, std::span<const ContainerPath> containers,
                                      const IndexOptions& options) {
  size_t known_damage = options.damage ? options.damage->size() : 0;
  const MembersLeftOut known_links = options.links ? *options.links : MembersLeftOut();
  const MembersLeftOut known_files =
      options.without_extension ? *options.without_extension : MembersLeftOut();
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
  if (options.without_extension) *options.without_extension = known_files;
  IndexOptions again = options;
  again.classes = &classes;
  return walk(storage, containers, again, folders);
}

std::string absolute_path(std::string_view path) {
  std::error_code ignored;
  auto absolute = std::filesystem::absolute(std::filesystem::path(path), ignored);
  return (ignored ? std::filesystem::path(path) : absolute).lexically_normal().string();
}

}  // namespace packtrain
