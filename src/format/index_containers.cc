#include "format/index_containers.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/words.h"
#include "format/table.h"
#include "index/npz.h"

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

// What the labels of a container are called.
struct ContainerClasses {
  std::vector<std::string> folders;  // its class folders, if it is a tree of them
  std::vector<std::string> names;    // of its labels 0, 1, …; empty: they have none
  uint64_t first = 0, end = 0;       // its samples
};

// One walk over all containers. `found` becomes the classes of each.
Result<IndexBuilder> walk(Storage& storage, std::span<const ContainerPath> containers,
                          const IndexOptions& options, std::vector<ContainerClasses>& found) {
  IndexBuilder builder;
  found.assign(containers.size(), {});
  std::vector<std::string> last_names;
  for (size_t i = 0; i < containers.size(); ++i) {
    const ContainerPath& container = containers[i];
    PACKTRAIN_ASSIGN(format, recognise_format(storage, container.path));
    IndexOptions mine = options;
    mine.shard_path = container.recorded;
    mine.class_folders = &found[i].folders;
    if (options.progress && containers.size() > 1) {
      mine.progress = [&](const ProgressEvent& event) {
        return options.progress(
            {.phase = event.phase, .items = i, .items_total = containers.size(), .unit = "containers"});
      };
    }
    size_t known_damage = options.damage ? options.damage->size() : 0;
    builder.begin_container();
    builder.set_classes({});
    found[i].first = builder.samples();
    const size_t known_splits = builder.splits().size();
    if (!container.split.empty()) builder.begin_split(container.split);
    PACKTRAIN_TRY(format->index(storage, container.path, mine, builder));
    found[i].end = builder.samples();
    found[i].names = builder.classes();
    if (!found[i].names.empty()) last_names = found[i].names;
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
  builder.set_classes(std::move(last_names));
  return builder;
}

std::span<int64_t> labels_of(IndexBuilder& builder, const ContainerClasses& container) {
  return builder.labels().subspan(container.first, container.end - container.first);
}

bool has_labels(IndexBuilder& builder, const ContainerClasses& container) {
  const auto labels = labels_of(builder, container);
  return std::any_of(labels.begin(), labels.end(), [](int64_t label) { return label != kNoLabel; });
}

// Numbers without names, beside a container that names its classes.
Status take_unnamed(std::span<const int64_t> labels, const std::string& path, const std::string& named_path,
                    size_t classes, const IndexOptions& options) {
  for (const int64_t label : labels) {
    if (label == kNoLabel || (label >= 0 && static_cast<uint64_t>(label) < classes)) continue;
    return Status(Code::unsupported,
                  "has the label " + std::to_string(label) + ", which has no name, and " +
                      printable(named_path) + " names " + count_in_words(classes) +
                      " classes (0 is the first): they do not mean the same; index them apart")
        .at(printable(path));
  }
  add_note(options, "the labels of " + printable(path) +
                        " have no names and are taken for numbers of the classes that " +
                        printable(named_path) + " names; if they mean others, index the two apart");
  return {};
}

// Labels of tables are numbers of the table's own list of names, which may be another in each. They become
// numbers of one list, as packing makes them: the list of all where it is the same, else all names, sorted.
Status unite_labels(std::span<const ContainerPath> containers, std::span<const ContainerClasses> found,
                    const IndexOptions& options, IndexBuilder& builder) {
  std::vector<std::string> classes;
  size_t named = containers.size(), other = containers.size();  // the first with names, and with other ones
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].names.empty()) continue;
    if (named == containers.size()) named = i;
    if (other == containers.size() && found[i].names != found[named].names) other = i;
    classes.insert(classes.end(), found[i].names.begin(), found[i].names.end());
  }
  if (named == containers.size()) return {};
  std::map<std::string_view, int64_t> numbers;
  if (other == containers.size()) {
    classes = found[named].names;
  } else {
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  }
  for (size_t i = 0; i < classes.size(); ++i) numbers.emplace(classes[i], static_cast<int64_t>(i));
  for (size_t i = 0; i < found.size(); ++i) {
    const std::span<int64_t> labels = labels_of(builder, found[i]);
    const std::vector<std::string>& names = found[i].names;
    if (!names.empty()) {
      for (int64_t& label : labels) {
        if (label == kNoLabel) continue;
        if (label < 0 || static_cast<uint64_t>(label) >= names.size()) {
          return Status(Code::corrupt, "label " + std::to_string(label) + " is none of its " +
                                           count_in_words(names.size()) + " classes")
              .at(printable(containers[i].path));
        }
        label = numbers.at(names[static_cast<size_t>(label)]);
      }
    } else if (found[i].folders.size() == 1) {
      // A single folder is a class if others know it as such.
      const auto known = numbers.find(found[i].folders.front());
      if (known != numbers.end()) std::fill(labels.begin(), labels.end(), known->second);
    } else if (has_labels(builder, found[i])) {
      if (other != containers.size()) {
        return Status(Code::unsupported, "has labels without names, and " +
                                             printable(containers[named].path) + " and " +
                                             printable(containers[other].path) +
                                             " number their classes differently; index it apart")
            .at(printable(containers[i].path));
      }
      PACKTRAIN_TRY(
          take_unnamed(labels, containers[i].path, containers[named].path, classes.size(), options));
    }
  }
  builder.set_classes(std::move(classes));
  return {};
}

// index_containers, but for the note on labels, of which there is one for all containers.
Result<IndexBuilder> index_all(Storage& storage, std::span<const ContainerPath> containers,
                               const IndexOptions& options) {
  size_t known_damage = options.damage ? options.damage->size() : 0;
  const MembersLeftOut known_links = options.links ? *options.links : MembersLeftOut();
  const MembersLeftOut known_files =
      options.without_extension ? *options.without_extension : MembersLeftOut();
  std::vector<ContainerClasses> found;
  PACKTRAIN_ASSIGN(builder, walk(storage, containers, options, found));
  if (containers.size() < 2 || options.classes != nullptr) return builder;
  const bool labelled_otherwise = std::any_of(found.begin(), found.end(), [&](const ContainerClasses& one) {
    return one.folders.empty() && (!one.names.empty() || has_labels(builder, one));
  });
  if (labelled_otherwise) {
    PACKTRAIN_TRY(unite_labels(containers, found, options, builder));
    return builder;
  }

  std::set<std::string> all;
  bool all_trees = true;
  for (const auto& [mine, names, first, end] : found) {
    all.insert(mine.begin(), mine.end());
    all_trees = all_trees && !mine.empty();
  }
  std::vector<std::string> classes;
  if (all_trees && all.size() > 1) classes.assign(all.begin(), all.end());
  // A single folder counts as a class only together with others.
  bool agree = std::all_of(found.begin(), found.end(), [&](const ContainerClasses& one) {
    return (one.folders.size() > 1 ? one.folders : std::vector<std::string>()) == classes;
  });
  if (agree) return builder;
  if (options.damage) options.damage->resize(known_damage);
  if (options.links) *options.links = known_links;
  if (options.without_extension) *options.without_extension = known_files;
  IndexOptions again = options;
  again.classes = &classes;
  if (options.without_number) *options.without_number = {};
  return walk(storage, containers, again, found);
}

}  // namespace

Result<IndexBuilder> index_containers(Storage& storage, std::span<const ContainerPath> containers,
                                      const IndexOptions& options) {
  MembersLeftOut without_number;
  IndexOptions mine = options;
  mine.without_number = &without_number;
  PACKTRAIN_ASSIGN(builder, index_all(storage, containers, mine));
  if (without_number.count > 0) add_note(options, without_number_in_words(without_number));
  return builder;
}

// Read from the finished index, whose hashes of keys are sorted already.
void note_equal_keys(const IndexBuilder::Finished& finished, const IndexOptions& options) {
  const Manifest& manifest = finished.manifest;
  const auto columns = read_npz(as_bytes(finished.names_npz));
  if (!columns.ok()) return;
  const auto hashes = column_values<uint64_t>(*columns, "lookup.hash", manifest.samples);
  const auto samples = column_values<uint64_t>(*columns, "lookup.sample", manifest.samples);
  const auto ends = column_values<uint64_t>(*columns, "key.end", manifest.samples);
  if (!hashes.ok() || !samples.ok() || !ends.ok()) return;
  const auto bytes = column_values<char>(*columns, "key.bytes", ends->empty() ? 0 : ends->back());
  if (!bytes.ok()) return;
  const auto key = [&](uint64_t sample) {
    const uint64_t begin = sample > 0 ? (*ends)[sample - 1] : 0;
    return std::string_view(bytes->data() + begin, (*ends)[sample] - begin);
  };
  // Where each range of samples ends: every shard may use the same keys, so looking has to be quick.
  std::vector<uint64_t> split_ends, shard_ends;
  for (const SplitSpec& split : manifest.splits) split_ends.push_back(split.first + split.count);
  for (const ShardSpec& shard : manifest.shards)
    shard_ends.push_back((shard_ends.empty() ? 0 : shard_ends.back()) + shard.samples);
  const auto number_in = [](const std::vector<uint64_t>& range_ends, uint64_t sample) {
    return std::upper_bound(range_ends.begin(), range_ends.end(), sample) - range_ends.begin();
  };
  const auto split_of = [&](uint64_t sample) { return number_in(split_ends, sample); };
  const bool tars = std::all_of(manifest.shards.begin(), manifest.shards.end(),
                                [](const ShardSpec& shard) { return shard.format == kTar.name; });
  uint64_t within_tar = 0, elsewhere = 0, first_within = UINT64_MAX, first_elsewhere = UINT64_MAX;
  for (size_t i = 1; i < hashes->size(); ++i) {
    if ((*hashes)[i] != (*hashes)[i - 1]) continue;
    const uint64_t sample = (*samples)[i], before = (*samples)[i - 1];
    if (key(sample) != key(before) || split_of(sample) != split_of(before)) continue;
    const bool within = tars && number_in(shard_ends, sample) == number_in(shard_ends, before);
    ++(within ? within_tar : elsewhere);
    uint64_t& first = within ? first_within : first_elsewhere;
    first = std::min(first, sample);
  }
  if (within_tar > 0) {
    const std::string& tar = manifest.shards[static_cast<size_t>(number_in(shard_ends, first_within))].path;
    add_note(options,
             counted(within_tar, "sample") + (within_tar > 1 ? " in a tar have" : " in a tar has") +
                 " the key of an earlier one, the first is " + printable(key(first_within)) +
                 ": members of one key that are not next to each other are samples of their own in an index" +
                 // A damaged tar is not packed, and an index of it as it is.
                 (options.damage && !options.damage->empty()
                      ? std::string()
                      : "; packtrain pack " + printable(tar) + " OUT makes whole samples of them"));
  }
  if (elsewhere > 0) {
    add_note(options, counted(elsewhere, "sample") + (elsewhere > 1 ? " have" : " has") +
                          " the key of an earlier one, the first is " + printable(key(first_elsewhere)) +
                          ": a key finds one of them only; packtrain pack gives each a key of its own");
  }
}

std::string absolute_path(std::string_view path) {
  std::error_code ignored;
  auto absolute = std::filesystem::absolute(std::filesystem::path(path), ignored);
  return (ignored ? std::filesystem::path(path) : absolute).lexically_normal().string();
}

}  // namespace packtrain
