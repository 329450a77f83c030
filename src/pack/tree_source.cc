// Trees of files: in a folder, or in an archive of one.
//
// What the folders mean is decided by what is there:
//   no folder at all              a flat folder: samples without a class;
//   every top folder is called    a split tree: each top folder is a split of its own name, and the folders
//   train, val, test, …           in it are the classes, shared by the splits. Files beside the splits'
//                                 folders become a split "other": they are data of no split;
//   otherwise                     a class tree: the top folder of a file is its class, however deep it lies.
//                                 Files beside the classes' folders are samples without a label.
// A source that the user named as a split (NAME=SOURCE) is never taken for a split tree.
//
// Where no folder is a class, the whole number in a.cls is the label of a.jpg. Where folders are classes,
// they win: "cls" is the class's number, as it is for every reader of the shards, and the file's own bytes
// become the field "source.cls".
//
// A folder that cannot be listed counts as if files were in it: what other folders mean, and the numbers of
// classes, do not depend on who may read what.
#include <algorithm>
#include <array>
#include <atomic>
#include <map>

#include "base/threads.h"
#include "base/words.h"
#include "format/grouping.h"
#include "format/table.h"
#include "pack/file_facts.h"
#include "pack/sources.h"
#include "pack/stems.h"

namespace packtrain {
namespace {

constexpr std::array<std::string_view, 12> kSplitNames = {"train", "training",   "trainval",   "val",
                                                          "valid", "validation", "test",       "testing",
                                                          "dev",   "eval",       "evaluation", "extra"};

bool is_split_name(std::string_view name) {
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return std::find(kSplitNames.begin(), kSplitNames.end(), lower) != kSplitNames.end();
}

std::string_view first_part(std::string_view path) { return path.substr(0, path.find('/')); }
bool is_below_folder(std::string_view path) { return path.find('/') != std::string_view::npos; }

struct Shape {
  size_t files_at_top = 0;
  std::vector<std::string> folders;  // at the top, in order
};
// Of paths from which `skip` bytes were taken; none are of a listing with trouble, which is that of a walk.
Shape shape_of(std::string_view names, const Listing& listing, size_t skip) {
  Shape shape;
  for (const ListedFile& file : listing.files) {
    const std::string_view path = Listing::path(names, file).substr(skip);
    if (!is_below_folder(path)) {
      ++shape.files_at_top;
    } else if (shape.folders.empty() || shape.folders.back() != first_part(path)) {
      shape.folders.emplace_back(first_part(path));
    }
  }
  for (const Listing::Trouble& trouble : listing.trouble) {
    if (!trouble.folder && !is_below_folder(trouble.path)) continue;
    const std::string folder(first_part(trouble.path));
    const auto at = std::lower_bound(shape.folders.begin(), shape.folders.end(), folder);
    if (at == shape.folders.end() || *at != folder) shape.folders.insert(at, folder);
  }
  return shape;
}

bool are_splits(const Shape& shape, const Source& source) {
  return source.split.empty() && !shape.folders.empty() &&
         std::all_of(shape.folders.begin(), shape.folders.end(), is_split_name);
}

// The class that what could not be read belongs to, or is; empty if it is none.
std::string_view class_of(const Listing::Trouble& trouble, bool split_tree) {
  std::string_view inside = trouble.path;
  if (split_tree) inside.remove_prefix(std::min(inside.size(), first_part(inside).size() + 1));
  return trouble.folder || is_below_folder(inside) ? first_part(inside) : std::string_view();
}

// Whether a folder is a class: one at the top, or below a split.
bool has_classes(std::string_view names, const Listing& listing, size_t skip, const Shape& shape,
                 bool split_tree) {
  if (!split_tree) return !shape.folders.empty();
  return std::any_of(listing.trouble.begin(), listing.trouble.end(),
                     [](const Listing::Trouble& trouble) { return !class_of(trouble, true).empty(); }) ||
         std::any_of(listing.files.begin(), listing.files.end(), [&](const ListedFile& file) {
           const std::string_view path = Listing::path(names, file).substr(skip);
           return is_below_folder(path) && is_below_folder(path.substr(path.find('/') + 1));
         });
}

// Bytes in front of all paths that name a folder around the tree: "photos/" of photos/cat/1.jpg. A lone
// folder of files is a class, and a lone folder that is called as a split is one.
size_t wrapping_bytes(std::string_view names, const Listing& listing) {
  size_t skip = 0;
  for (;;) {
    const Shape shape = shape_of(names, listing, skip);
    if (shape.files_at_top > 0 || shape.folders.size() != 1 || is_split_name(shape.folders[0])) return skip;
    const size_t inner = skip + shape.folders[0].size() + 1;
    if (shape_of(names, listing, inner).folders.empty()) return skip;
    skip = inner;
  }
}

bool is_label_file(std::string_view path) {
  return field_name(split_name(path.substr(path.rfind('/') + 1)).extension) == "cls";
}

// Adds the samples of one folder after the other. One thread at a time.
class TreeBuilder {
 public:
  TreeBuilder(ScanContext& context, const Source& source, const Listing& listing, const FillCell& fill,
              const LabelOf& label_of)
      : context_(context),
        source_(source),
        listing_(listing),
        fill_(fill),
        label_of_(label_of),
        catalog_(context.out.catalog()) {}

  Status run(const TreeOptions& options) {
    if (options.enter_lone_folder) skip_ = wrapping_bytes(catalog_.names, listing_);
    Shape shape = shape_of(catalog_.names, listing_, skip_);
    if (options.enter_lone_folder && is_labelled_folder(shape)) {
      skip_ += shape.folders[0].size() + 1;
      shape = shape_of(catalog_.names, listing_, skip_);
    }
    split_tree_ = are_splits(shape, source_);
    class_tree_ = !split_tree_ && !shape.folders.empty();
    has_classes_ = has_classes(catalog_.names, listing_, skip_, shape, split_tree_);
    warn(shape);
    if (has_classes_) context_.out.labels_are_named();
    for (const Listing::Trouble& trouble : listing_.trouble) {
      const std::string_view name = class_of(trouble, split_tree_);
      if (has_classes_ && !name.empty()) (void)context_.out.class_id(name);  // it keeps its number
    }
    for (size_t first = 0; first < listing_.files.size();) {
      const std::string_view folder = folder_of(listing_.files[first]);
      size_t end = first + 1;
      while (end < listing_.files.size() && folder_of(listing_.files[end]) == folder) ++end;
      PACKTRAIN_TRY(add_folder(std::string(folder.substr(std::min(skip_, folder.size()))), first, end));
      first = end;
    }
    for (const auto& [split, files] : outside_classes_)
      catalog_.warnings.push_back("the split \"" + printable(split) + "\" has " + counted(files, "file") +
                                  " in no class folder, packed without a label");
    if (without_number_.count > 0)
      catalog_.warnings.push_back(printable(source_.path) + ": " + without_number_in_words(without_number_));
    if (own_labels_ > 0)
      catalog_.warnings.push_back(
          printable(source_.path) + " holds " + counted(own_labels_, ".cls file") +
          ", but its folders are classes; the folder is the label, and what such a file "
          "says is kept in the field source.cls");
    return {};
  }

 private:
  std::string_view path_of(const ListedFile& file) const { return Listing::path(catalog_.names, file); }
  std::string_view folder_of(const ListedFile& file) const {
    const std::string_view path = path_of(file);
    return path.substr(0, path.rfind('/') + 1);
  }

  // A lone folder of files with labels beside them is a flat folder, not a class.
  bool is_labelled_folder(const Shape& shape) const {
    if (shape.files_at_top > 0 || shape.folders.size() != 1 || is_split_name(shape.folders[0])) return false;
    for (size_t i = 0; i < listing_.files.size(); ++i)
      if (is_label_file(path_of(listing_.files[i])) && label_of_(i).value_or(kNoLabel) != kNoLabel)
        return true;
    return false;
  }

  void warn(const Shape& shape) {
    const std::string where = printable(source_.path);
    const std::string files = counted(shape.files_at_top, "file"),
                      are = shape.files_at_top == 1 ? "it is" : "they are";
    if (class_tree_ && shape.files_at_top > 0)
      catalog_.warnings.push_back(where + " holds " + files + " beside its class folders; " + are +
                                  " packed without a label");
    if (split_tree_ && shape.files_at_top > 0)
      catalog_.warnings.push_back(where + " holds " + files + " beside its splits; " + are +
                                  " packed as a split \"other\"");
    if (class_tree_ && std::all_of(shape.folders.begin(), shape.folders.end(), is_split_name))
      catalog_.warnings.push_back(where + " was given as the split \"" + source_.split +
                                  "\", so its folders (" + printable(shape.folders[0]) +
                                  ", …) are taken for classes; give it without NAME= if they are splits");
    warn_of_annotations(shape);
    if (class_tree_ && shape.folders.size() == 1) {
      const size_t inner = skip_ + shape.folders[0].size() + 1;
      const bool deeper =
          std::any_of(listing_.files.begin(), listing_.files.end(), [&](const ListedFile& file) {
            const std::string_view path = path_of(file);
            return path.size() > inner && is_below_folder(path.substr(skip_)) &&
                   is_below_folder(path.substr(inner));
          });
      if (deeper)
        catalog_.warnings.push_back(
            "all folders of " + where + " lie in one, \"" + printable(shape.folders[0]) +
            "\", which is taken for the only class; pack that folder if its folders are "
            "the classes");
    }
  }

  // COCO's own layout: lists in one folder, images in others. As a tree, the lists would be a class.
  void warn_of_annotations(const Shape& shape) {
    constexpr std::string_view kFolder = "annotations/";
    if (!class_tree_ || shape.folders.size() < 2) return;
    uint64_t lists = 0;
    std::string_view captions;
    for (const ListedFile& file : listing_.files) {
      const std::string_view path = path_of(file).substr(skip_);
      if (!path.starts_with(kFolder)) continue;
      if (!path.ends_with(".json")) return;
      ++lists;
      if (captions.empty() && path.find("/captions") != path.npos) captions = path;
    }
    if (lists == 0) return;
    catalog_.warnings.push_back(
        printable(source_.path) + " has a folder \"annotations\" that holds " + counted(lists, "list") +
        " (.json) and no images, and is packed as a class like its other folders; " +
        (captions.empty()
             ? std::string("to pack images with what the lists say, write a list of path and label from them")
             : "to pack images with their captions, give the list instead: packtrain pack NAME=" +
                   printable(source_.path + "/" + std::string(captions)) + " OUT"));
  }

  // Files [first, end) of the listing, which lie in `folder` ("" or with a slash at its end).
  Status add_folder(const std::string& folder, size_t first, size_t end) {
    std::string_view inside = folder;
    std::string split = source_.split_or_default();
    if (split_tree_) {
      split = inside.empty() ? "other" : std::string(first_part(inside));
      inside.remove_prefix(std::min(inside.size(), split.size() + 1));
      if (folder.empty()) inside = {};
    }
    int64_t label = kNoLabel;
    if ((split_tree_ || class_tree_) && !inside.empty()) label = context_.out.class_id(first_part(inside));
    const uint32_t split_number = context_.out.split(split);
    if (split_tree_ && has_classes_ && inside.empty() && !folder.empty())
      outside_classes_[split] += end - first;

    std::vector<std::string_view> names;
    names.reserve(end - first);
    for (size_t i = first; i < end; ++i) {
      const std::string_view path = path_of(listing_.files[i]);
      names.push_back(path.substr(path.rfind('/') + 1));
    }
    const std::vector<GroupedName> grouped = group_by_stem(names);
    for (size_t i = 0; i < grouped.size(); ++i) {
      const size_t number = first + grouped[i].name;
      const ListedFile& file = listing_.files[number];
      if (i == 0 || grouped[i].sample != grouped[i - 1].sample) {
        const size_t folder_bytes = file.bytes - names[grouped[i].name].size();
        const NameRef stem{file.at + skip_,
                           static_cast<uint32_t>(folder_bytes + grouped[i].stem_bytes - skip_)};
        context_.out.begin_sample(stem, split_number);
        context_.out.set_label(label);
      }
      std::string name = field_of(names[grouped[i].name], grouped[i]);
      if (name == "cls" && has_classes_) {
        name = "source.cls";
        ++own_labels_;
      } else if (name == "cls") {
        const std::optional<int64_t> said = label_of_(number);
        context_.out.set_label(said.value_or(kNoLabel));
        if (said == kNoLabel) note_left_out(path_of(file), without_number_);
      }
      if (name == "source.cls" && context_.out.has_field(name))
        return Status(
                   Code::invalid,
                   "here folders are classes, so a .cls file becomes the field source.cls, and another file "
                   "of this sample has that name already; rename or remove one of them")
            .at(printable(source_.path + "/" + std::string(path_of(file))));
      PACKTRAIN_ASSIGN(field, context_.out.field(name));
      Cell cell;
      cell.field = field;
      cell.path = {file.at, file.bytes};
      fill_(number, cell);
      context_.out.add(cell);
      if (i + 1 == grouped.size() || grouped[i + 1].sample != grouped[i].sample)
        PACKTRAIN_TRY(context_.out.end_sample());
    }
    return {};
  }

  ScanContext& context_;
  const Source& source_;
  const Listing& listing_;
  const FillCell& fill_;
  const LabelOf& label_of_;
  Catalog& catalog_;
  size_t skip_ = 0;  // bytes of every path that name no part of the tree
  bool split_tree_ = false, class_tree_ = false, has_classes_ = false;
  MembersLeftOut without_number_;                    // .cls files that are no label
  uint64_t own_labels_ = 0;                          // .cls files of samples whose folder is their class
  std::map<std::string, uint64_t> outside_classes_;  // files of splits that lie in no class
};

void add_skipped(const Skipped& from, Skipped& to) {
  to.hidden += from.hidden;
  to.temporary += from.temporary;
  to.special += from.special;
  to.broken_links += from.broken_links;
  to.loops += from.loops;
  to.empty_folders += from.empty_folders;
  to.examples.insert(to.examples.end(), from.examples.begin(), from.examples.end());
}

// What the .cls files of a tree without classes say, by position in the listing; empty if they say nothing.
// A file that cannot be read here says nothing: packing it will tell why.
Result<std::vector<std::optional<int64_t>>> read_label_files(ScanContext& context, const Source& source,
                                                             const Listing& listing) {
  using Labels = std::vector<std::optional<int64_t>>;
  const std::string_view names = context.out.catalog().names;
  std::vector<size_t> files;
  for (size_t i = 0; i < listing.files.size(); ++i)
    if (is_label_file(Listing::path(names, listing.files[i]))) files.push_back(i);
  const Shape shape = shape_of(names, listing, 0);
  if (files.empty() || has_classes(names, listing, 0, shape, are_splits(shape, source))) return Labels();
  Labels labels(listing.files.size());
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  Status stopped;  // written by the one thread that reports
  const auto read_one = [&](size_t file) {
    const std::string path = source.path + "/" + std::string(Listing::path(names, listing.files[file]));
    const auto text = read_whole(context.storage, path, kLabelBytes);
    const bool too_long = !text.ok() && text.status().code() == Code::invalid;
    if (text.ok()) labels[file] = parse_label(as_bytes(*text)).value_or(kNoLabel);
    if (too_long) labels[file] = kNoLabel;
  };
  const uint64_t workers =
      is_far(source.path) ? std::clamp<uint64_t>(files.size() / 4, 1, context.options.stats_in_flight) : 1;
  run_on("pt-label", static_cast<uint32_t>(workers), [&](uint32_t worker) {
    for (size_t i = next++; i < files.size() && !stop; i = next++) {
      read_one(files[i]);
      if (worker != 0) continue;
      stopped = context.progress.tick(i, files.size());
      if (!stopped.ok()) stop = true;
    }
  });
  if (!stopped.ok()) return stopped;
  return labels;
}

}  // namespace

Status add_tree(ScanContext& context, const Source& source, Listing& listing, const TreeOptions& options,
                const FillCell& fill, const LabelOf& label_of) {
  add_skipped(listing.skipped, context.out.catalog().skipped);
  if (listing.files.empty())
    return Status(Code::invalid, "holds no files to pack; is it the right one?").at(printable(source.path));
  PACKTRAIN_TRY(TreeBuilder(context, source, listing, fill, label_of).run(options));
  listing = Listing();
  return {};
}

Result<Listing> walk_source(ScanContext& context, const Source& source) {
  const WalkOptions options{context.options.stats_in_flight, is_far(source.path)};
  return walk(context.storage, source.path, options, context.out.catalog().names, context.progress);
}

Status add_walked_tree(ScanContext& context, const Source& source, Listing& listing) {
  Catalog& catalog = context.out.catalog();
  catalog.files += listing.files.size() + listing.folders;
  for (const Listing::Trouble& trouble : listing.trouble)
    context.out.note_unreadable(
        {path_below(source.path, trouble.path),
         (trouble.folder ? "a folder, which counts as one sample: " : "") + trouble.what, ""});
  if (listing.files.empty() && !listing.trouble.empty())
    return Status(Code::io, listing.trouble.front().what +
                                ", and nothing else of the source holds files; "
                                "make it readable and run it again")
        .at(printable(path_below(source.path, listing.trouble.front().path)));
  if (const uint64_t broken = listing.skipped.broken_links; broken > 0)
    catalog.warnings.push_back(printable(source.path) + " holds " + counted(broken, "symbolic link") +
                               " to nothing, left out: " + names_in_words(listing.broken_links, broken));
  if (const size_t datasets = listing.datasets.size(); datasets > 0)
    catalog.warnings.push_back(printable(source.path) + " holds " + counted(datasets, "dataset") +
                               " of packtrain, left out: " + names_in_words(listing.datasets, datasets) +
                               "; give such a folder as a source of its own to pack what is in it");
  const uint32_t root = context.out.add_root(source.path, source.name);
  PACKTRAIN_ASSIGN(labels, read_label_files(context, source, listing));
  const auto fill = [&](size_t file, Cell& cell) {
    cell.source = root;
    cell.set_mtime_ns(kNotLookedAt);
    if (const uint32_t number = listing.files[file].number; number > 0) {
      cell.size = listing.known[number - 1].size;
      cell.set_mtime_ns(listing.known[number - 1].mtime_ns);
    }
  };
  return add_tree(context, source, listing, {}, fill,
                  [&](size_t file) { return labels.empty() ? std::nullopt : labels[file]; });
}

}  // namespace packtrain
