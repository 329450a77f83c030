#include "pack/walk.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/threads.h"
#include "base/words.h"
#include "pack/stems.h"
#include "packtrain/index.h"

namespace packtrain {
namespace {

constexpr size_t kMostExamples = 20;

using Identity = std::pair<uint64_t, uint64_t>;  // device and inode

struct Subfolder {
  std::string name;
  std::optional<Identity> link_to;  // set if it is reached by a symlink
};

// A folder on the way from the root to where the walk is.
struct Level {
  std::vector<Subfolder> folders;  // still to visit, in order
  size_t next = 0;
  size_t path_bytes = 0;             // of its relative path
  std::optional<Identity> identity;  // once asked for
};

class Walker {
 public:
  Walker(Storage& storage, std::string_view root, const WalkOptions& options, BigString& names,
         ScanProgress& progress)
      : storage_(storage), root_(root), options_(options), names_(names), progress_(progress) {}

  Result<Listing> run() {
    PACKTRAIN_TRY(enter(std::nullopt));
    while (!levels_.empty()) {
      Level& level = levels_.back();
      path_.resize(level.path_bytes);
      if (level.next == level.folders.size()) {
        levels_.pop_back();
        continue;
      }
      const Subfolder folder = std::move(level.folders[level.next++]);
      if (!path_.empty()) path_ += '/';
      path_ += folder.name;
      if (folder.link_to && leads_up(*folder.link_to)) {
        count_skipped(out_.skipped.loops, path_, out_.skipped);
      } else {
        PACKTRAIN_TRY(enter(folder.link_to));
      }
    }
    return std::move(out_);
  }

 private:
  struct Entry {
    size_t at, bytes;  // in entry_names_
    FileKind kind;
  };

  std::string full(std::string_view relative) const {
    std::string path = root_;
    if (!relative.empty()) {
      if (!path.ends_with('/')) path += '/';
      path += relative;
    }
    return path;
  }

  std::string below(std::string_view name) const {
    return path_.empty() ? std::string(name) : path_ + "/" + std::string(name);
  }

  std::string_view name_of(const Entry& entry) const {
    return std::string_view(entry_names_).substr(entry.at, entry.bytes);
  }

  Result<Identity> identify(std::string_view relative) {
    PACKTRAIN_ASSIGN(info, storage_.stat(full(relative)));
    return std::pair(info.device, info.inode);
  }

  // Ancestors are identified only once a symlink needs it: a tree without symlinks costs no call for them.
  bool leads_up(Identity identity) {
    for (Level& level : levels_) {
      if (!level.identity) {
        auto known = identify(std::string_view(path_).substr(0, level.path_bytes));
        if (!known.ok()) continue;
        level.identity = *known;
      }
      if (*level.identity == identity) return true;
    }
    return false;
  }

  // Lists the folder at path_, keeps its files, and makes it the level whose folders are visited next.
  Status enter(std::optional<Identity> identity) {
    PACKTRAIN_TRY(progress_.tick(out_.files.size()));
    ++out_.folders;
    Level level;
    level.path_bytes = path_.size();
    level.identity = identity;
    entries_.clear();
    entry_names_.clear();
    Status listed = storage_.list(full(path_), [&](FolderEntry&& entry) {
      entries_.push_back({entry_names_.size(), entry.name.size(), entry.kind});
      entry_names_ += entry.name;
      return true;
    });
    if (!listed.ok()) {
      if (path_.empty() || listed.code() == Code::limit) return listed;
      out_.trouble.push_back({path_, true, listed.message()});
      levels_.push_back(std::move(level));
      return {};
    }
    if (!path_.empty() && is_dataset()) {
      out_.datasets.push_back(path_);
      levels_.push_back(std::move(level));
      return {};
    }
    skip_unwanted();
    std::sort(entries_.begin(), entries_.end(),
              [&](const Entry& a, const Entry& b) { return name_of(a) < name_of(b); });
    if (entries_.empty() && !path_.empty()) ++out_.skipped.empty_folders;
    follow_symlinks();
    for (size_t i = 0; i < entries_.size(); ++i) {
      const std::string_view name = name_of(entries_[i]);
      switch (entries_[i].kind) {
        case FileKind::file:
          keep_file(name, known_number_.empty() ? 0 : known_number_[i]);
          PACKTRAIN_TRY(progress_.tick(out_.files.size()));
          break;
        case FileKind::folder:
          level.folders.push_back({std::string(name), std::nullopt});
          break;
        case FileKind::symlink:  // to a folder: follow_symlinks has settled all others
          level.folders.push_back({std::string(name), link_targets_[i]});
          break;
        case FileKind::other:
          break;
      }
    }
    levels_.push_back(std::move(level));
    return {};
  }

  // Whether entries_ are those of a dataset: to pack its shards as files would hide what is in them.
  bool is_dataset() {
    bool manifest = false, index = false;
    for (const Entry& entry : entries_) {
      manifest |= name_of(entry) == "manifest.json";
      index |= name_of(entry) == "index.npz";
    }
    return manifest && index && holds_dataset(storage_, full(path_));
  }

  // Hidden and temporary names, sockets, pipes and devices.
  void skip_unwanted() {
    const auto unwanted = [&](const Entry& entry) {
      const NameKind kind = name_kind(name_of(entry));
      if (kind == NameKind::ordinary && entry.kind != FileKind::other) return false;
      Skipped& skipped = out_.skipped;
      uint64_t& counter = kind == NameKind::hidden      ? skipped.hidden
                          : kind == NameKind::temporary ? skipped.temporary
                                                        : skipped.special;
      count_skipped(counter, below(name_of(entry)), skipped);
      return true;
    };
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(), unwanted), entries_.end());
  }

  // Makes every symlink of entries_ a file with known facts, leaves those to folders, drops those to nothing.
  void follow_symlinks() {
    known_number_.clear();
    std::vector<size_t> links;
    for (size_t i = 0; i < entries_.size(); ++i)
      if (entries_[i].kind == FileKind::symlink) links.push_back(i);
    if (links.empty()) return;
    known_number_.assign(entries_.size(), 0);
    link_targets_.assign(entries_.size(), Identity());
    std::vector<std::optional<Result<FileInfo>>> targets(links.size());
    std::atomic<size_t> next{0};
    const uint64_t workers =
        options_.far ? std::clamp<uint64_t>(links.size() / 4, 1, options_.stats_in_flight) : 1;
    run_on("pt-stat", static_cast<uint32_t>(workers), [&](uint32_t) {
      for (size_t i = next++; i < links.size(); i = next++)
        targets[i].emplace(storage_.stat(full(below(name_of(entries_[links[i]])))));
    });
    for (size_t i = 0; i < links.size(); ++i) {
      Entry& entry = entries_[links[i]];
      const Result<FileInfo>& target = *targets[i];
      const std::string path = below(name_of(entry));
      if (!target.ok()) {
        entry.kind = FileKind::other;
        if (is_broken(target.status(), path)) {
          count_skipped(out_.skipped.broken_links, path, out_.skipped);
          if (out_.broken_links.size() < kMostExamples) out_.broken_links.push_back(path);
        } else {
          out_.trouble.push_back({path, false, target.status().message()});
        }
      } else if (target->kind == FileKind::file) {
        entry.kind = FileKind::file;
        out_.known.push_back(*target);
        known_number_[links[i]] = static_cast<uint32_t>(out_.known.size());
      } else if (target->kind == FileKind::folder) {
        link_targets_[links[i]] = Identity(target->device, target->inode);
      } else {
        entry.kind = FileKind::other;
        count_skipped(out_.skipped.special, path, out_.skipped);
      }
    }
  }

  // Leads nowhere, or round in a circle of links (which the system reports as a failure, not as an absence).
  bool is_broken(const Status& status, const std::string& relative) {
    if (status.code() == Code::not_found) return true;
    // A link that names itself or another link of the circle cannot be resolved, but can be read as a link;
    // one behind a folder without permission can be read too, so only what leads to a link again counts.
    std::string path = full(relative);
    for (int hops = 0; hops < 64; ++hops) {
      const auto info = storage_.stat(path, false);
      if (!info.ok()) return info.status().code() == Code::not_found;
      if (info->kind != FileKind::symlink) return false;
      const auto target = storage_.read_link(path);
      if (!target.ok()) return false;
      path = target->starts_with('/') ? *target : path.substr(0, path.rfind('/') + 1) + *target;
    }
    return true;
  }

  void keep_file(std::string_view name, uint32_t number) {
    ListedFile file;
    file.at = names_.size();
    if (!path_.empty()) {
      names_ += path_;
      names_ += '/';
    }
    names_ += name;
    file.bytes = static_cast<uint32_t>(names_.size() - file.at);
    file.number = number;
    out_.files.push_back(file);
  }

  Storage& storage_;
  const std::string root_;
  const WalkOptions& options_;
  BigString& names_;
  ScanProgress& progress_;
  Listing out_;
  std::vector<Level> levels_;
  std::string path_;  // of the folder the walk is in, relative
  std::vector<Entry> entries_;
  std::string entry_names_;
  std::vector<uint32_t> known_number_;  // for entries_; empty if none is a symlink
  std::vector<Identity> link_targets_;  // for entries_, of symlinks to folders
};

}  // namespace

bool path_before(std::string_view a, std::string_view b) {
  for (size_t at = 0;;) {
    const size_t a_end = a.find('/', at), b_end = b.find('/', at);
    const std::string_view a_part = a.substr(at, a_end - at), b_part = b.substr(at, b_end - at);
    const bool a_is_file = a_end == std::string_view::npos, b_is_file = b_end == std::string_view::npos;
    if (a_is_file != b_is_file) return a_is_file;
    if (a_part != b_part) return a_part < b_part;
    if (a_is_file) return false;
    at = a_end + 1;
  }
}

void count_skipped(uint64_t& counter, std::string path, Skipped& skipped) {
  ++counter;
  if (skipped.examples.size() < kMostExamples) skipped.examples.push_back(std::move(path));
}

Result<Listing> walk(Storage& storage, std::string_view folder, const WalkOptions& options, BigString& names,
                     ScanProgress& progress) {
  return Walker(storage, folder, options, names, progress).run();
}

}  // namespace packtrain
