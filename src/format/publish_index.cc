#include "format/publish_index.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <latch>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/process_token.h"
#include "base/threads.h"
#include "base/words.h"
#include "index/shard_place.h"

namespace packtrain {
namespace {

constexpr std::string_view kManifest = "manifest.json";
constexpr std::array<std::string_view, 3> kIndexFiles = {kManifest, "index.npz", "names.npz"};

constexpr std::string_view kTemporary = ".tmp-";  // then the token of the process, see process_token.h
constexpr int kNeighboursLookedAt = 4096;  // a folder may have millions of names: it is not worth reading all

constexpr size_t kWrittenApart = size_t{256} << 10;  // bytes; for less a thread does not pay

// What stands where an index is to go.
struct Occupant {
  bool folder = true, manifest = false;
  uint64_t names = 0;
  std::string foreign;  // the first name, in sorted order, that no index has
};

Result<Occupant> look_at(Storage& storage, const std::string& path) {
  Occupant occupant;
  PACKTRAIN_ASSIGN(info, storage.stat(path, /*follow=*/false));
  occupant.folder = info.kind == FileKind::folder;
  if (!occupant.folder) return occupant;
  PACKTRAIN_TRY(storage.list(path, [&](FolderEntry&& entry) {
    ++occupant.names;
    occupant.manifest = occupant.manifest || entry.name == kManifest;
    const bool known = entry.kind == FileKind::file &&
                       std::find(kIndexFiles.begin(), kIndexFiles.end(), entry.name) != kIndexFiles.end();
    if (!known && (occupant.foreign.empty() || entry.name < occupant.foreign)) {
      occupant.foreign = std::move(entry.name);
    }
    return true;
  }));
  return occupant;
}

// Files of an index and nothing else, so that what somebody put there in the meantime stays.
Status remove_index(Storage& storage, const std::string& folder) {
  for (std::string_view name : kIndexFiles) {
    Status removed = storage.remove(folder + "/" + std::string(name));
    if (!removed.ok() && removed.code() != Code::not_found) return removed;
  }
  return storage.remove(folder);
}

// A name beside `target` that nobody has. Somebody else's, or what a killed process left, stays as it is.
Result<std::string> free_name(Storage& storage, const std::string& target, std::string_view ending) {
  constexpr int kTries = 1000;
  const std::string stem = target + std::string(kTemporary) + process_token();
  for (int i = 0; i < kTries; ++i) {
    std::string name = stem + (i == 0 ? "" : "-" + std::to_string(i)) + std::string(ending);
    Result<FileInfo> found = storage.stat(name, /*follow=*/false);
    if (!found.ok() && found.status().code() == Code::not_found) return name;
    if (!found.ok()) return found.status();
  }
  return Status(Code::invalid, "no temporary name beside it is free; remove those that begin with " +
                                   printable(target) + std::string(kTemporary));
}

// What processes of this host that were killed meanwhile have left beside `target`.
void remove_left_parts(Storage& storage, const std::string& target) {
  const size_t slash = target.rfind('/');
  const std::string folder = slash == target.npos ? "." : slash == 0 ? "/" : target.substr(0, slash);
  const std::string start = target.substr(slash == target.npos ? 0 : slash + 1) + std::string(kTemporary);
  std::vector<std::string> left;
  int seen = 0;
  (void)storage.list(folder, [&](FolderEntry&& entry) {
    if (entry.name.starts_with(start) && token_is_dead(std::string_view(entry.name).substr(start.size())))
      left.push_back(std::move(entry.name));
    return ++seen < kNeighboursLookedAt;
  });
  for (const std::string& name : left) (void)remove_index(storage, path_below(folder, name));
}

std::string seal(IndexBuilder::Finished& finished, std::string index_hash, std::string names_hash) {
  finished.manifest.files = {
      {"index.npz", finished.index_npz.size(), std::move(index_hash)},
      {"names.npz", finished.names_npz.size(), std::move(names_hash)},
  };
  return finished.manifest.encode();
}

// Counts down when it goes, also where something was thrown.
struct Counted {
  explicit Counted(std::latch& counts) : latch(counts) {}
  ~Counted() { latch.count_down(); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  std::latch& latch;
};

// Writes the three files into the folder `part`, which nobody knows yet.
Status write_files(Storage& storage, const std::string& part, IndexBuilder::Finished& finished,
                   bool durable) {
  const WriteOptions options{.durable = durable, .replace = true, .in_new_folder = true};
  struct Written {
    std::string_view name;
    Bytes bytes;
    std::string hash = {};
    Status status = {};
  };
  const auto write = [&](Written& file) -> Status {
    PACKTRAIN_ASSIGN(writer, storage.create(part + "/" + std::string(file.name), file.bytes.size(), options));
    Status status = writer->write_at(0, file.bytes);
    return status.ok() ? writer->commit() : status;
  };
  Written files[] = {{.name = "index.npz", .bytes = as_bytes(finished.index_npz)},
                     {.name = "names.npz", .bytes = as_bytes(finished.names_npz)},
                     {.name = kManifest, .bytes = {}}};
  constexpr size_t kHashed = 2;
  // Side by side, because each waits for the disk. The manifest comes last, so that whoever writes it waits
  // for hashes that others have begun to take.
  std::latch hashed(kHashed);
  std::string text;
  std::atomic<size_t> next = 0;
  const uint32_t apart = durable ? std::size(files) : finished.names_npz.size() >= kWrittenApart ? 2 : 1;
  run_on("write index", apart, [&](uint32_t) {
    for (size_t i = next++; i < std::size(files); i = next++) {
      if (i < kHashed) {
        const Counted counted(hashed);
        files[i].hash = xxh128_hex(files[i].bytes);
      } else {
        hashed.wait();
        text = seal(finished, std::move(files[0].hash), std::move(files[1].hash));
        files[i].bytes = as_bytes(text);
      }
      files[i].status = write(files[i]);
    }
  });
  for (const Written& file : files) PACKTRAIN_TRY(file.status);
  return durable ? storage.sync_folder(part) : Status();
}

Status put_in_place(Storage& storage, const std::string& part, const std::string& target) {
  Result<Occupant> occupant = look_at(storage, target);
  if (!occupant.ok() && occupant.status().code() != Code::not_found) return occupant.status();
  if (!occupant.ok() || occupant->names == 0) return storage.rename(part, target);
  Status exchanged = storage.exchange(part, target);
  if (exchanged.ok()) {
    (void)remove_index(storage, part);  // the old one: in nobody's way if it stays
    return {};
  }
  if (exchanged.code() != Code::unsupported) return exchanged;
  PACKTRAIN_ASSIGN(old, free_name(storage, target, "-old"));
  PACKTRAIN_TRY(storage.rename(target, old));
  Status renamed = storage.rename(part, target);
  if (!renamed.ok()) {
    (void)storage.rename(old, target);
    return renamed;
  }
  (void)remove_index(storage, old);  // in nobody's way if it stays
  return {};
}

}  // namespace

std::string seal_manifest(IndexBuilder::Finished& finished) {
  return seal(finished, xxh128_hex(as_bytes(finished.index_npz)), xxh128_hex(as_bytes(finished.names_npz)));
}

Status check_index_place(Storage& storage, const std::string& folder, const PublishOptions& options) {
  const auto refuse = [&](const std::string& why) {
    return Status(Code::invalid, why + "; it stays as it is: choose another place with --out DIR")
        .at(printable(folder));
  };
  Result<Occupant> occupant = look_at(storage, folder);
  if (!occupant.ok()) return occupant.status().code() == Code::not_found ? Status() : occupant.status();
  if (!occupant->folder) return refuse("exists and is no folder");
  if (occupant->names == 0) return {};
  if (!occupant->manifest) return refuse("exists and is no index");
  if (!options.replace_damaged) {
    PACKTRAIN_ASSIGN(text, read_whole(storage, folder + "/" + std::string(kManifest)));
    const Result<Manifest> manifest = Manifest::decode(text);
    if (!manifest.ok()) return refuse("exists, and its manifest.json is not that of a sound index");
    if (std::any_of(manifest->shards.begin(), manifest->shards.end(), lies_inside)) {
      return refuse("is a dataset that holds its own shards, and has an index already");
    }
  }
  if (!occupant->foreign.empty()) {
    return refuse("holds an index and other things, such as " + printable(occupant->foreign));
  }
  return {};
}

Status publish_index(Storage& storage, const std::string& folder, IndexBuilder::Finished& finished,
                     const PublishOptions& options) {
  PACKTRAIN_TRY(check_index_place(storage, folder, options));
  PACKTRAIN_ASSIGN(part, free_name(storage, folder, ""));
  const auto write_all = [&]() -> Status {
    PACKTRAIN_TRY(storage.make_folder(part));
    PACKTRAIN_TRY(write_files(storage, part, finished, options.durable));
    return put_in_place(storage, part, folder);
  };
  Status status = write_all();
  if (status.ok()) {
    remove_left_parts(storage, folder);
    return {};
  }
  // Nothing but this process has written there, parts of files among it. What cannot be removed does no harm.
  (void)remove_tree(storage, part);
  // The temporary name is no concern of the user's.
  return Status(status.code(), "the index cannot be written: " + status.message()).at(printable(folder));
}

}  // namespace packtrain
