#include "pack/verify_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/hash.h"
#include "base/json.h"
#include "base/words.h"
#include "pack/sequential_reader.h"
#include "pack/sidecars.h"

namespace packtrain {
namespace {

constexpr std::string_view kManifest = "manifest.json", kLog = "pack.log.json";

// Every file below `folder` by its relative path; folders that hold nothing too, with a '/' behind them.
Status list_all(Storage& storage, const std::string& folder, const std::string& prefix, int depth,
                const std::function<void(const std::string& path)>& each) {
  constexpr int kDeepest = 32;  // packtrain's own folders are two deep
  if (depth > kDeepest) return {};
  std::vector<std::string> folders;
  bool empty = true;
  PACKTRAIN_TRY(storage.list(folder + "/" + prefix, [&](FolderEntry&& entry) {
    empty = false;
    if (entry.kind == FileKind::folder) {
      folders.push_back(prefix + entry.name + "/");
    } else {
      each(prefix + entry.name);
    }
    return true;
  }));
  if (empty && !prefix.empty()) each(prefix);
  for (const std::string& inner : folders) PACKTRAIN_TRY(list_all(storage, folder, inner, depth + 1, each));
  return {};
}

// True if it is as the manifest says.
Result<bool> check_file(Storage& storage, const std::string& folder, const FileSpec& spec, Findings& findings,
                        ProgressMeter& meter) {
  Result<std::unique_ptr<File>> file = storage.open(folder + "/" + spec.path);
  if (!file.ok()) {
    if (file.status().code() != Code::not_found) return file.status().at(spec.path);
    findings.add({spec.path, "", "", 0, "the file is missing"});
    return false;
  }
  if ((*file)->size() != spec.bytes) {
    findings.add({spec.path, "", "", std::min(spec.bytes, (*file)->size()),
                  fmt::format("the file has {} bytes and should have {}", (*file)->size(), spec.bytes)});
    return false;
  }
  SequentialReader reader(storage);
  reader.start(**file, 0, spec.bytes);
  Xxh128 hash;
  while (true) {
    const Result<Bytes> bytes = reader.next();
    if (!bytes.ok()) return bytes.status().at(spec.path);
    if (bytes->empty()) break;
    hash.add(*bytes);
    if (!meter.add(0, bytes->size())) return Status(Code::stopped, "stopped; nothing was changed");
  }
  if (hash.hex() == spec.hash) return true;
  findings.add({spec.path, "", "", 0, "its bytes are not what was written: the hash differs"});
  return false;
}

}  // namespace

Result<FolderVerdict> check_folder(Storage& storage, const std::string& folder, const Manifest& manifest,
                                   Findings& findings, ProgressMeter& meter) {
  FolderVerdict verdict;
  std::set<std::string, std::less<>> expected = {std::string(kManifest), std::string(kLog)};
  bool lists_index = false, lists_names = false;
  for (const FileSpec& file : manifest.files) {
    expected.insert(file.path);
    PACKTRAIN_ASSIGN(sound, check_file(storage, folder, file, findings, meter));
    if (file.path == "index.npz") lists_index = true, verdict.index_sound = sound;
    if (file.path == "names.npz") lists_names = true, verdict.names_sound = sound;
  }
  for (const auto& [listed, name] : {std::pair(lists_index, "index.npz"), {lists_names, "names.npz"}}) {
    if (!listed) findings.add({std::string(kManifest), "", "", 0, fmt::format("it does not list {}", name)});
  }
  for (const ShardSpec& shard : manifest.shards) expected.insert(shard.path);
  PACKTRAIN_TRY(list_all(storage, folder, "", 0, [&](const std::string& path) {
    if (expected.count(path) > 0 || is_made_by_other_tools(path)) return;
    findings.add({path, "", "", 0, "it does not belong to the dataset", Remedy::remove});
  }));

  const Result<std::string> log = read_whole(storage, folder + "/" + std::string(kLog));
  if (log.ok()) {
    const Result<Json> parsed = Json::parse(*log);
    if (!parsed.ok())
      findings.add({std::string(kLog), "", "", 0, "it is no JSON: " + parsed.status().message()});
  } else if (log.status().code() != Code::not_found) {
    return log.status();
  }
  return verdict;
}

}  // namespace packtrain
