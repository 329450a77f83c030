// Walk: every file below a folder, politely.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pack/catalog.h"
#include "pack/scan_progress.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// A file of a listing: 16 bytes, and its path in the string of names.
struct ListedFile {
  uint64_t at = 0;
  uint32_t bytes = 0;
  uint32_t number =
      0;  // of a walk: 0, or 1 + position in Listing::known; of an archive: the member's position
};

struct Listing {
  // Paths relative to the root, the files of a folder in front of those of its folders, both by byte order.
  BigVector<ListedFile> files;
  std::vector<FileInfo> known;  // facts of files behind symlinks: to follow those was to look
  uint64_t folders = 0;         // the root among them
  Skipped skipped;
  std::vector<std::string> datasets;      // folders below the root that packtrain made, left out
  std::vector<std::string> broken_links;  // the first of Skipped::broken_links
  struct Trouble {
    std::string path;  // relative to the root
    bool folder = false;
    std::string what;
  };
  std::vector<Trouble> trouble;  // folders that could not be listed and links that could not be followed

  static std::string_view path(std::string_view names, const ListedFile& file) {
    return names.substr(file.at, file.bytes);
  }
};

// The order of Listing::files: folder by folder, a folder's files in front of its folders.
bool path_before(std::string_view a, std::string_view b);

struct WalkOptions {
  uint32_t stats_in_flight = 32;  // for symlinks: all else is known from the listing
  bool far = false;               // metadata calls take milliseconds
};

// Lists every folder once, one at a time, and looks at nothing but symlinks. Symlinks to files and folders
// are followed, one that leads to a folder above itself is counted and left. Appends the paths to `names`. A
// folder that cannot be read is told in Listing::trouble, and the walk goes on; if that is the root, it
// fails.
Result<Listing> walk(Storage& storage, std::string_view folder, const WalkOptions& options, BigString& names,
                     ScanProgress& progress);

// Counts a name that is left out, and keeps the first few as examples.
void count_skipped(uint64_t& counter, std::string path, Skipped& skipped);

}  // namespace packtrain
